// What the shape functions of all ops have in common: reading attributes and sizes, comparing
// shapes that are known in part, and getting from sizes to the layout of params.
#ifndef TF_CUDNN_RNN_OPS_CC_OPS_SHAPE_CHECKS_H_
#define TF_CUDNN_RNN_OPS_CC_OPS_SHAPE_CHECKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cc/cudnn/weight_layout.h"
#include "cc/kernels/tf_compat.h"
#include "cc/rnn/rnn_config.h"
#include "cc/rnn/status.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tf_cudnn_rnn {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// "ARGUMENT must be WHAT, got GOT", InvalidArgument.
template <typename Got>
absl::Status Refuse(const std::string& argument, const std::string& what, const Got& got) {
  return ToTensorFlow(MustBe(argument, what, got));
}

// Reads the attributes that the node has, leaves the others at their defaults, and checks what can
// be checked without a shape.
absl::Status ReadConfig(InferenceContext* c, RnnConfig* config);

// The sizes that decide the layout of params, each a dimension that may be unknown, and what the
// caller knows them as.
struct LayoutSizes {
  explicit LayoutSizes(InferenceContext* c)
      : L(c->UnknownDim()), I(c->UnknownDim()), H(c->UnknownDim()), R(c->UnknownDim()) {}

  DimensionHandle L, I, H, R;
  const char* L_name = "num_layers";
  const char* I_name = "input_size";
  const char* H_name = "num_units";
};

// Checks the sizes themselves, and num_proj and skip_input against them. Sets R from H or num_proj,
// and I from H or the other way round where skip_input makes them equal.
absl::Status CheckSizes(InferenceContext* c, const RnnConfig& config, LayoutSizes* sizes);

// Whether layer 0 has no input matrices; empty while that depends on an unknown size.
std::optional<bool> SkipsInput(const RnnConfig& config, const LayoutSizes& sizes);

// The layout, once all that decides it is known; else empty. The sizes have passed CheckSizes.
absl::Status MakeLayout(const RnnConfig& config, const LayoutSizes& sizes,
                        std::optional<WeightLayout>* layout);

// Compares `shape` with `dims`, which `letters` explains ("[T, B, I]"), and adds to `dims` what the
// shape knows. `name` is the argument's.
absl::Status Match(InferenceContext* c, const std::string& name, ShapeHandle shape,
                   const std::string& letters, const std::vector<DimensionHandle*>& dims);

// The scalar input `index`, called `name`, as a dimension; unknown unless it is a constant.
absl::Status ReadSize(InferenceContext* c, int index, const char* name, DimensionHandle* size);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_OPS_SHAPE_CHECKS_H_
