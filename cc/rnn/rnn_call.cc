#include "cc/rnn/rnn_call.h"

#include "cc/rnn/cudnn_status.h"

// Calls a function of the table; every error tells the plan.
#define RETURN_IF_CUDNN_ERROR(function, ...) \
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api_, plan_.Describe(), function, __VA_ARGS__)

namespace tf_cudnn_rnn {
namespace {

cudnnMathType_t MathType(cudnnDataType_t data_type, bool tensor_float_32) {
  switch (data_type) {
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return CUDNN_TENSOR_OP_MATH;
    case CUDNN_DATA_FLOAT:
      // cuDNN's default rounds to TF32 on hardware that has it.
      return tensor_float_32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
    case CUDNN_DATA_DOUBLE:
      break;
  }
  return CUDNN_DEFAULT_MATH;
}

}  // namespace

Status RnnCall::DescribeRnn() {
  const RnnConfig& config = plan_.config;
  const RnnDims& dims = plan_.dims();
  if (plan_.drops()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(dropout_->Describe(device_, &dropout_descriptor_));
  }
  const cudnnStatus_t created = rnn_.Create();
  if (created != CUDNN_STATUS_SUCCESS) {
    return CudnnError(api_, created, "cudnnCreateRNNDescriptor", plan_.Describe());
  }
  RETURN_IF_CUDNN_ERROR(
      cudnnSetRNNDescriptor_v8, rnn_.get(), CUDNN_RNN_ALGO_STANDARD, config.rnn_mode,
      CUDNN_RNN_DOUBLE_BIAS, config.direction,
      dims.skip_input ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT, config.data_type,
      config.data_type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      MathType(config.data_type, device_->traits().tensor_float_32), static_cast<int>(dims.I),
      static_cast<int>(dims.H), static_cast<int>(dims.R), dims.L, dropout_descriptor_.get(),
      CUDNN_RNN_PADDED_IO_ENABLED);
  return Status();
}

Status RnnCall::DescribeData(int64_t width, RnnDataDescriptor* descriptor) {
  const cudnnStatus_t created = descriptor->Create();
  if (created != CUDNN_STATUS_SUCCESS) {
    return CudnnError(api_, created, "cudnnCreateRNNDataDescriptor", plan_.Describe());
  }
  RETURN_IF_CUDNN_ERROR(cudnnSetRNNDataDescriptor, descriptor->get(), plan_.config.data_type,
                        plan_.config.time_major ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED
                                                : CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
                        plan_.T, plan_.B, static_cast<int>(width), zero_length_rows_.lengths(),
                        &padding_fill_);
  return Status();
}

Status RnnCall::DescribeState(int64_t width, TensorDescriptor* descriptor) {
  const cudnnStatus_t created = descriptor->Create();
  if (created != CUDNN_STATUS_SUCCESS) {
    return CudnnError(api_, created, "cudnnCreateTensorDescriptor", plan_.Describe());
  }
  const int dims[] = {plan_.dims().pseudo_layers(), plan_.B, static_cast<int>(width)};
  const int strides[] = {dims[1] * dims[2], dims[2], 1};
  RETURN_IF_CUDNN_ERROR(cudnnSetTensorNdDescriptor, descriptor->get(), plan_.config.data_type, 3,
                        dims, strides);
  return Status();
}

Status RnnCall::Prepare() {
  if (plan_.empty()) return Status();
  TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeRnn());
  TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeData(plan_.dims().I, &x_));
  TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeData(output_width(), &y_));
  TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeState(R(), &h_));
  if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeState(H(), &c_));
  weight_bytes_ = plan_.weights.size() * ElementSize(plan_.config.data_type);
  const cudnnForwardMode_t mode =
      plan_.config.is_training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  RETURN_IF_CUDNN_ERROR(cudnnGetRNNTempSpaceSizes, device_->handle(), rnn_.get(), mode, x_.get(),
                        &work_bytes_, &reserve_bytes_);
  if (!plan_.config.is_training) reserve_bytes_ = 0;
  return Status();
}

Status RnnCall::PassStatesThrough(const void* h, const void* c, void* to_h, void* to_c) {
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy(to_h, h, states_.bytes(R())));
  if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy(to_c, c, states_.bytes(H())));
  return Status();
}

Status RnnCall::Forward(const ForwardBuffers& buffers) {
  if (plan_.empty()) {
    return PassStatesThrough(buffers.input_h, buffers.input_c, buffers.output_h, buffers.output_c);
  }
  const void *h_in, *c_in = nullptr;
  void *h_out, *c_out = nullptr, *work;
  TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForReading(buffers.input_h, R(), &h_in));
  TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForWriting(buffers.output_h, R(), &h_out));
  if (lstm()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForReading(buffers.input_c, H(), &c_in));
    TF_CUDNN_RNN_RETURN_IF_ERROR(states_.ForWriting(buffers.output_c, H(), &c_out));
  }
  const void *x = buffers.input, *hx = h_in, *cx = c_in;
  // What the forward pass of training leaves in the reserve space, the backward pass multiplies.
  if (zero_length_rows_.any() && plan_.config.is_training) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutFirstSteps(plan_.dims().I, &x));
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutStates(R(), &hx));
    if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.WithoutStates(H(), &cx));
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(work_bytes_, &work));
  const cudnnForwardMode_t mode =
      plan_.config.is_training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  // Lengths in device memory are no longer needed from cuDNN 8.9.1 on.
  RETURN_IF_CUDNN_ERROR(cudnnRNNForward, device_->handle(), rnn_.get(), mode,
                        /*devSeqLengths=*/nullptr, x_.get(), x, y_.get(), buffers.output, h_.get(),
                        hx, h_out, c_.get(), cx, c_out, weight_bytes_, buffers.params, work_bytes_,
                        work, reserve_bytes_, reserve_bytes_ > 0 ? buffers.reserve_space : nullptr);
  if (zero_length_rows_.any()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.ZeroFirstSteps(buffers.output, output_width()));
    TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.CopyStates(h_in, R(), h_out));
    if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(zero_length_rows_.CopyStates(c_in, H(), c_out));
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(states_.Finish(h_out, R(), buffers.output_h));
  if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(states_.Finish(c_out, H(), buffers.output_c));
  return Status();
}

}  // namespace tf_cudnn_rnn
