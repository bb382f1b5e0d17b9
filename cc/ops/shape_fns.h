// Shape functions of the CudnnRNN ops: pure functions of an InferenceContext.
//
// Each one checks whatever is known when a graph is built (ranks, dimensions that two inputs share,
// values of attributes, constant sizes) and sets the shapes of the outputs as far as they follow.
// The kernels check everything again, on full shapes. A misfit is InvalidArgument and names the
// argument, what it must be and what it was.
//
// Letters: L layers, D directions, T time steps, B batch, I width of the input, H num_units, R
// width of the output and of the recurrent state (num_proj with a projection, else H), G gates.
#ifndef TF_CUDNN_RNN_OPS_CC_OPS_SHAPE_FNS_H_
#define TF_CUDNN_RNN_OPS_CC_OPS_SHAPE_FNS_H_

#include "tensorflow/core/framework/shape_inference.h"

namespace tf_cudnn_rnn {

// Outputs: output [T, B, D*R], output_h and output_c as input_h and input_c, reserve_space [?] ([0]
// when is_training is false); V2 and V3 also host_reserved, likewise. Unless rnn_mode is lstm,
// input_c is ignored and output_c unknown. V3 with time_major=false swaps the first two dimensions
// of input, output and of the states.
absl::Status CudnnRnnShape(tensorflow::shape_inference::InferenceContext* c);
absl::Status CudnnRnnV2Shape(tensorflow::shape_inference::InferenceContext* c);
absl::Status CudnnRnnV3Shape(tensorflow::shape_inference::InferenceContext* c);

// Outputs: shaped as input, input_h, input_c and params.
absl::Status CudnnRnnBackpropShape(tensorflow::shape_inference::InferenceContext* c);
absl::Status CudnnRnnBackpropV2Shape(tensorflow::shape_inference::InferenceContext* c);
absl::Status CudnnRnnBackpropV3Shape(tensorflow::shape_inference::InferenceContext* c);

// Output: params_size [1].
absl::Status CudnnRnnParamsSizeShape(tensorflow::shape_inference::InferenceContext* c);

// Outputs: weights [H, W_in], [H, R] and, projecting, [R, H]; biases [H]. The number of layers also
// follows from the length of the lists.
absl::Status CudnnRnnParamsToCanonicalShape(tensorflow::shape_inference::InferenceContext* c);
absl::Status CudnnRnnParamsToCanonicalV2Shape(tensorflow::shape_inference::InferenceContext* c);

// Output: params [size], known when the sizes are constants or the shapes of the weights are known.
absl::Status CudnnRnnCanonicalToParamsShape(tensorflow::shape_inference::InferenceContext* c);
absl::Status CudnnRnnCanonicalToParamsV2Shape(tensorflow::shape_inference::InferenceContext* c);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_OPS_SHAPE_FNS_H_
