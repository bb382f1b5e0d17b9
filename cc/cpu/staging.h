// Between the C functions and the engine: cuts the work and reserve spaces, turns half and bfloat16
// tensors into float and back, fills padding. Float and double tensors are used where they are.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_STAGING_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_STAGING_H_

#include <cstddef>
#include <memory>

#include "cc/cpu/engine.h"
#include "cc/cudnn/cudnn_rnn_api.h"

namespace tf_cudnn_rnn::cpu {

// What a call's descriptors say.
struct CallShape {
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int max_length = 0;  // T
  float dropout = 0;   // 0 where none applies
  std::unique_ptr<Plan> plan;
  const Parallel* parallel = nullptr;  // null: the calling thread
};

// Bytes; SIZE_MAX where they cannot be addressed.
struct SpaceSizes {
  size_t work;
  size_t reserve;
};
template <class C>
SpaceSizes MeasureSpaces(const CallShape& shape);

// The caller's tensors, as in cuDNN's functions of the same parameter names.
struct ForwardTensors {
  const void* x;
  void* y;
  const void* hx;
  void* hy;
  const void* cx;
  void* cy;
  const void* weights;
  const void* padding_fill;  // one element
};
struct BackwardDataTensors {
  const void* y;
  const void* dy;
  void* dx;
  const void* hx;
  const void* dhy;
  void* dhx;
  const void* cx;
  const void* dcy;
  void* dcx;
  const void* weights;
};
struct BackwardWeightsTensors {
  const void* x;
  const void* y;
  const void* hx;
  void* dweights;  // added to
};

// Spaces must have the sizes that MeasureSpaces gives. The mask goes into the reserve space.
template <class C>
void StagedForward(const CallShape& shape, const ForwardTensors& tensors, const DropoutMask& mask,
                   void* work, void* reserve);
template <class C>
void StagedBackwardData(const CallShape& shape, const BackwardDataTensors& tensors, void* work,
                        void* reserve);
template <class C>
void StagedBackwardWeights(const CallShape& shape, const BackwardWeightsTensors& tensors,
                           void* work, void* reserve);

// Whether a forward call of this shape made the reserve space; BAD_PARAM if not.
cudnnStatus_t CheckReserve(const char* function, const CallShape& shape, const void* reserve);

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_STAGING_H_
