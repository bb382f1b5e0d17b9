#include "tests/gpu/bare_cudnn.h"

#include "cc/rnn/cudnn_status.h"

#define RETURN_IF_CUDNN_ERROR(function, ...) \
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api_, plan_.Describe(), function, __VA_ARGS__)

namespace tf_cudnn_rnn {

BareCudnn::BareCudnn(const RnnPlan& plan, Backend* backend)
    : plan_(plan),
      backend_(backend),
      api_(backend->api()),
      device_(backend->NewDevice()),
      setup_(api_),
      x_(api_),
      y_(api_),
      h_(api_),
      c_(api_) {}

Status BareCudnn::Prepare(const ForwardBuffers& buffers) {
  buffers_ = buffers;
  TF_CUDNN_RNN_RETURN_IF_ERROR(
      setup_.Create(plan_, device_.get(), /*dropout=*/nullptr, buffers.params));
  const RnnDims& dims = plan_.dims();
  const cudnnDataType_t type = plan_.config.data_type;
  static double fill = 0;
  for (auto* owner : {&x_, &y_}) {
    const int width = static_cast<int>(owner == &x_ ? dims.I : dims.D * dims.R);
    if (owner->Create() != CUDNN_STATUS_SUCCESS) return Internal("no descriptor");
    RETURN_IF_CUDNN_ERROR(cudnnSetRNNDataDescriptor, owner->get(), type,
                          CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, plan_.T, plan_.B, width,
                          plan_.sequence_lengths, &fill);
  }
  for (auto* owner : {&h_, &c_}) {
    const int width = static_cast<int>(owner == &h_ ? dims.R : dims.H);
    const int sizes[] = {dims.pseudo_layers(), plan_.B, width};
    const int strides[] = {plan_.B * width, width, 1};
    if (owner->Create() != CUDNN_STATUS_SUCCESS) return Internal("no descriptor");
    RETURN_IF_CUDNN_ERROR(cudnnSetTensorNdDescriptor, owner->get(), type, 3, sizes, strides);
  }
  RETURN_IF_CUDNN_ERROR(cudnnGetRNNTempSpaceSizes, backend_->handle(), setup_.rnn(),
                        CUDNN_FWD_MODE_TRAINING, x_.get(), &work_bytes_, &reserve_bytes_);
  work_ = backend_->Allocate(work_bytes_);
  reserve_ = backend_->Allocate(reserve_bytes_);
  weights_ = backend_->Allocate(setup_.weight_bytes());
  weights_gradient_ = backend_->Allocate(setup_.weight_bytes());
  return setup_.relays_params()
             ? setup_.ParamsToSpace(buffers.params, weights_.get(), device_.get())
             : device_->Copy(weights_.get(), buffers.params, setup_.weight_bytes());
}

Status BareCudnn::Forward() {
  RETURN_IF_CUDNN_ERROR(cudnnRNNForward, backend_->handle(), setup_.rnn(), CUDNN_FWD_MODE_TRAINING,
                        nullptr, x_.get(), buffers_.input, y_.get(), buffers_.output, h_.get(),
                        buffers_.input_h, buffers_.output_h, c_.get(), buffers_.input_c,
                        buffers_.output_c, setup_.weight_bytes(), weights_.get(), work_bytes_,
                        work_.get(), reserve_bytes_, reserve_.get());
  return Status();
}

Status BareCudnn::Backward(const BackwardBuffers& buffers) {
  RETURN_IF_CUDNN_ERROR(
      cudnnRNNBackwardData_v8, backend_->handle(), setup_.rnn(), nullptr, y_.get(), buffers.output,
      buffers.output_backprop, x_.get(), buffers.input_backprop, h_.get(), buffers.input_h,
      buffers.output_h_backprop, buffers.input_h_backprop, c_.get(), buffers.input_c,
      buffers.output_c_backprop, buffers.input_c_backprop, setup_.weight_bytes(), weights_.get(),
      work_bytes_, work_.get(), reserve_bytes_, reserve_.get());
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Zero(weights_gradient_.get(), setup_.weight_bytes()));
  RETURN_IF_CUDNN_ERROR(cudnnRNNBackwardWeights_v8, backend_->handle(), setup_.rnn(),
                        CUDNN_WGRAD_MODE_ADD, nullptr, x_.get(), buffers.input, h_.get(),
                        buffers.input_h, y_.get(), buffers.output, setup_.weight_bytes(),
                        weights_gradient_.get(), work_bytes_, work_.get(), reserve_bytes_,
                        reserve_.get());
  return Status();
}

}  // namespace tf_cudnn_rnn
