// Shape functions of the ops on params: its size, and the conversions to and from canonical lists.
#include "cc/ops/shape_checks.h"
#include "cc/ops/shape_fns.h"

namespace tf_cudnn_rnn {
namespace {

// The attributes that hold the lengths of the lists: one for both in V1.
struct ListAttrs {
  const char* weights;
  const char* biases;
};

constexpr ListAttrs kV1{"num_params", "num_params"};
constexpr ListAttrs kV2{"num_params_weights", "num_params_biases"};

absl::Status ReadSizes(InferenceContext* c, const RnnConfig& config, LayoutSizes* sizes) {
  TF_RETURN_IF_ERROR(ReadSize(c, 0, "num_layers", &sizes->L));
  TF_RETURN_IF_ERROR(ReadSize(c, 1, "num_units", &sizes->H));
  TF_RETURN_IF_ERROR(ReadSize(c, 2, "input_size", &sizes->I));
  return CheckSizes(c, config, sizes);
}

// The two lists of a conversion: their lengths, and the shape of every entry.
class Lists {
 public:
  Lists(InferenceContext* c, const RnnConfig& config, LayoutSizes* sizes)
      : c_(c), config_(config), sizes_(*sizes), first_width_(c->UnknownDim()) {}

  // Checks the number of biases against the sizes; sets the number of layers from it where that is
  // unknown.
  absl::Status ReadNumBiases(const char* attr);
  // The same for the weights. After the biases, and after num_units has been read from their
  // shapes.
  absl::Status ReadNumWeights(const char* attr);

  int64_t num_weights() const { return pseudo_layers_ * Matrices(); }
  int64_t num_biases() const { return pseudo_layers_ * 2 * config_.G(); }

  // The dimensions of weights[i], to be read or to be added to.
  struct Entry {
    const char* letters;
    DimensionHandle* rows;
    DimensionHandle* columns;
  };
  absl::Status Weight(int64_t i, Entry* entry);

 private:
  // Matrices of a pseudo-layer.
  int64_t Matrices() const { return 2 * config_.G() + (projects_ ? 1 : 0); }

