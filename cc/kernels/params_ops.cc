// The bodies of the ops on params: its size, and the conversions to and from the canonical lists.
#include <cmath>
#include <limits>

#include "cc/kernels/rnn_ops_kernels.h"
#include "cc/kernels/tensors.h"

namespace tf_cudnn_rnn {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;

namespace {

constexpr int kParams = 3;

Status ReadSizeInput(OpKernelContext* ctx, int index, const char* name, int64_t* size) {
  const Tensor& tensor = ctx->input(index);
  return ReadSize(name, ShapeOf(tensor), static_cast<const int32_t*>(tensor.data()), size);
}

std::vector<CanonicalInput> CanonicalInputs(const OpInputList& list) {
  std::vector<CanonicalInput> inputs;
  inputs.reserve(list.size());
  for (const Tensor& tensor : list) inputs.push_back({ShapeOf(tensor), tensor.data()});
  return inputs;
}

}  // namespace

absl::Status ReadConfig(OpKernelConstruction* ctx, RnnConfig* config) {
  std::string rnn_mode, input_mode, direction;
  TF_RETURN_IF_ERROR(ctx->GetAttr("rnn_mode", &rnn_mode));
  TF_RETURN_IF_ERROR(ctx->GetAttr("input_mode", &input_mode));
  TF_RETURN_IF_ERROR(ctx->GetAttr("direction", &direction));
  TF_RETURN_IF_ERROR(ToTensorFlow(ParseRnnMode(rnn_mode, &config->rnn_mode)));
  TF_RETURN_IF_ERROR(ToTensorFlow(ParseInputMode(input_mode, &config->input_mode)));
  TF_RETURN_IF_ERROR(ToTensorFlow(ParseDirection(direction, &config->direction)));
  TF_RETURN_IF_ERROR(ctx->GetAttr("dropout", &config->dropout));
  // TensorFlow's own threads take subnormal numbers for 0 and others do not; forward and backward
  // may run on either.
  if (std::abs(config->dropout) < std::numeric_limits<float>::min()) config->dropout = 0;
  if (ctx->HasAttr("num_proj")) {
    TF_RETURN_IF_ERROR(ctx->GetAttr("num_proj", &config->num_proj));
  }
  if (ctx->HasAttr("is_training")) {
    TF_RETURN_IF_ERROR(ctx->GetAttr("is_training", &config->is_training));
  }
  if (ctx->HasAttr("time_major")) {
    TF_RETURN_IF_ERROR(ctx->GetAttr("time_major", &config->time_major));
  }
  tensorflow::DataType type;
  TF_RETURN_IF_ERROR(ctx->GetAttr("T", &type));
  switch (type) {
    case tensorflow::DT_FLOAT:
      config->data_type = CUDNN_DATA_FLOAT;
      return absl::OkStatus();
    case tensorflow::DT_DOUBLE:
      config->data_type = CUDNN_DATA_DOUBLE;
      return absl::OkStatus();
    case tensorflow::DT_HALF:
      config->data_type = CUDNN_DATA_HALF;
      return absl::OkStatus();
    case tensorflow::DT_BFLOAT16:
      config->data_type = CUDNN_DATA_BFLOAT16;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          Concatenate("T must be one of bfloat16, half, float, double, got ",
                      tensorflow::DataTypeString(type)));
  }
}

ParamsBody::ParamsBody(OpKernelConstruction* ctx) {
  OP_REQUIRES_OK(ctx, ReadConfig(ctx, &config_));
  has_one_count_ = ctx->HasAttr("num_params");
  if (has_one_count_) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("num_params", &num_weights_));
    num_biases_ = num_weights_;
  } else if (ctx->HasAttr("num_params_weights")) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("num_params_weights", &num_weights_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("num_params_biases", &num_biases_));
  }
}

Status ParamsBody::Layout(OpKernelContext* ctx, ParamsLayout* layout) const {
  int64_t num_layers, num_units, input_size;
  TF_CUDNN_RNN_RETURN_IF_ERROR(ReadSizeInput(ctx, 0, "num_layers", &num_layers));
  TF_CUDNN_RNN_RETURN_IF_ERROR(ReadSizeInput(ctx, 1, "num_units", &num_units));
  TF_CUDNN_RNN_RETURN_IF_ERROR(ReadSizeInput(ctx, 2, "input_size", &input_size));
  return ParamsLayout::Create(config_, num_layers, num_units, input_size, layout);
}

