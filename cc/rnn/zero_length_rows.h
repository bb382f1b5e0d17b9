// Rows of length 0 on a table that cannot take them. cuDNN is told that they have one step. What it
// computes for them is replaced afterwards: outputs and input gradients are zero, states and their
// gradients pass through. So that they add nothing to the gradient of params, not even NaN,
// whatever their padding and states hold, training runs that step on zeros, and the gradients that
// enter it are zero too.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_ZERO_LENGTH_ROWS_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_ZERO_LENGTH_ROWS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "cc/rnn/device.h"
#include "cc/rnn/rnn_plan.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// The plan and the device outlive the object. `width` is that of the data in elements: I or D·R of
// sequences, laid out as the caller's; H or R of states, [L·D, B, width].
class ZeroLengthRows {
 public:
  ZeroLengthRows(const RnnPlan& plan, Device* device);

  // There are such rows here. Nothing below may be called otherwise, but lengths().
  bool any() const { return !runs_.empty(); }

  // The lengths that cuDNN is told, B values.
  const int32_t* lengths() const {
    return lengths_.empty() ? plan_.sequence_lengths : lengths_.data();
  }

  // Zeroes the first step of the rows.
  Status ZeroFirstSteps(void* data, int64_t width) const;
  // Puts a copy of the sequences in scratch in the place of `*data`, with that step zero.
  Status WithoutFirstSteps(int64_t width, const void** data) const;
  // The same for states.
  Status WithoutStates(int64_t width, const void** state) const;
  // Copies the states of the rows.
  Status CopyStates(const void* from, int64_t width, void* to) const;

 private:
  const RnnPlan& plan_;
  Device* const device_;
  const size_t element_size_;
  std::vector<int32_t> lengths_;
  std::vector<std::pair<int, int>> runs_;  // adjacent rows: the first and how many
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_ZERO_LENGTH_ROWS_H_
