// The states of an op in the order in which cuDNN wants them, [L·D, B, width]. Batch-major ops hold
// them as [B, L·D, width]: then scratch takes their place. Otherwise nothing is copied.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_STATE_LAYOUT_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_STATE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "cc/rnn/device.h"
#include "cc/rnn/rnn_plan.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// `width` is H or R everywhere. The plan and the device outlive the object.
class StateLayout {
 public:
  StateLayout(const RnnPlan& plan, Device* device)
      : plan_(plan), device_(device), element_size_(ElementSize(plan.config.data_type)) {}

  size_t bytes(int64_t width) const {
    return element_size_ * width * plan_.B * plan_.dims().pseudo_layers();
  }

  // A state of the caller's for cuDNN to read.
  Status ForReading(const void* caller, int64_t width, const void** state);

  // Where cuDNN may write a state that the caller wants at `caller`; and what it wrote, put there.
  Status ForWriting(void* caller, int64_t width, void** state);
  Status Finish(const void* state, int64_t width, void* caller);

 private:
  const RnnPlan& plan_;
  Device* const device_;
  const size_t element_size_;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_STATE_LAYOUT_H_
