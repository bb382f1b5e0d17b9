#include "cc/rnn/cudnn_status.h"
#include "cc/rnn/rnn_call.h"
#include "cc/rnn/widened_call.h"

namespace tf_cudnn_rnn {
namespace {

// Scratch and TensorFlow's tensors are aligned so, a slice of a tensor need not be.
constexpr uintptr_t kReserveAlignment = 64;

bool Aligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % kReserveAlignment == 0;
}

}  // namespace

Status RnnCall::Backward(const BackwardBuffers& buffers, const Shape& reserve_space) {
  if (reserve_space != Shape{reserve_elements()}) {
    return MustBe(
        "reserve_space",
        Concatenate("a tensor of shape ", Shape{reserve_elements()},
                    ", what the forward op made for this configuration (", plan_.Describe(), ")"),
        reserve_space);
  }
  if (widened_ != nullptr) return widened_->Backward(buffers);
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Zero(
      buffers.params_backprop, plan_.weights.size() * ElementSize(plan_.config.data_type)));
  if (plan_.empty()) {
    return PassStatesThrough(buffers.output_h_backprop, buffers.output_c_backprop,
                             buffers.input_h_backprop, buffers.input_c_backprop);
  }
  // The table only reads it where it says so.
  void* reserve = const_cast<void*>(buffers.reserve_space);
  if (!device_->traits().reserve_is_read_only || !Aligned(reserve)) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(reserve_bytes_, &reserve));
    TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy(reserve, buffers.reserve_space, reserve_bytes_));
  }
  return BackwardOnCudnn(buffers, reserve);
}

Status RnnCall::BackwardOnCudnn(const BackwardBuffers& buffers, void* reserve_space) {
  const DeviceTraits& traits = device_->traits();
  const void *h_in, *h_gradient, *c_in = nullptr, *c_gradient = nullptr;
  void *h_out, *c_out = nullptr, *work;
  TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForReading(buffers.input_h, R(), &h_in));
  TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForReading(buffers.output_h_backprop, R(), &h_gradient));
  TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForWriting(buffers.input_h_backprop, R(), &h_out));
  if (lstm()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForReading(buffers.input_c, H(), &c_in));
    TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForReading(buffers.output_c_backprop, H(), &c_gradient));
    TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForWriting(buffers.input_c_backprop, H(), &c_out));
  }
  const void *x = buffers.input, *hx = h_in, *cx = c_in;
  const void *dy = buffers.output_backprop, *dhy = h_gradient, *dcy = c_gradient;
  if (zero_length_rows_.any()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutFirstSteps(plan_.dims().I, &x));
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutFirstSteps(output_width(), &dy));
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutStates(R(), &hx));
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutStates(R(), &dhy));
    if (lstm()) {
      TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutStates(H(), &cx));
      TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutStates(H(), &dcy));
    }
  }
  if (plan_.any_padding && !traits.zeroes_padding) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        device_->Zero(buffers.input_backprop,
                      plan_.input_shape.elements() * ElementSize(plan_.config.data_type)));
  }
  const void* weights;
  TF_CUDNN_RNN_RETURN_IF_ERROR(Weights(buffers.params, &weights));
  void* weights_gradient = buffers.params_backprop;
  if (relays_params()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(setup_->weight_bytes(), &weights_gradient));
    TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Zero(weights_gradient, setup_->weight_bytes()));
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(work_bytes_, &work));

  const cudnnStatus_t status = api_.cudnnRNNBackwardData_v8(
      device_->handle(), setup_->rnn(), /*devSeqLengths=*/nullptr, y_.get(), buffers.output, dy,
      x_.get(), buffers.input_backprop, h_.get(), hx, dhy, h_out, c_.get(), cx, dcy, c_out,
      setup_->weight_bytes(), weights, work_bytes_, work, reserve_bytes_, reserve_space);
  if (status != CUDNN_STATUS_SUCCESS) {
    Status error = CudnnError(api_, status, "cudnnRNNBackwardData_v8", Describe());
    // All else that the table checks is known to be right.
    if (traits.checks_reserve && error.code() == StatusCode::kInvalidArgument) {
      return InvalidArgument("reserve_space must be what the forward op made for this ",
                             "configuration, got another: ", error.message());
    }
    return error;
  }
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api_, Describe(), cudnnRNNBackwardWeights_v8,
                                     device_->handle(), setup_->rnn(), CUDNN_WGRAD_MODE_ADD,
                                     /*devSeqLengths=*/nullptr, x_.get(), x, h_.get(), hx, y_.get(),
                                     buffers.output, setup_->weight_bytes(), weights_gradient,
                                     work_bytes_, work, reserve_bytes_, reserve_space);

  if (relays_params()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        setup_->SpaceToParams(weights_gradient, buffers.params_backprop, device_));
  }
  if (zero_length_rows_.any()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        zero_length_rows_.ZeroFirstSteps(buffers.input_backprop, plan_.dims().I));
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.CopyStates(h_gradient, R(), h_out));
    if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.CopyStates(c_gradient, H(), c_out));
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(states_.Finish(h_out, R(), buffers.input_h_backprop));
  if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(states_.Finish(c_out, H(), buffers.input_c_backprop));
  return Status();
}

}  // namespace tf_cudnn_rnn
