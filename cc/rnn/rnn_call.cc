#include "cc/rnn/rnn_call.h"

#include <algorithm>
#include <utility>

#include "cc/rnn/cudnn_status.h"
#include "cc/rnn/widened_call.h"

// Calls a function of the table; every error tells the plan.
#define RETURN_IF_CUDNN_ERROR(function, ...) \
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api_, Describe(), function, __VA_ARGS__)

namespace tf_cudnn_rnn {
namespace {

// Versions of cuDNN are known that refuse more.
constexpr int kMostSteps = 65535;

}  // namespace

RnnCall::RnnCall(const RnnPlan& plan, Device* device, DropoutStates* dropout, RnnSetupCache* setups)
    : plan_(plan),
      device_(device),
      api_(device->api()),
      dropout_(dropout),
      setups_(setups),
      states_(plan, device),
      zero_length_rows_(plan, device),
      x_(api_),
      y_(api_),
      h_(api_),
      c_(api_) {}

RnnCall::~RnnCall() {
  if (setups_ != nullptr && setup_ != nullptr) setups_->Put(std::move(setup_));
}

bool RnnCall::relays_params() const {
  if (widened_ != nullptr) return widened_->relays_params();
  return setup_ != nullptr && setup_->relays_params();
}

std::string RnnCall::Describe() const {
  return plan_.Describe() +
         (plan_.T > kMostSteps ? "; some versions of cuDNN refuse more than 65535 time steps" : "");
}

Status RnnCall::DescribeData(int64_t width, RnnDataDescriptor* descriptor) {
  const cudnnStatus_t created = descriptor->Create();
  if (created != CUDNN_STATUS_SUCCESS) {
    return CudnnError(api_, created, "cudnnCreateRNNDataDescriptor", Describe());
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
    return CudnnError(api_, created, "cudnnCreateTensorDescriptor", Describe());
  }
  const int dims[] = {plan_.dims().pseudo_layers(), plan_.B, static_cast<int>(width)};
  // The first one may not fit in an int; it matters only where there are several pseudo-layers.
  const int64_t elements = int64_t{dims[1]} * dims[2];
  const int strides[] = {static_cast<int>(std::min<int64_t>(elements, INT32_MAX)), dims[2], 1};
  RETURN_IF_CUDNN_ERROR(cudnnSetTensorNdDescriptor, descriptor->get(), plan_.config.data_type, 3,
                        dims, strides);
  return Status();
}

Status RnnCall::Prepare(const void* params) {
  if (plan_.empty()) return Status();
  if (plan_.config.data_type == CUDNN_DATA_BFLOAT16 && !device_->traits().takes_bfloat16) {
    widened_ = std::make_unique<WidenedCall>(plan_, device_, dropout_, setups_);
    TF_CUDNN_RNN_RETURN_IF_ERROR(widened_->Prepare(params));
    reserve_bytes_ = widened_->reserve_bytes();
    return Status();
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Open());
  std::unique_ptr<RnnSetup> setup;
  if (setups_ != nullptr) setup = setups_->Take(plan_, device_->traits());
  if (setup == nullptr) {
    setup = std::make_unique<RnnSetup>(api_);
    TF_CUDNN_RNN_RETURN_IF_ERROR(setup->Create(plan_, device_, dropout_, params));
  }
  setup_ = std::move(setup);
  TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeData(plan_.dims().I, &x_));
  TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeData(output_width(), &y_));
  TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeState(R(), &h_));
  if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(DescribeState(H(), &c_));
  const cudnnForwardMode_t mode =
      plan_.config.is_training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  RETURN_IF_CUDNN_ERROR(cudnnGetRNNTempSpaceSizes, device_->handle(), setup_->rnn(), mode, x_.get(),
                        &work_bytes_, &reserve_bytes_);
  if (!plan_.config.is_training) reserve_bytes_ = 0;
  return Status();
}

Status RnnCall::PassStatesThrough(const void* h, const void* c, void* to_h, void* to_c) {
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy(to_h, h, states_.bytes(R())));
  if (lstm()) TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy(to_c, c, states_.bytes(H())));
  return Status();
}

Status RnnCall::Weights(const void* params, const void** space) {
  *space = params;
  if (!relays_params()) return Status();
  void* copy;
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(setup_->weight_bytes(), &copy));
  *space = copy;
  return setup_->ParamsToSpace(params, copy, device_);
}

Status RnnCall::Forward(const ForwardBuffers& buffers) {
  if (widened_ != nullptr) return widened_->Forward(buffers);
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
  const void* weights;
  TF_CUDNN_RNN_RETURN_IF_ERROR(Weights(buffers.params, &weights));
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(work_bytes_, &work));
  const cudnnForwardMode_t mode =
      plan_.config.is_training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  // Lengths in device memory are no longer needed from cuDNN 8.9.1 on.
  RETURN_IF_CUDNN_ERROR(cudnnRNNForward, device_->handle(), setup_->rnn(), mode,
                        /*devSeqLengths=*/nullptr, x_.get(), x, y_.get(), buffers.output, h_.get(),
                        hx, h_out, c_.get(), cx, c_out, setup_->weight_bytes(), weights,
                        work_bytes_, work, reserve_bytes_,
                        reserve_bytes_ > 0 ? buffers.reserve_space : nullptr);
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
