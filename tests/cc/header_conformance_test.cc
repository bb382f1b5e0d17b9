// Compiled where a real cudnn.h is, never run: our declarations (cc/cudnn/cudnn_rnn_api.h,
// cudnn_functions.inc, cuda_driver.h) equal NVIDIA's own, every enum value and every function's
// exact type. tools/check_cudnn.py compiles it and sees to it that no enum value is left out below.
#include <cuda.h>
#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// These are macros in cuDNN's header and enum values in ours.
constexpr unsigned real_padded_io_disabled = CUDNN_RNN_PADDED_IO_DISABLED;
constexpr unsigned real_padded_io_enabled = CUDNN_RNN_PADDED_IO_ENABLED;
#undef CUDNN_RNN_PADDED_IO_DISABLED
#undef CUDNN_RNN_PADDED_IO_ENABLED

namespace ours {
#include "cc/cudnn/cuda_driver.h"
#include "cc/cudnn/cudnn_api.h"
}  // namespace ours

// cuDNN's type of the same name for each of our types; what is no type of ours is itself.
template <class T>
struct Real {
  using type = T;
};
template <class T>
struct Real<const T> {
  using type = const typename Real<T>::type;
};
template <class T>
struct Real<T*> {
  using type = typename Real<T>::type*;
};
template <class R, class... A>
struct Real<R(A...)> {
  using type = typename Real<R>::type(typename Real<A>::type...);
};
#define ENUM(name)          \
  template <>               \
  struct Real<ours::name> { \
    using type = ::name;    \
  };                        \
  static_assert(std::is_same_v<std::underlying_type_t<ours::name>, std::underlying_type_t<::name>>);
#define HANDLE(name)                               \
  template <>                                      \
  struct Real<std::remove_pointer_t<ours::name>> { \
    using type = std::remove_pointer_t<::name>;    \
  };
ENUM(cudnnStatus_t)
ENUM(cudnnDataType_t)
ENUM(cudnnMathType_t)
ENUM(cudnnTensorFormat_t)
ENUM(cudnnForwardMode_t)
ENUM(cudnnWgradMode_t)
ENUM(cudnnRNNAlgo_t)
ENUM(cudnnRNNMode_t)
ENUM(cudnnRNNBiasMode_t)
ENUM(cudnnDirectionMode_t)
ENUM(cudnnRNNInputMode_t)
ENUM(cudnnRNNDataLayout_t)
HANDLE(cudnnHandle_t)
HANDLE(cudnnTensorDescriptor_t)
HANDLE(cudnnFilterDescriptor_t)
HANDLE(cudnnDropoutDescriptor_t)
HANDLE(cudnnRNNDescriptor_t)
HANDLE(cudnnRNNDataDescriptor_t)
HANDLE(cudaStream_t)
ENUM(CUresult)
ENUM(CUdevice_attribute)
ENUM(CUmemorytype)
HANDLE(CUcontext)
HANDLE(CUarray)
template <>
struct Real<ours::CUDA_MEMCPY2D> {
  using type = ::CUDA_MEMCPY2D;
};

// A type of ours that is not listed above stays ours, and the comparison fails.
#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments)                            \
  static_assert(                                                                           \
      std::is_same_v<                                                                      \
          Real<std::remove_pointer_t<decltype(ours::tf_cudnn_rnn::CudnnApi::name)>>::type, \
          decltype(::name)>,                                                               \
      #name);
#include "cc/cudnn/cudnn_functions.inc"

#define CUDA_DRIVER_FUNCTION(name, parameters)                                               \
  static_assert(                                                                             \
      std::is_same_v<                                                                        \
          Real<std::remove_pointer_t<decltype(ours::tf_cudnn_rnn::CudaDriver::name)>>::type, \
          decltype(::name)>,                                                                 \
      #name);
CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_FUNCTION)

#define FIELD(name)                                                                      \
  static_assert(offsetof(ours::CUDA_MEMCPY2D, name) == offsetof(::CUDA_MEMCPY2D, name)); \
  static_assert(std::is_same_v<Real<decltype(ours::CUDA_MEMCPY2D::name)>::type,          \
                               decltype(::CUDA_MEMCPY2D::name)>);
FIELD(srcXInBytes)
FIELD(srcY)
FIELD(srcMemoryType)
FIELD(srcHost)
FIELD(srcDevice)
FIELD(srcArray)
FIELD(srcPitch)
FIELD(dstXInBytes)
FIELD(dstY)
FIELD(dstMemoryType)
FIELD(dstHost)
FIELD(dstDevice)
FIELD(dstArray)
FIELD(dstPitch)
FIELD(WidthInBytes)
FIELD(Height)
static_assert(sizeof(ours::CUDA_MEMCPY2D) == sizeof(::CUDA_MEMCPY2D));

#define VALUE(name) static_assert(static_cast<int>(ours::name) == static_cast<int>(::name), #name);
VALUE(CUDNN_STATUS_SUCCESS)
VALUE(CUDNN_STATUS_NOT_INITIALIZED)
VALUE(CUDNN_STATUS_BAD_PARAM)
VALUE(CUDNN_STATUS_NOT_SUPPORTED)
VALUE(CUDNN_STATUS_INTERNAL_ERROR)
VALUE(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
VALUE(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
VALUE(CUDNN_STATUS_EXECUTION_FAILED)
VALUE(CUDNN_DATA_FLOAT)
VALUE(CUDNN_DATA_DOUBLE)
VALUE(CUDNN_DATA_HALF)
VALUE(CUDNN_DATA_BFLOAT16)
VALUE(CUDNN_DEFAULT_MATH)
VALUE(CUDNN_TENSOR_OP_MATH)
VALUE(CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
VALUE(CUDNN_FMA_MATH)
VALUE(CUDNN_TENSOR_NCHW)
VALUE(CUDNN_FWD_MODE_INFERENCE)
VALUE(CUDNN_FWD_MODE_TRAINING)
VALUE(CUDNN_WGRAD_MODE_ADD)
VALUE(CUDNN_WGRAD_MODE_SET)
VALUE(CUDNN_RNN_ALGO_STANDARD)
VALUE(CUDNN_RNN_ALGO_PERSIST_STATIC)
VALUE(CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
VALUE(CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H)
VALUE(CUDNN_RNN_RELU)
VALUE(CUDNN_RNN_TANH)
VALUE(CUDNN_LSTM)
VALUE(CUDNN_GRU)
VALUE(CUDNN_RNN_NO_BIAS)
VALUE(CUDNN_RNN_SINGLE_INP_BIAS)
VALUE(CUDNN_RNN_DOUBLE_BIAS)
VALUE(CUDNN_RNN_SINGLE_REC_BIAS)
VALUE(CUDNN_UNIDIRECTIONAL)
VALUE(CUDNN_BIDIRECTIONAL)
VALUE(CUDNN_LINEAR_INPUT)
VALUE(CUDNN_SKIP_INPUT)
VALUE(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED)
VALUE(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED)
VALUE(CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
static_assert(ours::CUDNN_RNN_PADDED_IO_DISABLED == real_padded_io_disabled);
static_assert(ours::CUDNN_RNN_PADDED_IO_ENABLED == real_padded_io_enabled);
VALUE(CUDA_SUCCESS)
VALUE(CUDA_ERROR_OUT_OF_MEMORY)
VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
VALUE(CU_MEMORYTYPE_DEVICE)
