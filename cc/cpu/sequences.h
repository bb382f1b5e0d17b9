// The valid steps of a batch of sequences of different lengths.
//
// Rows are ranked by falling length, so that the rows alive at a time t are the ranks 0 …
// alive(t)−1 whatever the order in which the caller gave them, in both directions. Valid steps are
// numbered t by t: step (t, rank) has the number offset(t) + rank. Buffers of the engine hold valid
// steps only, in this order, so padding costs nothing.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_SEQUENCES_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_SEQUENCES_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tf_cudnn_rnn::cpu {

class Sequences {
 public:
  // lengths: one per row, each in [0, T].
  explicit Sequences(const std::vector<int>& lengths) : order_(lengths.size()), lengths_(lengths) {
    std::iota(order_.begin(), order_.end(), 0);
    if (!std::is_sorted(lengths.begin(), lengths.end(), std::greater<int>())) {
      std::stable_sort(order_.begin(), order_.end(),
                       [&](int a, int b) { return lengths[a] > lengths[b]; });
      for (size_t r = 0; r < order_.size(); ++r) lengths_[r] = lengths[order_[r]];
    }
    const int steps = lengths_.empty() ? 0 : lengths_[0];
    alive_.resize(steps);
    offset_.resize(steps + 1);
    int rank = static_cast<int>(lengths_.size());
    for (int t = 0; t < steps; ++t) {
      while (lengths_[rank - 1] <= t) --rank;
      alive_[t] = rank;
      offset_[t + 1] = offset_[t] + rank;
    }
  }

  int rows() const { return static_cast<int>(order_.size()); }   // B
  int steps() const { return static_cast<int>(alive_.size()); }  // the longest length
  int64_t valid_steps() const { return offset_.back(); }         // N, over all rows
  int row(int rank) const { return order_[rank]; }               // the caller's row
  int length(int rank) const { return lengths_[rank]; }
  int alive(int t) const { return alive_[t]; }
  int64_t offset(int t) const { return offset_[t]; }
  // The time of the valid step with this number, in [0, N]; N gives steps().
  int TimeOf(int64_t step) const {
    return static_cast<int>(std::upper_bound(offset_.begin(), offset_.end(), step) -
                            offset_.begin()) -
           1;
  }

  // How many of the ranks [begin, end) are alive at t; they are the first ones.
  int AliveIn(int t, int begin, int end) const {
    return std::max(0, std::min(end, alive_[t]) - begin);
  }

 private:
  std::vector<int> order_;    // rank → row
  std::vector<int> lengths_;  // by rank
  std::vector<int> alive_;
  std::vector<int64_t> offset_;
};

// The rows of one tensor, by valid step: either in the caller's layout or packed by step number.
template <class C>
class StepRows {
 public:
  StepRows() = default;
  // Packed: [N, width].
  StepRows(C* base, int64_t width, const Sequences& sequences)
      : base_(base), width_(width), sequences_(&sequences) {}
  // The caller's: row b of time t begins at base + t · time_stride + b · row_stride.
  StepRows(C* base, int64_t time_stride, int64_t row_stride, const Sequences& sequences)
      : base_(base),
        width_(0),
        time_stride_(time_stride),
        row_stride_(row_stride),
        sequences_(&sequences) {}

  C* at(int t, int rank) const {
    return width_ ? base_ + (sequences_->offset(t) + rank) * width_
                  : base_ + t * time_stride_ + sequences_->row(rank) * row_stride_;
  }
  explicit operator bool() const { return base_ != nullptr; }

 private:
  C* base_ = nullptr;
  int64_t width_ = 0;
  int64_t time_stride_ = 0, row_stride_ = 0;
  const Sequences* sequences_ = nullptr;
};

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_SEQUENCES_H_