  InferenceContext* c_;
  const RnnConfig& config_;
  LayoutSizes& sizes_;
  int64_t pseudo_layers_ = 0;
  bool projects_ = false;
  DimensionHandle first_width_;  // of layer 0's input matrices, unless it is input_size
  DimensionHandle later_width_;  // of the other layers'
};

absl::Status Lists::ReadNumBiases(const char* attr) {
  int64_t length = 0;
  TF_RETURN_IF_ERROR(c_->GetAttr(attr, &length));
  const int64_t per_layer = int64_t{2} * config_.D() * config_.G();
  if (c_->ValueKnown(sizes_.L)) {
    const int64_t expected = c_->Value(sizes_.L) * per_layer;
    if (length != expected) {
      return Refuse(attr, Concatenate(expected, " with num_layers = ", c_->Value(sizes_.L)),
                    length);
    }
  } else if (length < per_layer || length % per_layer != 0) {
    return Refuse(attr, Concatenate("a positive multiple of ", per_layer), length);
  }
  pseudo_layers_ = length / (2 * config_.G());
  sizes_.L = c_->MakeDim(pseudo_layers_ / config_.D());
  return absl::OkStatus();
}

absl::Status Lists::ReadNumWeights(const char* attr) {
  int64_t length = 0;
  TF_RETURN_IF_ERROR(c_->GetAttr(attr, &length));
  if (config_.num_proj > 0 && !c_->ValueKnown(sizes_.H)) {
    // num_proj = num_units is no projection, so only the length tells.
    projects_ = length == pseudo_layers_ * (2 * config_.G() + 1);
    if (!projects_) sizes_.H = c_->MakeDim(config_.num_proj);
  } else {
    projects_ = config_.num_proj > 0 && config_.num_proj < c_->Value(sizes_.H);
  }
  if (length != num_weights()) {
    return Refuse(attr,
                  Concatenate(num_weights(), " with num_layers = ", c_->Value(sizes_.L),
                              projects_ ? " and a projection" : " and no projection"),
                  length);
  }
  return absl::OkStatus();
}

absl::Status Lists::Weight(int64_t i, Entry* entry) {
  const int64_t p = i / Matrices(), id = i % Matrices();
  DimensionHandle* const R = config_.num_proj == 0 ? &sizes_.H : &sizes_.R;
  if (id == 2 * config_.G()) {
    *entry = {"[R,H]", R, &sizes_.H};
  } else if (id >= config_.G()) {
    *entry = {"[H,R]", &sizes_.H, R};
  } else if (p >= config_.D()) {
    TF_RETURN_IF_ERROR(c_->Multiply(*R, config_.D(), &later_width_));
    *entry = {"[H,D*R]", &sizes_.H, &later_width_};
  } else {
    const std::optional<bool> skips = SkipsInput(config_, sizes_);
    if (skips && *skips) first_width_ = c_->MakeDim(0);
    *entry = {"[H,W_in]", &sizes_.H, skips && !*skips ? &sizes_.I : &first_width_};
  }
  return absl::OkStatus();
}

absl::Status ParamsToCanonical(InferenceContext* c, const ListAttrs& names) {
  RnnConfig config;
  TF_RETURN_IF_ERROR(ReadConfig(c, &config));
  LayoutSizes sizes(c);
  TF_RETURN_IF_ERROR(ReadSizes(c, config, &sizes));
  Lists lists(c, config, &sizes);
  TF_RETURN_IF_ERROR(lists.ReadNumBiases(names.biases));
  TF_RETURN_IF_ERROR(lists.ReadNumWeights(names.weights));

  std::optional<WeightLayout> layout;
  TF_RETURN_IF_ERROR(MakeLayout(config, sizes, &layout));
  DimensionHandle params_size = layout ? c->MakeDim(layout->size()) : c->UnknownDim();
  TF_RETURN_IF_ERROR(Match(c, "params", c->input(3), "[params_size]", {&params_size}));

  std::vector<ShapeHandle> weights;
  for (int64_t i = 0; i < lists.num_weights(); ++i) {
    Lists::Entry entry;
    TF_RETURN_IF_ERROR(lists.Weight(i, &entry));
    weights.push_back(c->Matrix(*entry.rows, *entry.columns));
  }
  TF_RETURN_IF_ERROR(c->set_output("weights", weights));
  return c->set_output("biases", std::vector<ShapeHandle>(lists.num_biases(), c->Vector(sizes.H)));
}

absl::Status CanonicalToParams(InferenceContext* c, const ListAttrs& names) {
  RnnConfig config;
  TF_RETURN_IF_ERROR(ReadConfig(c, &config));
  LayoutSizes sizes(c);
  TF_RETURN_IF_ERROR(ReadSizes(c, config, &sizes));
  Lists lists(c, config, &sizes);
  std::vector<ShapeHandle> weights, biases;
  TF_RETURN_IF_ERROR(c->input("weights", &weights));
  TF_RETURN_IF_ERROR(c->input("biases", &biases));
  TF_RETURN_IF_ERROR(lists.ReadNumBiases(names.biases));
  for (size_t i = 0; i < biases.size(); ++i) {
    TF_RETURN_IF_ERROR(Match(c, Concatenate("biases[", i, "]"), biases[i], "[H]", {&sizes.H}));
  }
  TF_RETURN_IF_ERROR(CheckSizes(c, config, &sizes));
  TF_RETURN_IF_ERROR(lists.ReadNumWeights(names.weights));
  for (size_t i = 0; i < weights.size(); ++i) {
    Lists::Entry entry;
    TF_RETURN_IF_ERROR(lists.Weight(i, &entry));
    TF_RETURN_IF_ERROR(Match(c, Concatenate("weights[", i, "]"), weights[i], entry.letters,
                             {entry.rows, entry.columns}));
  }
  // With what the shapes of the weights have added.
  TF_RETURN_IF_ERROR(CheckSizes(c, config, &sizes));
  std::optional<WeightLayout> layout;
  TF_RETURN_IF_ERROR(MakeLayout(config, sizes, &layout));
  c->set_output(0, layout ? c->Vector(layout->size()) : c->UnknownShapeOfRank(1));
  return absl::OkStatus();
}

}  // namespace

absl::Status CudnnRnnParamsSizeShape(InferenceContext* c) {
  RnnConfig config;
  TF_RETURN_IF_ERROR(ReadConfig(c, &config));
  LayoutSizes sizes(c);
  TF_RETURN_IF_ERROR(ReadSizes(c, config, &sizes));
  std::optional<WeightLayout> layout;
  TF_RETURN_IF_ERROR(MakeLayout(config, sizes, &layout));
  tensorflow::DataType type;
  TF_RETURN_IF_ERROR(c->GetAttr("S", &type));
  if (layout && type == tensorflow::DT_INT32 && layout->size() > INT32_MAX) {
    return Refuse("params_size", Concatenate("at most ", INT32_MAX, " when S is int32"),
                  layout->size());
  }
  c->set_output(0, c->Vector(1));
  return absl::OkStatus();
}

absl::Status CudnnRnnParamsToCanonicalShape(InferenceContext* c) {
  return ParamsToCanonical(c, kV1);
}
absl::Status CudnnRnnParamsToCanonicalV2Shape(InferenceContext* c) {
  return ParamsToCanonical(c, kV2);
}
absl::Status CudnnRnnCanonicalToParamsShape(InferenceContext* c) {
  return CanonicalToParams(c, kV1);
}
absl::Status CudnnRnnCanonicalToParamsV2Shape(InferenceContext* c) {
  return CanonicalToParams(c, kV2);
}

}  // namespace tf_cudnn_rnn
