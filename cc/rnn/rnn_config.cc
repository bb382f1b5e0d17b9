#include "cc/rnn/rnn_config.h"

namespace tf_cudnn_rnn {
namespace {

template <typename Value>
struct Word {
  const char* text;
  Value value;
};

constexpr Word<cudnnRNNMode_t> kRnnModes[] = {{"rnn_relu", CUDNN_RNN_RELU},
                                              {"rnn_tanh", CUDNN_RNN_TANH},
                                              {"lstm", CUDNN_LSTM},
                                              {"gru", CUDNN_GRU}};
constexpr Word<InputMode> kInputModes[] = {{"linear_input", InputMode::kLinear},
                                           {"skip_input", InputMode::kSkip},
                                           {"auto_select", InputMode::kAutoSelect}};
constexpr Word<cudnnDirectionMode_t> kDirections[] = {{"unidirectional", CUDNN_UNIDIRECTIONAL},
                                                      {"bidirectional", CUDNN_BIDIRECTIONAL}};

template <typename Value, size_t N>
Status Parse(const char* attribute, const Word<Value> (&words)[N], const std::string& text,
             Value* value) {
  std::string choices;
  for (const Word<Value>& word : words) {
    if (text == word.text) {
      *value = word.value;
      return Status();
    }
    choices += choices.empty() ? word.text : Concatenate(", ", word.text);
  }
  return MustBe(attribute, "one of " + choices, text);
}

template <typename Value, size_t N>
const char* Name(const Word<Value> (&words)[N], Value value) {
  for (const Word<Value>& word : words) {
    if (word.value == value) return word.text;
  }
  return "unknown";
}

}  // namespace

Status ParseRnnMode(const std::string& text, cudnnRNNMode_t* rnn_mode) {
  return Parse("rnn_mode", kRnnModes, text, rnn_mode);
}
Status ParseInputMode(const std::string& text, InputMode* input_mode) {
  return Parse("input_mode", kInputModes, text, input_mode);
}
Status ParseDirection(const std::string& text, cudnnDirectionMode_t* direction) {
  return Parse("direction", kDirections, text, direction);
}

const char* RnnModeName(cudnnRNNMode_t rnn_mode) { return Name(kRnnModes, rnn_mode); }
const char* InputModeName(InputMode input_mode) { return Name(kInputModes, input_mode); }
const char* DirectionName(cudnnDirectionMode_t direction) { return Name(kDirections, direction); }

const char* DataTypeName(cudnnDataType_t data_type) {
  switch (data_type) {
    case CUDNN_DATA_FLOAT:
      return "float";
    case CUDNN_DATA_DOUBLE:
      return "double";
    case CUDNN_DATA_HALF:
      return "half";
    case CUDNN_DATA_BFLOAT16:
      return "bfloat16";
  }
  return "unknown";
}

Status CheckConfig(const RnnConfig& config) {
  // Written so that NaN fails.
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    return MustBe("dropout", "in [0, 1)", config.dropout);
  }
  if (config.num_proj < 0) return MustBe("num_proj", "0 or more", config.num_proj);
  if (config.num_proj > 0 && !config.lstm()) {
    return MustBe("num_proj", Concatenate("0 with rnn_mode ", RnnModeName(config.rnn_mode)),
                  config.num_proj);
  }
  return Status();
}

}  // namespace tf_cudnn_rnn
