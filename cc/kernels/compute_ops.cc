// The bodies of the forward and backprop ops.
#include <mutex>

#include "cc/kernels/rnn_ops_kernels.h"
#include "cc/kernels/tensors.h"
#include "cc/rnn/rnn_call.h"
#include "tensorflow/core/lib/random/random.h"
#include "tensorflow/core/util/determinism.h"

namespace tf_cudnn_rnn {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

constexpr int kInput = 0, kInputH = 1, kInputC = 2, kParams = 3, kLengths = 4;
constexpr int32_t kNoLength = 0;

absl::Status AllocateOutput(OpKernelContext* ctx, Device* device, int index, const Shape& shape,
                            void** data) {
  Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(ctx->allocate_output(index, ToTensorShape(shape), &tensor));
  *data = tensor->data();
  device->WillWrite(*data, tensor->TotalBytes());
  return absl::OkStatus();
}

void LogRelaying(const RnnCall& call) {
  static std::once_flag once;
  if (!call.relays_params()) return;
  std::call_once(once, [] {
    LOG(WARNING) << "This cuDNN keeps RNN weights in another order than params; each call copies "
                    "them.";
  });
}

}  // namespace

ComputeBody::ComputeBody(OpKernelConstruction* ctx) {
  OP_REQUIRES_OK(ctx, ReadConfig(ctx, &config_));
  int64_t seed = 0, seed2 = 0;
  OP_REQUIRES_OK(ctx, ctx->GetAttr("seed", &seed));
  OP_REQUIRES_OK(ctx, ctx->GetAttr("seed2", &seed2));
  has_lengths_ = ctx->num_inputs() == 5 || ctx->num_inputs() == 13;
  unseeded_ = seed == 0 && seed2 == 0;
  dropout_.emplace(config_.dropout,
                   unseeded_ ? tensorflow::random::New64() : CombineSeeds(seed, seed2));
}

ForwardArguments ComputeBody::Arguments(OpKernelContext* ctx) const {
  ForwardArguments arguments;
  arguments.input = ShapeOf(ctx->input(kInput));
  arguments.input_h = ShapeOf(ctx->input(kInputH));
  arguments.input_c = ShapeOf(ctx->input(kInputC));
  arguments.params = ShapeOf(ctx->input(kParams));
  if (has_lengths_) {
    const Tensor& lengths = ctx->input(kLengths);
    arguments.sequence_lengths = ShapeOf(lengths);
    // A tensor without elements has no memory, and null would mean that there is no such argument.
    arguments.sequence_lengths_values =
        lengths.NumElements() > 0 ? static_cast<const int32_t*>(lengths.data()) : &kNoLength;
  }
  return arguments;
}

absl::Status ForwardBody::Run(OpKernelContext* ctx, Device* device) {
  RnnPlan plan;
  TF_RETURN_IF_ERROR(ToTensorFlow(PlanForward(config(), Arguments(ctx), &plan)));
  if (plan.drops() && unseeded() && tensorflow::OpDeterminismRequired()) {
    return absl::InvalidArgumentError(Concatenate(
        "seed or seed2 must be other than 0 where ops have to be deterministic and dropout is ",
        config().dropout, ", got 0 and 0"));
  }
  RnnCall call(plan, device, dropout(), setups());
  TF_RETURN_IF_ERROR(ToTensorFlow(call.Prepare(ctx->input(kParams).data())));

  LogRelaying(call);

  ForwardBuffers buffers;
  buffers.input = ctx->input(kInput).data();
  buffers.input_h = ctx->input(kInputH).data();
  buffers.input_c = ctx->input(kInputC).data();
  buffers.params = ctx->input(kParams).data();
  TF_RETURN_IF_ERROR(AllocateOutput(ctx, device, 0, plan.output_shape, &buffers.output));
  TF_RETURN_IF_ERROR(AllocateOutput(ctx, device, 1, plan.input_h_shape, &buffers.output_h));
  TF_RETURN_IF_ERROR(AllocateOutput(ctx, device, 2, plan.output_c_shape, &buffers.output_c));
  TF_RETURN_IF_ERROR(
      AllocateOutput(ctx, device, 3, {call.reserve_elements()}, &buffers.reserve_space));
  if (has_host_reserved_) {
    void* host_reserved;
    TF_RETURN_IF_ERROR(AllocateOutput(ctx, device, 4, {0}, &host_reserved));
  }
  return ToTensorFlow(call.Forward(buffers));
}

absl::Status BackwardBody::Run(OpKernelContext* ctx, Device* device) {
  int index = has_lengths() ? kLengths + 1 : kParams + 1;
  const Tensor& output = ctx->input(index++);
  const Tensor& output_h = ctx->input(index++);
  const Tensor& output_c = ctx->input(index++);
  const Tensor& output_backprop = ctx->input(index++);
  const Tensor& output_h_backprop = ctx->input(index++);
  const Tensor& output_c_backprop = ctx->input(index++);
  const Tensor& reserve_space = ctx->input(index++);

  BackwardArguments backward;
  backward.output = ShapeOf(output);
  backward.output_h = ShapeOf(output_h);
  backward.output_c = ShapeOf(output_c);
  backward.output_backprop = ShapeOf(output_backprop);
  backward.output_h_backprop = ShapeOf(output_h_backprop);
  backward.output_c_backprop = ShapeOf(output_c_backprop);
  backward.reserve_space = ShapeOf(reserve_space);
  if (has_host_reserved_) backward.host_reserved = ShapeOf(ctx->input(index));
  RnnPlan plan;
  TF_RETURN_IF_ERROR(ToTensorFlow(PlanBackward(config(), Arguments(ctx), backward, &plan)));
  RnnCall call(plan, device, dropout(), setups());
  TF_RETURN_IF_ERROR(ToTensorFlow(call.Prepare(ctx->input(kParams).data())));

  BackwardBuffers buffers;
  buffers.input = ctx->input(kInput).data();
  buffers.input_h = ctx->input(kInputH).data();
  buffers.input_c = ctx->input(kInputC).data();
  buffers.params = ctx->input(kParams).data();
  buffers.output = output.data();
  buffers.output_backprop = output_backprop.data();
  buffers.output_h_backprop = output_h_backprop.data();
  buffers.output_c_backprop = output_c_backprop.data();
  buffers.reserve_space = reserve_space.data();
  TF_RETURN_IF_ERROR(AllocateOutput(ctx, device, 0, plan.input_shape, &buffers.input_backprop));
  TF_RETURN_IF_ERROR(AllocateOutput(ctx, device, 1, plan.input_h_shape, &buffers.input_h_backprop));
  // Of other modes than lstm input_c may have any shape.
  Tensor* input_c_backprop = nullptr;
  TF_RETURN_IF_ERROR(ctx->allocate_output(2, ctx->input(kInputC).shape(), &input_c_backprop));
  buffers.input_c_backprop = input_c_backprop->data();
  if (!config().lstm()) {
    TF_RETURN_IF_ERROR(
        ToTensorFlow(device->Zero(buffers.input_c_backprop, input_c_backprop->TotalBytes())));
  }
  TF_RETURN_IF_ERROR(
      AllocateOutput(ctx, device, 3, {plan.weights.size()}, &buffers.params_backprop));
  return ToTensorFlow(call.Backward(buffers, backward.reserve_space));
}

}  // namespace tf_cudnn_rnn
