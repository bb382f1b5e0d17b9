#include "cc/rnn/widened_call.h"

namespace tf_cudnn_rnn {

WidenedCall::WidenedCall(const RnnPlan& plan, Device* device, DropoutStates* dropout,
                         RnnSetupCache* setups)
    : plan_(plan, CUDNN_DATA_FLOAT), device_(device), call_(plan_, device, dropout, setups) {}

Status WidenedCall::Widen(int64_t elements, const void** data) {
  const void* const narrow = *data;
  void* wide;
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(elements, &wide));
  *data = wide;
  return device_->ToFloat(wide, narrow, elements);
}

Status WidenedCall::Scratch(int64_t elements, void** data) {
  return device_->Allocate(elements * sizeof(float), data);
}

Status WidenedCall::Narrow(int64_t elements, const void* from, void* to) {
  return device_->ToBfloat16(to, from, elements);
}

Status WidenedCall::Forward(const ForwardBuffers& buffers) {
  ForwardBuffers wide = buffers;
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(inputs(), &wide.input));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(states_h(), &wide.input_h));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(states_c(), &wide.input_c));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(params(), &wide.params));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(outputs(), &wide.output));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(states_h(), &wide.output_h));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(states_c(), &wide.output_c));
  TF_CUDNN_RNN_RETURN_IF_ERROR(call_.Forward(wide));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Narrow(outputs(), wide.output, buffers.output));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Narrow(states_h(), wide.output_h, buffers.output_h));
  return Narrow(states_c(), wide.output_c, buffers.output_c);
}

Status WidenedCall::Backward(const BackwardBuffers& buffers) {
  BackwardBuffers wide = buffers;
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(inputs(), &wide.input));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(states_h(), &wide.input_h));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(states_c(), &wide.input_c));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(params(), &wide.params));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(outputs(), &wide.output));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(outputs(), &wide.output_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(states_h(), &wide.output_h_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Widen(states_c(), &wide.output_c_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(inputs(), &wide.input_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(states_h(), &wide.input_h_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(states_c(), &wide.input_c_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Scratch(params(), &wide.params_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(call_.Backward(wide, Shape{call_.reserve_elements()}));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Narrow(inputs(), wide.input_backprop, buffers.input_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Narrow(states_h(), wide.input_h_backprop, buffers.input_h_backprop));
  TF_CUDNN_RNN_RETURN_IF_ERROR(Narrow(states_c(), wide.input_c_backprop, buffers.input_c_backprop));
  return Narrow(params(), wide.params_backprop, buffers.params_backprop);
}

}  // namespace tf_cudnn_rnn
