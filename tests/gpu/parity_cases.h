// The configurations that rnn_parity runs: those of tests/cases.py, FORWARD_CASES and EDGE_CASES.
// tests/test_gpu_parity.py holds the two lists equal, id by id.
#ifndef TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_CASES_H_
#define TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/rnn/rnn_config.h"

namespace tf_cudnn_rnn {

// The letters are those of cc/rnn/rnn_config.h.
struct ParityCase {
  cudnnRNNMode_t rnn_mode = CUDNN_LSTM;
  int L = 1;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  int T = 1, B = 1, I = 1, H = 1;
  int num_proj = 0;
  InputMode input_mode = InputMode::kLinear;
  std::string lengths = "none";  // none, varied, short, zeros, all_zero
  bool time_major = true;
  cudnnDataType_t data_type = CUDNN_DATA_FLOAT;

  int D() const { return direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }
  int R() const { return num_proj > 0 ? num_proj : H; }

  // As the Python case's id.
  std::string id() const;
  // One length per row; the same for the same case.
  std::vector<int32_t> Lengths() const;
  // For cc/rnn, in training.
  RnnConfig config() const;
};

std::vector<ParityCase> ParityCases();

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_CASES_H_
