// Shape functions of the forward and the backprop ops.
#include "cc/ops/shape_checks.h"
#include "cc/ops/shape_fns.h"

namespace tf_cudnn_rnn {
namespace {

// What V1, V2 and V3 of an op differ in, besides attributes.
struct Version {
  bool has_lengths;        // an input sequence_lengths after params
  bool has_host_reserved;  // forward: a fifth output; backprop: a last input
};

constexpr Version kV1{false, false}, kV2{false, true}, kV3{true, true};

constexpr int kInput = 0, kInputH = 1, kInputC = 2, kParams = 3, kLengths = 4;

// The dimensions of a node's inputs, with what all of them together tell, and the shapes that
// follow from them.
class Shapes {
 public:
  Shapes(InferenceContext* c, const RnnConfig& config) : c_(c), config_(config), sizes_(c) {
    T_ = c->UnknownDim();
    B_ = c->UnknownDim();
    LD_ = c->UnknownDim();
    sizes_.L_name = "the number of layers in input_h";
    sizes_.I_name = "the last dimension of input";
    sizes_.H_name =
        config.lstm() ? "the last dimension of input_c" : "the last dimension of input_h";
    params_size_ = c->UnknownDim();
  }

  // Checks the inputs that forward and backprop ops share.
  absl::Status ReadInputs(const Version& version);

  // Compare an input with what the inputs before it make of it.
  absl::Status MatchOutput(const char* name, int index);
  absl::Status MatchStateH(const char* name, int index) {
    return MatchState(name, index, "R", R());
  }
  absl::Status MatchStateC(const char* name, int index);

  ShapeHandle input() { return Ordered({T_, B_, sizes_.I}); }
  ShapeHandle input_h() { return Ordered({LD_, B_, sizes_.R}); }
  ShapeHandle input_c() {
    return config_.lstm() ? Ordered({LD_, B_, sizes_.H}) : c_->input(kInputC);
  }
  ShapeHandle params() { return c_->Vector(params_size_); }
  absl::Status Output(ShapeHandle* output);
  // Without a cell state it is [0], but TensorFlow's own shape function says [], and a SavedModel
  // traced with that one records it: whatever is said here must agree with both.
  ShapeHandle output_c() { return config_.lstm() ? input_c() : c_->UnknownShape(); }

 private:
  // Without a projection R and H are one dimension.
  DimensionHandle* R() { return config_.num_proj == 0 ? &sizes_.H : &sizes_.R; }

  // `major` is T or L*D, which a batch-major op puts behind B.
  std::string Letters(const char* major, const char* width) const {
    return config_.time_major ? Concatenate("[", major, ",B,", width, "]")
                              : Concatenate("[B,", major, ",", width, "]");
  }
  ShapeHandle Ordered(std::vector<DimensionHandle> dims) {
    if (!config_.time_major) std::swap(dims[0], dims[1]);
    return c_->MakeShape(dims);
  }
  absl::Status MatchOrdered(const char* name, int index, const std::string& letters,
                            std::vector<DimensionHandle*> dims) {
    if (!config_.time_major) std::swap(dims[0], dims[1]);
    return Match(c_, name, c_->input(index), letters, dims);
  }
  absl::Status MatchState(const char* name, int index, const char* letter, DimensionHandle* width) {
    return MatchOrdered(name, index, Letters("L*D", letter), {&LD_, &B_, width});
  }

  absl::Status ReadLayers(const char* name, int index);
  absl::Status ReadLengths();

