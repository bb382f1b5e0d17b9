#include "cc/ops/shape_checks.h"

#include "tensorflow/core/lib/core/errors.h"

namespace tf_cudnn_rnn {
namespace {

// cuDNN's descriptors hold sizes in 32 bits.
constexpr int64_t kMaxSize = INT32_MAX;
constexpr char kSizeRange[] = "in [1, 2147483647]";

// Reads an attribute that only some of the ops have; leaves `value` alone where there is none.
template <typename Value>
absl::Status GetOptionalAttr(InferenceContext* c, const char* name, Value* value) {
  const tensorflow::AttrValue* found = nullptr;
  if (!c->GetAttr(name, &found).ok()) return absl::OkStatus();
  return c->GetAttr(name, value);
}

bool Known(DimensionHandle dim) { return InferenceContext::ValueKnown(dim); }
int64_t Value(DimensionHandle dim) { return InferenceContext::Value(dim); }

absl::Status CheckSize(const char* name, DimensionHandle dim) {
  if (!Known(dim) || (Value(dim) >= 1 && Value(dim) <= kMaxSize)) return absl::OkStatus();
  return Refuse(name, kSizeRange, Value(dim));
}

}  // namespace

absl::Status ReadConfig(InferenceContext* c, RnnConfig* config) {
  std::string rnn_mode, input_mode, direction;
  TF_RETURN_IF_ERROR(c->GetAttr("rnn_mode", &rnn_mode));
  TF_RETURN_IF_ERROR(c->GetAttr("input_mode", &input_mode));
  TF_RETURN_IF_ERROR(c->GetAttr("direction", &direction));
  TF_RETURN_IF_ERROR(c->GetAttr("dropout", &config->dropout));
  TF_RETURN_IF_ERROR(GetOptionalAttr(c, "num_proj", &config->num_proj));
  TF_RETURN_IF_ERROR(GetOptionalAttr(c, "is_training", &config->is_training));
  TF_RETURN_IF_ERROR(GetOptionalAttr(c, "time_major", &config->time_major));
  TF_RETURN_IF_ERROR(ToTensorFlow(ParseRnnMode(rnn_mode, &config->rnn_mode)));
  TF_RETURN_IF_ERROR(ToTensorFlow(ParseInputMode(input_mode, &config->input_mode)));
  TF_RETURN_IF_ERROR(ToTensorFlow(ParseDirection(direction, &config->direction)));
  return ToTensorFlow(CheckConfig(*config));
}

absl::Status CheckSizes(InferenceContext* c, const RnnConfig& config, LayoutSizes* sizes) {
  TF_RETURN_IF_ERROR(CheckSize(sizes->L_name, sizes->L));
  TF_RETURN_IF_ERROR(CheckSize(sizes->H_name, sizes->H));
  TF_RETURN_IF_ERROR(CheckSize(sizes->I_name, sizes->I));
  if (config.num_proj == 0) {
    sizes->R = sizes->H;
  } else {
    if (config.num_proj > kMaxSize) {
      return Refuse("num_proj", "at most num_units", config.num_proj);
    }
    if (Known(sizes->H) && config.num_proj > Value(sizes->H)) {
      return Refuse("num_proj", Concatenate("at most num_units, ", Value(sizes->H)),
                    config.num_proj);
    }
    sizes->R = c->MakeDim(config.num_proj);
  }
  if (config.input_mode != InputMode::kSkip) return absl::OkStatus();

  // The input takes the place of its product with a matrix, so it must be as wide as a gate.
  if (Known(sizes->H) && Known(sizes->R) && Value(sizes->R) < Value(sizes->H)) {
    return Refuse("num_proj", Concatenate("0 or num_units, ", Value(sizes->H), ", with skip_input"),
                  config.num_proj);
  }
  DimensionHandle merged;
  if (!c->Merge(sizes->I, sizes->H, &merged).ok()) {
    return Refuse(sizes->I_name, Concatenate("num_units, ", Value(sizes->H), ", with skip_input"),
                  Value(sizes->I));
  }
  sizes->I = sizes->H = merged;
  if (config.num_proj == 0) sizes->R = merged;
  return absl::OkStatus();
}

std::optional<bool> SkipsInput(const RnnConfig& config, const LayoutSizes& sizes) {
  if (config.input_mode != InputMode::kAutoSelect) return config.input_mode == InputMode::kSkip;
  if (!Known(sizes.I) || !Known(sizes.H) || !Known(sizes.R)) return std::nullopt;
  return Value(sizes.I) == Value(sizes.H) && Value(sizes.R) == Value(sizes.H);
}

absl::Status MakeLayout(const RnnConfig& config, const LayoutSizes& sizes,
                        std::optional<WeightLayout>* layout) {
  layout->reset();
  const std::optional<bool> skip_input = SkipsInput(config, sizes);
  if (!skip_input || !Known(sizes.L) || !Known(sizes.I) || !Known(sizes.H) || !Known(sizes.R)) {
    return absl::OkStatus();
  }
  RnnDims dims;
  dims.G = config.G();
  dims.L = static_cast<int>(Value(sizes.L));
  dims.D = config.D();
  dims.I = Value(sizes.I);
  dims.H = Value(sizes.H);
  dims.R = Value(sizes.R);
  dims.skip_input = *skip_input;
  const WeightLayout made(dims);
  if (made.Overflows()) {
    return ToTensorFlow(
        InvalidArgument("the size of params is more than fits in int64: num_layers ", dims.L,
                        ", num_units ", dims.H, ", input_size ", dims.I));
  }
  *layout = made;
  return absl::OkStatus();
}

absl::Status Match(InferenceContext* c, const std::string& name, ShapeHandle shape,
                   const std::string& letters, const std::vector<DimensionHandle*>& dims) {
  if (!c->RankKnown(shape)) return absl::OkStatus();
  std::vector<DimensionHandle> expected;
  for (const DimensionHandle* dim : dims) expected.push_back(*dim);

  if (c->Rank(shape) != static_cast<int>(dims.size())) {
    return Refuse(name, Concatenate("a tensor of rank ", dims.size(), " ", letters),
                  c->DebugString(shape));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    DimensionHandle merged;
    if (!c->Merge(*dims[i], c->Dim(shape, i), &merged).ok()) {
      return Refuse(
          name,
          Concatenate("a tensor of shape ", letters, " = ", c->DebugString(c->MakeShape(expected))),
          c->DebugString(shape));
    }
    *dims[i] = merged;
  }
  return absl::OkStatus();
}

absl::Status ReadSize(InferenceContext* c, int index, const char* name, DimensionHandle* size) {
  *size = c->UnknownDim();
  ShapeHandle scalar;
  if (!c->WithRank(c->input(index), 0, &scalar).ok()) {
    return Refuse(name, "a scalar", c->DebugString(c->input(index)));
  }
  const tensorflow::Tensor* constant = c->input_tensor(index);
  if (constant == nullptr) return absl::OkStatus();
  int64_t value = 0;
  TF_RETURN_IF_ERROR(c->GetScalarFromTensor(constant, &value));
  // A dimension cannot be negative, so what CheckSizes checks of the others is checked here.
  if (value < 1) return Refuse(name, kSizeRange, value);
  *size = c->MakeDim(value);
  return absl::OkStatus();
}

}  // namespace tf_cudnn_rnn