Status ParamsBody::CheckCounts(const ParamsLayout& layout) const {
  return layout.CheckCounts(has_one_count_ ? "num_params" : "num_params_weights", num_weights_,
                            has_one_count_ ? "num_params" : "num_params_biases", num_biases_);
}

absl::Status ParamsSizeBody::Run(OpKernelContext* ctx) {
  ParamsLayout layout;
  TF_RETURN_IF_ERROR(ToTensorFlow(Layout(ctx, &layout)));
  Tensor* params_size = nullptr;
  TF_RETURN_IF_ERROR(ctx->allocate_output(0, tensorflow::TensorShape({1}), &params_size));
  if (params_size->dtype() == tensorflow::DT_INT64) {
    params_size->flat<int64_t>()(0) = layout.size();
    return absl::OkStatus();
  }
  if (layout.size() > std::numeric_limits<int32_t>::max()) {
    return ToTensorFlow(
        MustBe("params_size",
               Concatenate("at most ", std::numeric_limits<int32_t>::max(), " when S is int32"),
               layout.size()));
  }
  params_size->flat<int32_t>()(0) = static_cast<int32_t>(layout.size());
  return absl::OkStatus();
}

absl::Status CanonicalToParamsBody::Run(OpKernelContext* ctx, Device* device) {
  ParamsLayout layout;
  TF_RETURN_IF_ERROR(ToTensorFlow(Layout(ctx, &layout)));
  TF_RETURN_IF_ERROR(ToTensorFlow(CheckCounts(layout)));
  OpInputList weights, biases;
  TF_RETURN_IF_ERROR(ctx->input_list("weights", &weights));
  TF_RETURN_IF_ERROR(ctx->input_list("biases", &biases));
  const std::vector<CanonicalInput> weight_inputs = CanonicalInputs(weights);
  const std::vector<CanonicalInput> bias_inputs = CanonicalInputs(biases);
  TF_RETURN_IF_ERROR(ToTensorFlow(CheckCanonical(layout, weight_inputs, bias_inputs)));
  Tensor* params = nullptr;
  TF_RETURN_IF_ERROR(ctx->allocate_output(0, ToTensorShape({layout.size()}), &params));
  return ToTensorFlow(PackParams(layout, ElementSize(config().data_type), weight_inputs,
                                 bias_inputs, params->data(), device));
}

absl::Status ParamsToCanonicalBody::Run(OpKernelContext* ctx, Device* device) {
  ParamsLayout layout;
  TF_RETURN_IF_ERROR(ToTensorFlow(Layout(ctx, &layout)));
  TF_RETURN_IF_ERROR(ToTensorFlow(CheckCounts(layout)));
  const Tensor& params = ctx->input(kParams);
  if (ShapeOf(params) != Shape{layout.size()}) {
    return ToTensorFlow(
        MustBe("params", Concatenate("a tensor of shape ", Shape{layout.size()}), ShapeOf(params)));
  }
  OpOutputList weights, biases;
  TF_RETURN_IF_ERROR(ctx->output_list("weights", &weights));
  TF_RETURN_IF_ERROR(ctx->output_list("biases", &biases));
  const size_t element_size = ElementSize(config().data_type);
  for (int i = 0; i < weights.size(); ++i) {
    Tensor* weight = nullptr;
    TF_RETURN_IF_ERROR(weights.allocate(i, ToTensorShape(layout.weight_shape(i)), &weight));
    TF_RETURN_IF_ERROR(ToTensorFlow(
        UnpackPiece(layout.weight(i), element_size, params.data(), weight->data(), device)));
  }
  for (int i = 0; i < biases.size(); ++i) {
    Tensor* bias = nullptr;
    TF_RETURN_IF_ERROR(biases.allocate(i, ToTensorShape(layout.bias_shape(i)), &bias));
    TF_RETURN_IF_ERROR(ToTensorFlow(
        UnpackPiece(layout.bias(i), element_size, params.data(), bias->data(), device)));
  }
  return absl::OkStatus();
}

}  // namespace tf_cudnn_rnn
