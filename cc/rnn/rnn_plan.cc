#include "cc/rnn/rnn_plan.h"

#include <limits>

namespace tf_cudnn_rnn {
namespace {

// cuDNN takes every size and stride of a descriptor as an int.
constexpr int64_t kMaxSize = std::numeric_limits<int>::max();

Status CheckRank(const char* argument, const Shape& shape, int rank, const char* letters) {
  if (shape.rank() == rank) return Status();
  return MustBe(argument, Concatenate("a tensor of rank ", rank, " ", letters), shape);
}

Status CheckShape(const char* argument, const Shape& shape, const Shape& expected) {
  if (shape == expected) return Status();
  return MustBe(argument, Concatenate("a tensor of shape ", expected), shape);
}

Status CheckSizes(const char* argument, const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) > kMaxSize) {
      return MustBe(argument, Concatenate("a tensor with dimensions of at most ", kMaxSize), shape);
    }
  }
  return Status();
}

// [first, B, width] or, batch-major, [B, first, width].
Shape Layout(const RnnConfig& config, int64_t first, int64_t batch, int64_t width) {
  return config.time_major ? Shape{first, batch, width} : Shape{batch, first, width};
}

// L·D is the states' dimension that is not B, H and R their widths. Sets L, R, H of `dims`.
Status PlanStates(const RnnConfig& config, const ForwardArguments& arguments, int64_t batch,
                  RnnDims* dims) {
  const char* letters = config.time_major ? "[L*D,B,R]" : "[B,L*D,R]";
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckRank("input_h", arguments.input_h, 3, letters));
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckSizes("input_h", arguments.input_h));
  if (config.lstm()) {
    letters = config.time_major ? "[L*D,B,H]" : "[B,L*D,H]";
    TF_CUDNN_RNN_RETURN_IF_ERROR(CheckRank("input_c", arguments.input_c, 3, letters));
    TF_CUDNN_RNN_RETURN_IF_ERROR(CheckSizes("input_c", arguments.input_c));
  }
  const int64_t pseudo_layers = arguments.input_h.dim(config.time_major ? 0 : 1);
  if (pseudo_layers < 1 || pseudo_layers % config.D() != 0) {
    return MustBe("input_h",
                  Concatenate("a tensor whose dimension ", config.time_major ? 0 : 1,
                              ", layers times directions, is a positive multiple of ", config.D()),
                  arguments.input_h);
  }
  dims->L = static_cast<int>(pseudo_layers / config.D());
  if (config.num_proj > 0) {
    dims->H = arguments.input_c.dim(2);
    if (config.num_proj > dims->H) {
      return MustBe("num_proj",
                    Concatenate("at most num_units, the last dimension of input_c, ", dims->H),
                    config.num_proj);
    }
    dims->R = config.num_proj;
  } else {
    dims->H = dims->R = arguments.input_h.dim(2);
    if (dims->H < 1) {
      return MustBe("input_h", "a tensor whose last dimension, num_units, is at least 1",
                    arguments.input_h);
    }
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(
      CheckShape("input_h", arguments.input_h, Layout(config, pseudo_layers, batch, dims->R)));
  if (config.lstm()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        CheckShape("input_c", arguments.input_c, Layout(config, pseudo_layers, batch, dims->H)));
  }
  // The strides of states and the width of the output.
  if (batch * dims->H > kMaxSize) {
    return InvalidArgument("batch size times num_units must be at most ", kMaxSize, ", got ", batch,
                           " times ", dims->H);
  }
  if (dims->D * dims->R > kMaxSize) {
    return MustBe(
        "input_h",
        Concatenate("a tensor whose last dimension times the directions is at most ", kMaxSize),
        arguments.input_h);
  }
  return Status();
}

Status PlanInputMode(const RnnConfig& config, const Shape& input, RnnDims* dims) {
  switch (config.input_mode) {
    case InputMode::kLinear:
      dims->skip_input = false;
      break;
    case InputMode::kAutoSelect:
      dims->skip_input = dims->I == dims->H && !dims->projects();
      break;
    case InputMode::kSkip:
      dims->skip_input = true;
      if (dims->projects()) {
        return MustBe("num_proj", Concatenate("0 or num_units, ", dims->H, ", with skip_input"),
                      config.num_proj);
      }
      if (dims->I != dims->H) {
        return MustBe("input",
                      Concatenate("a tensor whose last dimension, input_size, is num_units, ",
                                  dims->H, ", with skip_input"),
                      input);
      }
      break;
  }
  return Status();
}

Status PlanParams(const Shape& params, const RnnDims& dims, WeightLayout* weights) {
  *weights = WeightLayout(dims);
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckRank("params", params, 1, "[params_size]"));
  if (weights->Overflows()) {
    return InvalidArgument("params must be a tensor of shape [params_size], but params_size is ",
                           "more than fits in int64; params is ", params);
  }
  return CheckShape("params", params, {weights->size()});
}

