// What the caller of an op asked for by its attributes. The letters for sizes, here and in all of
// cc/rnn (docs/rnn.md has the mathematics):
//
//   T  time steps                       B  batch rows
//   I  input_size, width of the input   H  num_units, width of the cell
//   R  width of the output and of the recurrent state: num_proj with a projection, else H
//   L  layers                           D  directions, 1 or 2
//   G  gates: rnn_relu, rnn_tanh 1; gru 3; lstm 4
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_RNN_CONFIG_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_RNN_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "cc/cudnn/cudnn_rnn_api.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

enum class InputMode {
  kLinear,      // layer 0 multiplies its input by matrices
  kSkip,        // layer 0 adds its input to every gate; needs I == H and no projection
  kAutoSelect,  // kSkip where that is possible, else kLinear
};

struct RnnConfig {
  cudnnRNNMode_t rnn_mode = CUDNN_LSTM;
  InputMode input_mode = InputMode::kLinear;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  float dropout = 0;                             // probability, in [0, 1)
  int64_t num_proj = 0;                          // R of a projecting lstm; 0: no projection
  cudnnDataType_t data_type = CUDNN_DATA_FLOAT;  // T of the op
  bool is_training = true;
  bool time_major = true;

  bool lstm() const { return rnn_mode == CUDNN_LSTM; }
  int G() const { return rnn_mode == CUDNN_LSTM ? 4 : rnn_mode == CUDNN_GRU ? 3 : 1; }
  int D() const { return direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }
};

// Attribute strings to values. InvalidArgument names the attribute and lists what it may be.
Status ParseRnnMode(const std::string& text, cudnnRNNMode_t* rnn_mode);
Status ParseInputMode(const std::string& text, InputMode* input_mode);
Status ParseDirection(const std::string& text, cudnnDirectionMode_t* direction);

// The same words back, for messages.
const char* RnnModeName(cudnnRNNMode_t rnn_mode);
const char* InputModeName(InputMode input_mode);
const char* DirectionName(cudnnDirectionMode_t direction);
// "float", "double", "half", "bfloat16": TensorFlow's words.
const char* DataTypeName(cudnnDataType_t data_type);

// Bytes of an element.
inline size_t ElementSize(cudnnDataType_t data_type) {
  return data_type == CUDNN_DATA_DOUBLE ? 8 : data_type == CUDNN_DATA_FLOAT ? 4 : 2;
}

// What can be said about the attributes before any size is known: dropout in [0, 1) and finite;
// num_proj not negative, and 0 unless lstm.
Status CheckConfig(const RnnConfig& config);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_RNN_CONFIG_H_
