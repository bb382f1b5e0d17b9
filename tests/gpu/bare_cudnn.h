// Forward and backward with nothing around cuDNN's calls: what cc/rnn's overhead is measured
// against.
#ifndef TF_CUDNN_RNN_OPS_TESTS_GPU_BARE_CUDNN_H_
#define TF_CUDNN_RNN_OPS_TESTS_GPU_BARE_CUDNN_H_

#include <memory>

#include "cc/cudnn/descriptors.h"
#include "cc/rnn/rnn_call.h"
#include "cc/rnn/rnn_plan.h"
#include "cc/rnn/rnn_setup.h"
#include "tests/gpu/parity_backend.h"

namespace tf_cudnn_rnn {

// For plans without rows of length 0 and time-major.
class BareCudnn {
 public:
  BareCudnn(const RnnPlan& plan, Backend* backend);

  // Descriptors and memory, once.
  Status Prepare(const ForwardBuffers& buffers);

  Status Forward();
  // The weights' gradient is zeroed first, as cuDNN adds to it.
  Status Backward(const BackwardBuffers& buffers);

 private:
  const RnnPlan& plan_;
  Backend* const backend_;
  const CudnnApi& api_;
  std::unique_ptr<Device> device_;
  ForwardBuffers buffers_;
  RnnSetup setup_;
  RnnDataDescriptor x_, y_;
  TensorDescriptor h_, c_;
  size_t work_bytes_ = 0, reserve_bytes_ = 0;
  std::shared_ptr<void> weights_, weights_gradient_, work_, reserve_;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_TESTS_GPU_BARE_CUDNN_H_
