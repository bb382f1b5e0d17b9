// The shape of a tensor, as far as cc/rnn needs it: ranks up to 3 are legal anywhere in the ops, so
// larger ones are only kept for messages.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_SHAPE_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>

namespace tf_cudnn_rnn {

class Shape {
 public:
  // A scalar's shape, [].
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t dim : dims) AddDim(dim);
  }

  // Dimensions beyond the kKept-th are counted only.
  void AddDim(int64_t dim) {
    if (rank_ < kKept) dims_[rank_] = dim;
    ++rank_;
  }

  int rank() const { return rank_; }
  // i < min(rank(), kKept).
  int64_t dim(int i) const { return dims_[i]; }
  // Product of the dimensions; only for rank() ≤ kKept, and the caller knows that it fits.
  int64_t elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[i];
    return product;
  }

  // Unequal when either has more than kKept dimensions.
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_ || rank_ > kKept) return false;
    for (int i = 0; i < rank_; ++i) {
      if (dims_[i] != other.dims_[i]) return false;
    }
    return true;
  }
  bool operator!=(const Shape& other) const { return !(*this == other); }

  // "[4,3,8]"
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '[';
    for (int i = 0; i < shape.rank_ && i < kKept; ++i) out << (i > 0 ? "," : "") << shape.dims_[i];
    if (shape.rank_ > kKept) out << ",... rank " << shape.rank_;
    return out << ']';
  }

 private:
  static constexpr int kKept = 8;
  int rank_ = 0;
  std::array<int64_t, kKept> dims_{};
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_SHAPE_H_
