// A call in bfloat16 on a device that does not take it: the same call in float, between copies that
// are converted. The reserve space is that of the call in float.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_WIDENED_CALL_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_WIDENED_CALL_H_

#include <cstdint>

#include "cc/rnn/rnn_call.h"

namespace tf_cudnn_rnn {

class WidenedCall {
 public:
  // As RnnCall, for a plan in bfloat16.
  WidenedCall(const RnnPlan& plan, Device* device, DropoutStates* dropout, RnnSetupCache* setups);

  Status Prepare(const void* params) { return call_.Prepare(params); }
  bool relays_params() const { return call_.relays_params(); }
  int64_t reserve_bytes() const { return call_.reserve_elements() * sizeof(float); }
  Status Forward(const ForwardBuffers& buffers);
  // The size of the reserve space is checked, and params_backprop is not filled yet.
  Status Backward(const BackwardBuffers& buffers);

 private:
  // How many elements the tensors have.
  int64_t inputs() const { return plan_.input_shape.elements(); }
  int64_t outputs() const { return plan_.output_shape.elements(); }
  int64_t states_h() const { return plan_.input_h_shape.elements(); }
  int64_t states_c() const { return plan_.config.lstm() ? plan_.input_c_shape.elements() : 0; }
  int64_t params() const { return plan_.weights.size(); }

  // Puts a copy in float in scratch in the place of what the caller passed.
  Status Widen(int64_t elements, const void** data);
  // Scratch for a result in float; and the result, put where the caller wants it.
  Status Scratch(int64_t elements, void** data);
  Status Narrow(int64_t elements, const void* from, void* to);

  RnnPlan plan_;  // in float
  Device* const device_;
  RnnCall call_;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_WIDENED_CALL_H_
