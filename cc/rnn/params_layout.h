// Canonical weights and biases <-> the params buffer. The canonical lists hold, for pseudo-layer
// p = D·layer + direction in ascending order, G input matrices [H, W_in] ([H, 0] in layer 0 with
// skip_input), G recurrent matrices [H, R] and, where num_proj is less than H, the projection
// [R, H]; and 2·G biases [H]. docs/params_layout.md has the picture, cc/cudnn/weight_layout.h the
// offsets.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_PARAMS_LAYOUT_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_PARAMS_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/cudnn/weight_layout.h"
#include "cc/rnn/device.h"
#include "cc/rnn/rnn_config.h"
#include "cc/rnn/shape.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

class ParamsLayout {
 public:
  // From the parameter ops' sizes. InvalidArgument when one is less than 1, when num_proj or
  // skip_input do not fit them, or when the size of params in bytes is more than int64 holds.
  static Status Create(const RnnConfig& config, int64_t num_layers, int64_t num_units,
                       int64_t input_size, ParamsLayout* layout);

  // Elements of params.
  int64_t size() const { return weights_.size(); }

  // Lengths of the canonical lists.
  int64_t num_weights() const {
    return int64_t{weights_.dims().pseudo_layers()} * weights_.dims().matrices();
  }
  int64_t num_biases() const {
    return int64_t{weights_.dims().pseudo_layers()} * 2 * weights_.dims().G;
  }

  // Entry i of a canonical list: its place in params and its shape.
  WeightPiece weight(int64_t i) const;
  WeightPiece bias(int64_t i) const;
  Shape weight_shape(int64_t i) const;
  Shape bias_shape(int64_t i) const;

  // Whether the lists have as many entries as the two attributes of an op say, here under their
  // names there ("num_params" twice in version 1).
  Status CheckCounts(const char* weights_attribute, int64_t weights, const char* biases_attribute,
                     int64_t biases) const;

 private:
  WeightLayout weights_{RnnDims()};
};

// The value of num_layers, num_units or input_size, which must be a scalar. `value` is read only if
// it is.
Status ReadSize(const char* argument, const Shape& shape, const int32_t* value, int64_t* size);

// One tensor of a canonical list.
struct CanonicalInput {
  Shape shape;
  const void* data;
};

// Whether the lists have the lengths and shapes above, exactly. InvalidArgument names the first
// entry that has not: "weights[3]".
Status CheckCanonical(const ParamsLayout& layout, const std::vector<CanonicalInput>& weights,
                      const std::vector<CanonicalInput>& biases);

// params ← weights and biases that have passed CheckCanonical. `params` has layout.size() elements
// of `element_size` bytes.
Status PackParams(const ParamsLayout& layout, size_t element_size,
                  const std::vector<CanonicalInput>& weights,
                  const std::vector<CanonicalInput>& biases, void* params, Device* device);

// Entry of a canonical list ← params: `data` points at as many elements as `piece` has.
Status UnpackPiece(const WeightPiece& piece, size_t element_size, const void* params, void* data,
                   Device* device);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_PARAMS_LAYOUT_H_
