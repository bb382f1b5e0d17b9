// Between the types that tensors are stored in and the types that are computed in.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_CONVERT_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_CONVERT_H_

#include <cstdint>

#include "cc/cudnn/cudnn_rnn_api.h"

namespace tf_cudnn_rnn::cpu {

// Bytes of an element, 0 for a type that the engine does not know.
inline int64_t ElementSize(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return 4;
    case CUDNN_DATA_DOUBLE:
      return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
  }
  return 0;
}

// half or bfloat16 → float, exact; n elements.
void ConvertToFloat(cudnnDataType_t type, const void* from, float* to, int64_t n);

// float → half or bfloat16, rounded to nearest, ties to even; NaN stays NaN.
void ConvertFromFloat(cudnnDataType_t type, const float* from, void* to, int64_t n);

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_CONVERT_H_