Status PlanLengths(const ForwardArguments& arguments, RnnPlan* plan) {
  if (arguments.sequence_lengths_values == nullptr) {
    plan->uniform_lengths.assign(plan->B, plan->T);
    plan->sequence_lengths = plan->uniform_lengths.data();
    plan->any_zero_length = plan->T == 0 && plan->B > 0;
    return Status();
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(
      CheckShape("sequence_lengths", arguments.sequence_lengths, {plan->B}));
  const int32_t* lengths = arguments.sequence_lengths_values;
  for (int b = 0; b < plan->B; ++b) {
    if (lengths[b] < 0 || lengths[b] > plan->T) {
      return MustBe(Concatenate("sequence_lengths[", b, "]"), Concatenate("in [0, ", plan->T, "]"),
                    lengths[b]);
    }
    plan->any_zero_length |= lengths[b] == 0;
    plan->any_padding |= lengths[b] < plan->T;
  }
  plan->sequence_lengths = lengths;
  return Status();
}

}  // namespace

Status PlanForward(const RnnConfig& config, const ForwardArguments& arguments, RnnPlan* plan) {
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckConfig(config));
  plan->config = config;
  const Shape& input = arguments.input;
  TF_CUDNN_RNN_RETURN_IF_ERROR(
      CheckRank("input", input, 3, config.time_major ? "[T,B,I]" : "[B,T,I]"));
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckSizes("input", input));
  const int64_t steps = input.dim(config.time_major ? 0 : 1);
  const int64_t batch = input.dim(config.time_major ? 1 : 0);
  plan->T = static_cast<int>(steps);
  plan->B = static_cast<int>(batch);

  RnnDims dims;
  dims.G = config.G();
  dims.D = config.D();
  dims.I = input.dim(2);
  if (dims.I < 1) {
    return MustBe("input", "a tensor whose last dimension, input_size, is at least 1", input);
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(PlanStates(config, arguments, batch, &dims));
  TF_CUDNN_RNN_RETURN_IF_ERROR(PlanInputMode(config, input, &dims));
  TF_CUDNN_RNN_RETURN_IF_ERROR(PlanParams(arguments.params, dims, &plan->weights));

  // In bytes, and for any element type: whoever allocates the output must be able to count it.
  const __int128 output_elements = __int128{steps} * batch * dims.D * dims.R;
  if (output_elements > std::numeric_limits<int64_t>::max() / 8) {
    return InvalidArgument("output would have more elements than can be counted: ", steps, " x ",
                           batch, " x ", dims.D * dims.R);
  }
  plan->input_shape = input;
  plan->input_h_shape = arguments.input_h;
  plan->input_c_shape = arguments.input_c;
  plan->output_shape = Layout(config, steps, batch, dims.D * dims.R);
  plan->output_c_shape = config.lstm() ? arguments.input_c : Shape{0};
  return PlanLengths(arguments, plan);
}

Status PlanBackward(const RnnConfig& config, const ForwardArguments& arguments,
                    const BackwardArguments& backward, RnnPlan* plan) {
  TF_CUDNN_RNN_RETURN_IF_ERROR(PlanForward(config, arguments, plan));
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckShape("output", backward.output, plan->output_shape));
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckShape("output_h", backward.output_h, plan->input_h_shape));
  TF_CUDNN_RNN_RETURN_IF_ERROR(
      CheckShape("output_backprop", backward.output_backprop, plan->output_shape));
  TF_CUDNN_RNN_RETURN_IF_ERROR(
      CheckShape("output_h_backprop", backward.output_h_backprop, plan->input_h_shape));
  if (config.lstm()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(CheckShape("output_c", backward.output_c, plan->input_c_shape));
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        CheckShape("output_c_backprop", backward.output_c_backprop, plan->input_c_shape));
  }
  TF_CUDNN_RNN_RETURN_IF_ERROR(
      CheckRank("reserve_space", backward.reserve_space, 1, "[reserve_size]"));
  return CheckRank("host_reserved", backward.host_reserved, 1, "[0]");
}

RnnPlan::RnnPlan(const RnnPlan& plan, cudnnDataType_t data_type)
    : config(plan.config),
      T(plan.T),
      B(plan.B),
      weights(plan.weights),
      input_shape(plan.input_shape),
      input_h_shape(plan.input_h_shape),
      input_c_shape(plan.input_c_shape),
      output_shape(plan.output_shape),
      output_c_shape(plan.output_c_shape),
      sequence_lengths(plan.sequence_lengths),
      any_zero_length(plan.any_zero_length),
      any_padding(plan.any_padding) {
  config.data_type = data_type;
}

std::string RnnPlan::Describe() const {
  const RnnDims& d = dims();
  return Concatenate(RnnModeName(config.rnn_mode), " ", DataTypeName(config.data_type), ", ",
                     DirectionName(config.direction), ", ",
                     d.skip_input ? "skip_input" : "linear_input",
                     config.is_training ? ", training" : ", inference", ", dropout ",
                     config.dropout, config.time_major ? ", time-major" : ", batch-major",
                     ", T=", T, " B=", B, " I=", d.I, " H=", d.H, " R=", d.R, " L=", d.L);
}

}  // namespace tf_cudnn_rnn
