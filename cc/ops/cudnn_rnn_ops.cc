// The definitions of the CudnnRNN ops, word for word TensorFlow's, and their shape functions.
//
// TensorFlow defines all of these ops itself, and one name can have one definition: there only the
// shape functions are replaced, by ours, which are stricter and tell more. What our definitions are
// for is a TensorFlow that lacks one of the ops.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cc/ops/only_copy.h"
#include "cc/ops/shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/op_def_util.h"

namespace tf_cudnn_rnn {
namespace {

using tensorflow::OpDefBuilder;
using tensorflow::OpRegistrationData;
using tensorflow::OpRegistry;

constexpr char kElementType[] = "T: {bfloat16, half, float, double}";

// The attributes that every op has, in TensorFlow's order.
void AddModeAttrs(OpDefBuilder* op) {
  op->Attr("rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'")
      .Attr("input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input'")
      .Attr("direction: {'unidirectional', 'bidirectional'} = 'unidirectional'")
      .Attr("dropout: float = 0.0")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0");
}

OpDefBuilder Forward(const char* name, int version) {
  OpDefBuilder op(name);
  op.Input("input: T").Input("input_h: T").Input("input_c: T").Input("params: T");
  if (version >= 3) op.Input("sequence_lengths: int32");
  op.Output("output: T").Output("output_h: T").Output("output_c: T").Output("reserve_space: T");
  if (version >= 2) op.Output("host_reserved: int8");
  op.Attr(kElementType);
  AddModeAttrs(&op);
  if (version >= 3) op.Attr("num_proj: int = 0");
  op.Attr("is_training: bool = true");
  if (version >= 3) op.Attr("time_major: bool = true");
  op.SetIsStateful();
  return op;
}

OpDefBuilder Backprop(const char* name, int version) {
  OpDefBuilder op(name);
  op.Input("input: T").Input("input_h: T").Input("input_c: T").Input("params: T");
  if (version >= 3) op.Input("sequence_lengths: int32");
  op.Input("output: T").Input("output_h: T").Input("output_c: T");
  op.Input("output_backprop: T").Input("output_h_backprop: T").Input("output_c_backprop: T");
  op.Input("reserve_space: T");
  if (version >= 2) op.Input("host_reserved: int8");
  op.Output("input_backprop: T").Output("input_h_backprop: T").Output("input_c_backprop: T");
  op.Output("params_backprop: T").Attr(kElementType);
  AddModeAttrs(&op);
  if (version >= 3) op.Attr("num_proj: int = 0").Attr("time_major: bool = true");
  op.SetIsStateful();
  return op;
}

// The ops on params begin alike.
OpDefBuilder WithSizes(const char* name) {
  OpDefBuilder op(name);
  op.Input("num_layers: int32").Input("num_units: int32").Input("input_size: int32");
  op.Attr(kElementType);
  return op;
}

OpDefBuilder ParamsSize(const char* name) {
  OpDefBuilder op = WithSizes(name);
  op.Output("params_size: S").Attr("S: {int32, int64}");
  AddModeAttrs(&op);
  op.Attr("num_proj: int = 0");
  return op;
}

// The canonical lists as inputs or outputs of a conversion, with the attributes for their lengths.
OpDefBuilder Conversion(const char* name, int version, bool to_canonical) {
  OpDefBuilder op = WithSizes(name);
  const std::string weights = version == 1 ? "num_params" : "num_params_weights";
  const std::string biases = version == 1 ? "num_params" : "num_params_biases";
  if (to_canonical) {
    op.Input("params: T");
    op.Output("weights: " + weights + " * T").Output("biases: " + biases + " * T");
  } else {
    op.Input("weights: " + weights + " * T").Input("biases: " + biases + " * T");
    op.Output("params: T");
  }
  op.Attr(weights + ": int >= 1");
  if (version >= 2) op.Attr(biases + ": int >= 1");
  AddModeAttrs(&op);
  if (version >= 2) op.Attr("num_proj: int = 0");
  return op;
}

std::vector<OpDefBuilder> Definitions() {
  std::vector<OpDefBuilder> ops;
  const auto add = [&ops](OpDefBuilder op, absl::Status (*shape_fn)(
                                               tensorflow::shape_inference::InferenceContext*)) {
    op.SetShapeFn(shape_fn);
    ops.push_back(std::move(op));
  };
  add(Forward("CudnnRNN", 1), CudnnRnnShape);
  add(Forward("CudnnRNNV2", 2), CudnnRnnV2Shape);
  add(Forward("CudnnRNNV3", 3), CudnnRnnV3Shape);
  add(Backprop("CudnnRNNBackprop", 1), CudnnRnnBackpropShape);
  add(Backprop("CudnnRNNBackpropV2", 2), CudnnRnnBackpropV2Shape);
  add(Backprop("CudnnRNNBackpropV3", 3), CudnnRnnBackpropV3Shape);
  add(ParamsSize("CudnnRNNParamsSize"), CudnnRnnParamsSizeShape);
  add(Conversion("CudnnRNNParamsToCanonical", 1, true), CudnnRnnParamsToCanonicalShape);
  add(Conversion("CudnnRNNParamsToCanonicalV2", 2, true), CudnnRnnParamsToCanonicalV2Shape);
  add(Conversion("CudnnRNNCanonicalToParams", 1, false), CudnnRnnCanonicalToParamsShape);
  add(Conversion("CudnnRNNCanonicalToParamsV2", 2, false), CudnnRnnCanonicalToParamsV2Shape);
  return ops;
}

// Where an op is missing, registers it; where it is defined as here, installs our shape function.
// Done with a look first, because a second registration of a name ends the process unless
// TensorFlow's loader is in charge. A definition that differs keeps its own shape function: ours
// would read inputs that it may not have.
bool Install() {
  if (!IsOnlyCopy()) return false;
  OpRegistry* const registry = OpRegistry::Global();
  for (const OpDefBuilder& definition : Definitions()) {
    OpRegistrationData ours;
    if (!definition.Finalize(&ours).ok()) continue;
    const OpRegistrationData* registered = registry->LookUp(ours.op_def.name());
    if (registered == nullptr) {
      registry->Register(
          [definition](OpRegistrationData* data) { return definition.Finalize(data); });
    } else if (tensorflow::OpDefEqual(registered->op_def, ours.op_def)) {
      // The registry's own object is not const, and its entries live as long as the process.
      const_cast<OpRegistrationData*>(registered)->shape_inference_fn = ours.shape_inference_fn;
    }
  }
  return true;
}

[[maybe_unused]] const bool installed = Install();

}  // namespace
}  // namespace tf_cudnn_rnn

// Our definitions as a serialized tensorflow.OpList, `*size` bytes that live as long as the
// library. What is registered is TensorFlow's, so that comparing the two needs another way to ours.
extern "C" __attribute__((visibility("default"))) const char* tf_cudnn_rnn_ops_op_definitions(
    size_t* size) {
  static const std::string* const serialized = [] {
    tensorflow::OpList list;
    for (const tensorflow::OpDefBuilder& definition : tf_cudnn_rnn::Definitions()) {
      tensorflow::OpRegistrationData data;
      if (definition.Finalize(&data).ok()) *list.add_op() = data.op_def;
    }
    return new std::string(list.SerializeAsString());
  }();
  *size = serialized->size();
  return serialized->data();
}
