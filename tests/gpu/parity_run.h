// One configuration on one backend, through cc/rnn: forward and backward in training.
#ifndef TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_RUN_H_
#define TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cc/rnn/rnn_call.h"
#include "cc/rnn/rnn_plan.h"
#include "tests/gpu/parity_backend.h"
#include "tests/gpu/parity_cases.h"

namespace tf_cudnn_rnn {

// Values in double, whatever the data type: by the ops' names.
using Values = std::map<std::string, std::vector<double>>;

// As bytes of the type, rounded to nearest even, and back.
std::vector<char> Encode(const std::vector<double>& values, cudnnDataType_t type);
std::vector<double> Decode(const std::vector<char>& bytes, cudnnDataType_t type);

// A case with data on a backend. The constructor uploads it.
class ParityRun {
 public:
  // `dropout`: the rate between layers, with its states; `setups`: kept descriptors, as a kernel
  // has.
  ParityRun(const ParityCase& parity_case, Backend* backend, RnnSetupCache* setups = nullptr,
            float dropout = 0, DropoutStates* dropout_states = nullptr);

  // In this order; each may be called again.
  Status Forward();
  Status Backward();

  // What they computed, downloaded.
  Values Results();

  // Where the table keeps the weights: empty if exactly as params, else what is different.
  std::string WeightLayoutDifference();

  const RnnPlan& plan() const { return plan_; }
  const ForwardBuffers& forward_buffers() const { return forward_; }
  const BackwardBuffers& backward_buffers() const { return backward_; }

 private:
  std::shared_ptr<void> Random(int64_t elements, double scale);
  std::shared_ptr<void> Result(const char* name, int64_t elements);

  const ParityCase case_;
  Backend* const backend_;
  RnnSetupCache* const setups_;
  DropoutStates* const dropout_states_;
  const std::vector<int32_t> lengths_;
  ForwardArguments arguments_;
  RnnPlan plan_;
  Status planned_;
  uint64_t seed_ = 0;
  std::vector<std::shared_ptr<void>> memory_;
  std::map<std::string, std::pair<std::shared_ptr<void>, int64_t>> results_;
  ForwardBuffers forward_;
  BackwardBuffers backward_;
  std::shared_ptr<void> reserve_;
  int64_t reserve_elements_ = -1;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_RUN_H_
