// The few functions of NVIDIA's driver that the GPU path calls itself: the context that a stream
// belongs to, what its GPU can do, and copies and fills in a stream's order. Taken from
// libcuda.so.1, which every machine with an NVIDIA GPU has; nothing is linked. Types and names are
// CUDA's (cuda.h); tests/cc/header_conformance_test.cc holds them equal to it.
#ifndef TF_CUDNN_RNN_OPS_CC_CUDNN_CUDA_DRIVER_H_
#define TF_CUDNN_RNN_OPS_CC_CUDNN_CUDA_DRIVER_H_

#include <cstddef>
#include <string>

#include "cc/cudnn/cudnn_rnn_api.h"

extern "C" {

typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUarray_st* CUarray;
typedef cudaStream_t CUstream;

typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2 } CUresult;

typedef int CUdevice;

typedef enum { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75 } CUdevice_attribute;

typedef enum { CU_MEMORYTYPE_DEVICE = 2 } CUmemorytype;

typedef struct {
  size_t srcXInBytes;
  size_t srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes;
  size_t dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes;
  size_t Height;
} CUDA_MEMCPY2D;

}  // extern "C"

// The list, each function once: CUDA_DRIVER_FUNCTION(name, (parameters)). All return CUresult.
#define CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_FUNCTION)                                           \
  CUDA_DRIVER_FUNCTION(cuGetErrorName, (CUresult error, const char** name))                   \
  CUDA_DRIVER_FUNCTION(cuStreamGetCtx, (CUstream stream, CUcontext * context))                \
  CUDA_DRIVER_FUNCTION(cuStreamSynchronize, (CUstream stream))                                \
  CUDA_DRIVER_FUNCTION(cuCtxPushCurrent_v2, (CUcontext context))                              \
  CUDA_DRIVER_FUNCTION(cuCtxPopCurrent_v2, (CUcontext * context))                             \
  CUDA_DRIVER_FUNCTION(cuCtxGetDevice, (CUdevice * device))                                   \
  CUDA_DRIVER_FUNCTION(cuDeviceGetAttribute,                                                  \
                       (int* value, CUdevice_attribute attribute, CUdevice device))           \
  CUDA_DRIVER_FUNCTION(cuMemcpyDtoDAsync_v2,                                                  \
                       (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))     \
  CUDA_DRIVER_FUNCTION(cuMemcpyDtoHAsync_v2,                                                  \
                       (void* to, CUdeviceptr from, size_t bytes, CUstream stream))           \
  CUDA_DRIVER_FUNCTION(cuMemcpyHtoDAsync_v2,                                                  \
                       (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))     \
  CUDA_DRIVER_FUNCTION(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* copy, CUstream stream))      \
  CUDA_DRIVER_FUNCTION(cuMemsetD8Async,                                                       \
                       (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))  \
  CUDA_DRIVER_FUNCTION(cuMemsetD2D8Async, (CUdeviceptr to, size_t pitch, unsigned char value, \
                                           size_t width, size_t height, CUstream stream))

namespace tf_cudnn_rnn {

struct CudaDriver {
#define CUDA_DRIVER_FUNCTION(name, parameters) CUresult(*name) parameters = nullptr;
  CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_FUNCTION)
#undef CUDA_DRIVER_FUNCTION
  std::string error;  // empty, or why the functions are null

  bool ok() const { return error.empty(); }
};

// Opened at the first call; the same object for good, failed or not. Thread-safe.
const CudaDriver& Driver();

// Makes the context that `stream` belongs to the calling thread's current one for as long as the
// object lives: cuDNN and the driver work on the current context, and a machine's GPUs have one
// each.
class StreamContext {
 public:
  StreamContext(const CudaDriver& driver, CUstream stream);
  ~StreamContext();
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;

  CUresult status() const { return status_; }
  CUcontext context() const { return context_; }

 private:
  const CudaDriver& driver_;
  CUcontext context_ = nullptr;
  CUresult status_;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_CUDNN_CUDA_DRIVER_H_
