// What cuDNN's opaque types are on the CPU, and how the engine's functions report refusals.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_OBJECTS_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_OBJECTS_H_

#include <cstdint>
#include <vector>

#include "cc/cpu/parallel.h"
#include "cc/cudnn/cudnn_rnn_api.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;  // kept for cudnnGetStream; work is done before a call returns
  const tf_cudnn_rnn::cpu::Parallel* parallel = nullptr;
  bool reserve_read_only = false;
};

struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int rank = 0;
  int dims[8] = {};
  int strides[8] = {};
};

struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  int rank = 0;
  int dims[8] = {};
};

struct cudnnDropoutStruct {
  float dropout = 0;
  void* states = nullptr;  // DropoutStates, the caller's memory; null as long as dropout is 0
};

struct cudnnRNNStruct {
  bool is_set = false;
  cudnnRNNAlgo_t algo;
  cudnnRNNMode_t mode;
  cudnnRNNBiasMode_t bias_mode;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input_mode;
  cudnnDataType_t type, math_precision;
  cudnnMathType_t math_type;
  int32_t input_size, hidden_size, projection_size, layers;
  cudnnDropoutDescriptor_t dropout;
  uint32_t flags;
};

struct cudnnRNNDataStruct {
  bool is_set = false;
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int max_length, batch, width;  // T, B, vector size
  std::vector<int> lengths;
  char padding_fill[8] = {};  // one element
  bool has_padding_fill = false;
};

namespace tf_cudnn_rnn::cpu {

// Keeps "function: message" for cudnnGetLastErrorString on this thread; returns `status`.
cudnnStatus_t Refuse(cudnnStatus_t status, const char* function, const char* message, ...)
    __attribute__((format(printf, 3, 4)));

// Calls f, which may throw only std::bad_alloc, and turns that into a status.
template <class F>
cudnnStatus_t WithoutExceptions(const char* function, F f) {
  try {
    return f();
  } catch (...) {
    return Refuse(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, function, "out of memory");
  }
}

#define CPU_CUDNN_REQUIRE(condition, status, ...)                   \
  do {                                                              \
    if (!(condition)) return Refuse(status, __func__, __VA_ARGS__); \
  } while (false)
#define CPU_CUDNN_NEED(condition) \
  CPU_CUDNN_REQUIRE(condition, CUDNN_STATUS_BAD_PARAM, "needs %s", #condition)
#define CPU_CUDNN_SUPPORT(condition) \
  CPU_CUDNN_REQUIRE(condition, CUDNN_STATUS_NOT_SUPPORTED, "supports only %s", #condition)

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_OBJECTS_H_
