#include "cc/rnn/params_layout.h"

#include <limits>

namespace tf_cudnn_rnn {
namespace {

int64_t Elements(const WeightPiece& piece) { return piece.rows * piece.columns; }

Status CheckEntry(const char* list, size_t i, const Shape& shape, const Shape& expected) {
  if (shape == expected) return Status();
  return MustBe(Concatenate(list, "[", i, "]"), Concatenate("a tensor of shape ", expected), shape);
}

Status Pack(const WeightPiece& piece, size_t element_size, const void* data, void* params,
            Device* device) {
  return device->Copy(static_cast<char*>(params) + piece.offset * element_size, data,
                      Elements(piece) * element_size);
}

}  // namespace

Status ParamsLayout::Create(const RnnConfig& config, int64_t num_layers, int64_t num_units,
                            int64_t input_size, ParamsLayout* layout) {
  TF_CUDNN_RNN_RETURN_IF_ERROR(CheckConfig(config));
  if (num_layers < 1) return MustBe("num_layers", "at least 1", num_layers);
  if (num_units < 1) return MustBe("num_units", "at least 1", num_units);
  if (input_size < 1) return MustBe("input_size", "at least 1", input_size);
  if (config.num_proj > num_units) {
    return MustBe("num_proj", Concatenate("at most num_units, ", num_units), config.num_proj);
  }
  RnnDims dims;
  dims.G = config.G();
  dims.D = config.D();
  dims.I = input_size;
  dims.H = num_units;
  dims.R = config.num_proj > 0 ? config.num_proj : num_units;
  if (config.input_mode == InputMode::kSkip && dims.projects()) {
    return MustBe("num_proj", Concatenate("0 or num_units, ", num_units, ", with skip_input"),
                  config.num_proj);
  }
  if (config.input_mode == InputMode::kSkip && dims.I != dims.H) {
    return MustBe("input_size", Concatenate("num_units, ", num_units, ", with skip_input"),
                  input_size);
  }
  dims.skip_input = config.input_mode != InputMode::kLinear && dims.I == dims.H && !dims.projects();
  // All of this in int: the numbers of pseudo-layers and of list entries.
  if (num_layers > std::numeric_limits<int>::max() / (dims.D * 9)) {
    return MustBe("num_layers",
                  Concatenate("at most ", std::numeric_limits<int>::max() / (dims.D * 9)),
                  num_layers);
  }
  dims.L = static_cast<int>(num_layers);
  layout->weights_ = WeightLayout(dims);
  if (layout->weights_.Overflows() ||
      layout->size() > std::numeric_limits<int64_t>::max() /
                           static_cast<int64_t>(ElementSize(config.data_type))) {
    return InvalidArgument("the size of params is more than fits in int64: num_layers ", num_layers,
                           ", num_units ", num_units, ", input_size ", input_size);
  }
  return Status();
}

WeightPiece ParamsLayout::weight(int64_t i) const {
  const int count = weights_.dims().matrices();
  return weights_.Matrix(static_cast<int>(i / count), static_cast<int>(i % count));
}

WeightPiece ParamsLayout::bias(int64_t i) const {
  const int count = 2 * weights_.dims().G;
  return weights_.Bias(static_cast<int>(i / count), static_cast<int>(i % count));
}

Shape ParamsLayout::weight_shape(int64_t i) const {
  const WeightPiece piece = weight(i);
  return {piece.rows, piece.columns};
}

Shape ParamsLayout::bias_shape(int64_t i) const { return {bias(i).rows}; }

Status ParamsLayout::CheckCounts(const char* weights_attribute, int64_t weights,
                                 const char* biases_attribute, int64_t biases) const {
  if (weights != num_weights()) {
    return MustBe(weights_attribute,
                  Concatenate(num_weights(), ", the number of weight matrices of this model"),
                  weights);
  }
  if (biases != num_biases()) {
    return MustBe(biases_attribute,
                  Concatenate(num_biases(), ", the number of bias vectors of this model"), biases);
  }
  return Status();
}

Status ReadSize(const char* argument, const Shape& shape, const int32_t* value, int64_t* size) {
  if (shape.rank() != 0) return MustBe(argument, "a scalar", Concatenate("shape ", shape));
  *size = *value;
  return Status();
}

Status CheckCanonical(const ParamsLayout& layout, const std::vector<CanonicalInput>& weights,
                      const std::vector<CanonicalInput>& biases) {
  TF_CUDNN_RNN_RETURN_IF_ERROR(layout.CheckCounts("the length of weights", weights.size(),
                                                  "the length of biases", biases.size()));
  for (size_t i = 0; i < weights.size(); ++i) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        CheckEntry("weights", i, weights[i].shape, layout.weight_shape(i)));
  }
  for (size_t i = 0; i < biases.size(); ++i) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(CheckEntry("biases", i, biases[i].shape, layout.bias_shape(i)));
  }
  return Status();
}

Status PackParams(const ParamsLayout& layout, size_t element_size,
                  const std::vector<CanonicalInput>& weights,
                  const std::vector<CanonicalInput>& biases, void* params, Device* device) {
  for (size_t i = 0; i < weights.size(); ++i) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        Pack(layout.weight(i), element_size, weights[i].data, params, device));
  }
  for (size_t i = 0; i < biases.size(); ++i) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        Pack(layout.bias(i), element_size, biases[i].data, params, device));
  }
  return Status();
}

Status UnpackPiece(const WeightPiece& piece, size_t element_size, const void* params, void* data,
                   Device* device) {
  return device->Copy(data, static_cast<const char*>(params) + piece.offset * element_size,
                      Elements(piece) * element_size);
}

}  // namespace tf_cudnn_rnn
