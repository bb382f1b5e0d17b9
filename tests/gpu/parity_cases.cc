#include "tests/gpu/parity_cases.h"

#include <random>

namespace tf_cudnn_rnn {
namespace {

constexpr cudnnRNNMode_t kModes[] = {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_GRU, CUDNN_LSTM};
constexpr cudnnDataType_t kTypes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                      CUDNN_DATA_BFLOAT16};

struct Sizes {
  int T, B, I, H, num_proj;
};
constexpr Sizes kSizes[] = {
    {5, 3, 4, 7, 3}, {4, 5, 6, 3, 2}, {7, 4, 1, 5, 1}, {5, 7, 2, 2, 1}, {8, 3, 9, 13, 6}};

void AddCrossProduct(std::vector<ParityCase>* cases) {
  int turn = 0;
  for (cudnnRNNMode_t mode : kModes)
    for (int L : {1, 2, 3})
      for (cudnnDirectionMode_t direction : {CUDNN_UNIDIRECTIONAL, CUDNN_BIDIRECTIONAL})
        for (const char* lengths : {"none", "varied", "zeros", "all_zero"})
          for (bool time_major : {true, false})
            for (InputMode input_mode : {InputMode::kLinear, InputMode::kSkip})
              for (bool projects : {false, true}) {
                if (projects && (mode != CUDNN_LSTM || input_mode == InputMode::kSkip)) continue;
                const Sizes& s = kSizes[turn++ % 5];
                ParityCase c{mode,       L,       direction, s.T,
                             s.B,        s.I,     s.H,       projects ? s.num_proj : 0,
                             input_mode, lengths, time_major};
                if (input_mode == InputMode::kSkip) c.I = c.H;
                for (cudnnDataType_t type : kTypes) {
                  c.data_type = type;
                  cases->push_back(c);
                }
              }
}

void AddEdges(std::vector<ParityCase>* cases) {
  constexpr cudnnDirectionMode_t uni = CUDNN_UNIDIRECTIONAL, bi = CUDNN_BIDIRECTIONAL;
  constexpr InputMode linear = InputMode::kLinear, skip = InputMode::kSkip,
                      automatic = InputMode::kAutoSelect;
  const ParityCase edges[] = {
      {CUDNN_LSTM, 1, uni, 1, 1, 1, 1},
      {CUDNN_LSTM, 2, bi, 1, 1, 1, 1, 0, linear, "zeros"},
      {CUDNN_LSTM, 2, bi, 1, 6, 5, 9, 0, linear, "zeros"},
      {CUDNN_LSTM, 2, bi, 9, 1, 5, 6, 0, linear, "short"},
      {CUDNN_LSTM, 3, bi, 4, 5, 3, 1, 0, linear, "varied"},
      {CUDNN_LSTM, 1, uni, 6, 5, 1, 33},
      {CUDNN_LSTM, 2, bi, 8, 4, 3, 5, 0, linear, "short"},
      {CUDNN_LSTM, 2, bi, 4, 19, 70, 67, 0, linear, "varied"},
      {CUDNN_LSTM, 1, uni, 3, 17, 131, 130, 0, linear, "varied", false},
      {CUDNN_LSTM, 1, uni, 3, 1, 259, 261},
      {CUDNN_LSTM, 1, uni, 2, 33, 16, 64},
      {CUDNN_LSTM, 2, bi, 5, 8, 16, 32},
      {CUDNN_LSTM, 20, uni, 3, 2, 3, 4, 0, linear, "varied"},
      {CUDNN_LSTM, 20, bi, 3, 2, 3, 2},
      {CUDNN_LSTM, 1, bi, 300, 2, 3, 5, 0, linear, "varied"},
      {CUDNN_LSTM, 1, bi, 3, 1031, 2, 3, 0, linear, "zeros"},
      {CUDNN_LSTM, 2, bi, 4, 0, 3, 5},
      {CUDNN_LSTM, 2, bi, 0, 3, 3, 5},
      {CUDNN_LSTM, 2, uni, 0, 3, 3, 5, 0, linear, "none", false},
      {CUDNN_LSTM, 1, uni, 0, 0, 3, 5},
      {CUDNN_LSTM, 2, uni, 4, 3, 5, 5, 0, automatic},
      {CUDNN_LSTM, 2, uni, 4, 3, 6, 5, 0, automatic},
      {CUDNN_LSTM, 2, uni, 4, 9, 37, 37, 0, skip, "varied"},
  };
  const ParityCase lstm_edges[] = {
      {CUDNN_LSTM, 2, bi, 4, 3, 4, 5, 5},
      {CUDNN_LSTM, 2, bi, 4, 3, 4, 5, 4},
      {CUDNN_LSTM, 2, uni, 4, 18, 9, 67, 35, linear, "zeros"},
      {CUDNN_LSTM, 1, uni, 4, 3, 9, 130, 1, linear, "none", false},
      {CUDNN_LSTM, 2, uni, 4, 0, 3, 5, 2},
      {CUDNN_LSTM, 2, uni, 0, 3, 3, 5, 2},
      {CUDNN_LSTM, 1, uni, 4, 3, 3, 5, 3, automatic},
  };
  for (cudnnRNNMode_t mode : kModes) {
    for (ParityCase c : edges) {
      c.rnn_mode = mode;
      cases->push_back(c);
    }
  }
  cases->insert(cases->end(), std::begin(lstm_edges), std::end(lstm_edges));
}

}  // namespace

std::string ParityCase::id() const {
  const std::string input = InputModeName(input_mode);
  std::string type = DataTypeName(data_type);
  if (data_type == CUDNN_DATA_FLOAT) type = "float32";
  if (data_type == CUDNN_DATA_DOUBLE) type = "float64";
  if (data_type == CUDNN_DATA_HALF) type = "float16";
  return Concatenate(RnnModeName(rnn_mode), "-L", L, "-",
                     std::string(DirectionName(direction)).substr(0, 2), "-T", T, "B", B, "I", I,
                     "H", H, num_proj > 0 ? Concatenate("-P", num_proj) : "",
                     input_mode == InputMode::kLinear ? "" : "-" + input.substr(0, input.find('_')),
                     "-", lengths, time_major ? "" : "-batch_major", "-", type);
}

std::vector<int32_t> ParityCase::Lengths() const {
  std::vector<int32_t> result(B, T);
  if (B == 0 || T == 0 || lengths == "none") return result;
  if (lengths == "all_zero") return std::vector<int32_t>(B, 0);
  std::mt19937 random(B * 1000 + T);
  const int longest = lengths == "short" && T > 1 ? T - 1 : T;
  for (int32_t& length : result) length = 1 + random() % longest;
  if (lengths == "short") return result;
  result.back() = T;  // not in descending order
  if (lengths == "zeros") {
    for (int b = 0; b < B - 1; b += 2) result[b] = 0;
    if (B == 1) result[0] = 0;
  }
  return result;
}

RnnConfig ParityCase::config() const {
  RnnConfig config;
  config.rnn_mode = rnn_mode;
  config.input_mode = input_mode;
  config.direction = direction;
  config.num_proj = num_proj;
  config.data_type = data_type;
  config.time_major = time_major;
  return config;
}

std::vector<ParityCase> ParityCases() {
  std::vector<ParityCase> cases;
  AddCrossProduct(&cases);
  AddEdges(&cases);
  return cases;
}

}  // namespace tf_cudnn_rnn
