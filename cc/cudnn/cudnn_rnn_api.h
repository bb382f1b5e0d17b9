// The types and enum values of cuDNN 9's C API that recurrent networks need, declared here so that
// building needs no NVIDIA header; the functions are in cudnn_functions.inc.
// tests/cc/header_conformance_test.cc holds every value and signature equal to a real cudnn.h.
// Names and meanings are NVIDIA's; the cuDNN documentation applies.
//
// Do not include this header together with a real cudnn.h in one namespace.
#ifndef TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_RNN_API_H_
#define TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_RNN_API_H_

#include <cstddef>
#include <cstdint>

extern "C" {

typedef struct cudnnContext* cudnnHandle_t;
typedef struct cudnnTensorStruct* cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct* cudnnFilterDescriptor_t;
typedef struct cudnnDropoutStruct* cudnnDropoutDescriptor_t;
typedef struct cudnnRNNStruct* cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct* cudnnRNNDataDescriptor_t;
typedef struct CUstream_st* cudaStream_t;

// A thousand per category since cuDNN 9; versions add values within a category, so test
// `status / 1000` where the category is what matters. Only the first of each is listed, and what
// says that memory ran out.
typedef enum {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
  CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
  CUDNN_STATUS_EXECUTION_FAILED = 5000,
} cudnnStatus_t;

typedef enum {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_BFLOAT16 = 9,
} cudnnDataType_t;

typedef enum {
  CUDNN_DEFAULT_MATH = 0,
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
  CUDNN_FMA_MATH = 3,
} cudnnMathType_t;

typedef enum { CUDNN_TENSOR_NCHW = 0 } cudnnTensorFormat_t;

typedef enum {
  CUDNN_FWD_MODE_INFERENCE = 0,
  CUDNN_FWD_MODE_TRAINING = 1,
} cudnnForwardMode_t;

typedef enum { CUDNN_WGRAD_MODE_ADD = 0, CUDNN_WGRAD_MODE_SET = 1 } cudnnWgradMode_t;

typedef enum {
  CUDNN_RNN_ALGO_STANDARD = 0,
  CUDNN_RNN_ALGO_PERSIST_STATIC = 1,
  CUDNN_RNN_ALGO_PERSIST_DYNAMIC = 2,
  CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3,
} cudnnRNNAlgo_t;

typedef enum {
  CUDNN_RNN_RELU = 0,
  CUDNN_RNN_TANH = 1,
  CUDNN_LSTM = 2,
  CUDNN_GRU = 3,
} cudnnRNNMode_t;

typedef enum {
  CUDNN_RNN_NO_BIAS = 0,
  CUDNN_RNN_SINGLE_INP_BIAS = 1,
  CUDNN_RNN_DOUBLE_BIAS = 2,
  CUDNN_RNN_SINGLE_REC_BIAS = 3,
} cudnnRNNBiasMode_t;

typedef enum { CUDNN_UNIDIRECTIONAL = 0, CUDNN_BIDIRECTIONAL = 1 } cudnnDirectionMode_t;

typedef enum { CUDNN_LINEAR_INPUT = 0, CUDNN_SKIP_INPUT = 1 } cudnnRNNInputMode_t;

typedef enum {
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0,
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1,
  CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2,
} cudnnRNNDataLayout_t;

// Values for `auxFlags` of cudnnSetRNNDescriptor_v8; macros in cuDNN's header.
enum { CUDNN_RNN_PADDED_IO_DISABLED = 0, CUDNN_RNN_PADDED_IO_ENABLED = 1 };

}  // extern "C"

#endif  // TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_RNN_API_H_