  InferenceContext* c_;
  const RnnConfig& config_;
  LayoutSizes sizes_;
  DimensionHandle T_, B_, LD_, params_size_;
};

absl::Status Shapes::ReadInputs(const Version& version) {
  TF_RETURN_IF_ERROR(MatchOrdered("input", kInput, Letters("T", "I"), {&T_, &B_, &sizes_.I}));
  TF_RETURN_IF_ERROR(MatchStateH("input_h", kInputH));
  TF_RETURN_IF_ERROR(ReadLayers("input_h", kInputH));
  if (config_.lstm()) {
    TF_RETURN_IF_ERROR(MatchState("input_c", kInputC, "H", &sizes_.H));
    TF_RETURN_IF_ERROR(ReadLayers("input_c", kInputC));
  }
  TF_RETURN_IF_ERROR(CheckSizes(c_, config_, &sizes_));
  // Again, since a projection's R is now num_proj.
  TF_RETURN_IF_ERROR(MatchStateH("input_h", kInputH));
  if (version.has_lengths) TF_RETURN_IF_ERROR(ReadLengths());

  std::optional<WeightLayout> layout;
  TF_RETURN_IF_ERROR(MakeLayout(config_, sizes_, &layout));
  if (layout) params_size_ = c_->MakeDim(layout->size());
  return Match(c_, "params", c_->input(kParams), "[params_size]", {&params_size_});
}

// The number of layers, from the dimension of the states that it stands in.
absl::Status Shapes::ReadLayers(const char* name, int index) {
  if (!c_->ValueKnown(LD_)) return absl::OkStatus();
  const int64_t value = c_->Value(LD_);
  if (value < 1 || value % config_.D() != 0) {
    return Refuse(name,
                  Concatenate("a tensor whose dimension ", config_.time_major ? 0 : 1,
                              ", layers times directions, is a positive multiple of ", config_.D()),
                  c_->DebugString(c_->input(index)));
  }
  sizes_.L = c_->MakeDim(value / config_.D());
  return absl::OkStatus();
}

absl::Status Shapes::ReadLengths() {
  TF_RETURN_IF_ERROR(Match(c_, "sequence_lengths", c_->input(kLengths), "[B]", {&B_}));
  const tensorflow::Tensor* lengths = c_->input_tensor(kLengths);
  if (lengths == nullptr) return absl::OkStatus();
  const auto values = lengths->flat<int32_t>();
  for (int64_t b = 0; b < values.size(); ++b) {
    if (values(b) < 0 || (c_->ValueKnown(T_) && values(b) > c_->Value(T_))) {
      return Refuse(Concatenate("sequence_lengths[", b, "]"),
                    Concatenate("in [0, ", c_->ValueKnown(T_) ? c_->DebugString(T_) : "T", "]"),
                    values(b));
    }
  }
  return absl::OkStatus();
}

absl::Status Shapes::Output(ShapeHandle* output) {
  DimensionHandle width;
  TF_RETURN_IF_ERROR(c_->Multiply(sizes_.R, config_.D(), &width));
  *output = Ordered({T_, B_, width});
  return absl::OkStatus();
}

absl::Status Shapes::MatchOutput(const char* name, int index) {
  DimensionHandle width;
  TF_RETURN_IF_ERROR(c_->Multiply(sizes_.R, config_.D(), &width));
  return MatchOrdered(name, index, Letters("T", "D*R"), {&T_, &B_, &width});
}

absl::Status Shapes::MatchStateC(const char* name, int index) {
  if (config_.lstm()) return MatchState(name, index, "H", &sizes_.H);
  // Ignored like input_c. The forward op makes it empty, but graphs made with TensorFlow's own
  // shape function hold a scalar zero in place of its gradient.
  return absl::OkStatus();
}

absl::Status Forward(InferenceContext* c, const Version& version) {
  RnnConfig config;
  TF_RETURN_IF_ERROR(ReadConfig(c, &config));
  Shapes shapes(c, config);
  TF_RETURN_IF_ERROR(shapes.ReadInputs(version));
  ShapeHandle output;
  TF_RETURN_IF_ERROR(shapes.Output(&output));
  c->set_output(0, output);
  c->set_output(1, shapes.input_h());
  c->set_output(2, shapes.output_c());
  const ShapeHandle reserve = config.is_training ? c->UnknownShapeOfRank(1) : c->Vector(0);
  c->set_output(3, reserve);
  if (version.has_host_reserved) c->set_output(4, reserve);
  return absl::OkStatus();
}

absl::Status Backprop(InferenceContext* c, const Version& version) {
  RnnConfig config;
  TF_RETURN_IF_ERROR(ReadConfig(c, &config));
  Shapes shapes(c, config);
  TF_RETURN_IF_ERROR(shapes.ReadInputs(version));
  int index = version.has_lengths ? kLengths + 1 : kParams + 1;
  for (const std::string suffix : {"", "_backprop"}) {
    TF_RETURN_IF_ERROR(shapes.MatchOutput(("output" + suffix).c_str(), index++));
    TF_RETURN_IF_ERROR(shapes.MatchStateH(("output_h" + suffix).c_str(), index++));
    TF_RETURN_IF_ERROR(shapes.MatchStateC(("output_c" + suffix).c_str(), index++));
  }
  DimensionHandle any = c->UnknownDim();
  TF_RETURN_IF_ERROR(Match(c, "reserve_space", c->input(index++), "[reserve_size]", {&any}));
  if (version.has_host_reserved) {
    any = c->UnknownDim();
    TF_RETURN_IF_ERROR(Match(c, "host_reserved", c->input(index++), "[reserve_size]", {&any}));
  }
  c->set_output(0, shapes.input());
  c->set_output(1, shapes.input_h());
  c->set_output(2, shapes.input_c());
  c->set_output(3, shapes.params());
  return absl::OkStatus();
}

}  // namespace

absl::Status CudnnRnnShape(InferenceContext* c) { return Forward(c, kV1); }
absl::Status CudnnRnnV2Shape(InferenceContext* c) { return Forward(c, kV2); }
absl::Status CudnnRnnV3Shape(InferenceContext* c) { return Forward(c, kV3); }

absl::Status CudnnRnnBackpropShape(InferenceContext* c) { return Backprop(c, kV1); }
absl::Status CudnnRnnBackpropV2Shape(InferenceContext* c) { return Backprop(c, kV2); }
absl::Status CudnnRnnBackpropV3Shape(InferenceContext* c) { return Backprop(c, kV3); }

}  // namespace tf_cudnn_rnn
