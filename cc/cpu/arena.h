// One block of memory cut into named slices. The same booking code runs twice: without memory, to
// learn the size, and with it, to get the pointers; so the two cannot disagree.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_ARENA_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tf_cudnn_rnn::cpu {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // base: null to measure only. Slices are aligned in memory where the base can be skipped into
  // (scratch), and relative to the base where the content may be moved (kRelative).
  enum Alignment { kAbsolute, kRelative };
  explicit Arena(void* base = nullptr, Alignment alignment = kAbsolute)
      : base_(static_cast<char*>(base)) {
    const size_t misaligned = reinterpret_cast<uintptr_t>(base) % kAlignment;
    if (alignment == kAbsolute) used_ = base_ ? (kAlignment - misaligned) % kAlignment : kAlignment;
  }

  bool measuring() const { return base_ == nullptr; }

  // A slice of a·b·c elements.
  template <class T>
  T* Take(int64_t a, int64_t b = 1, int64_t c = 1) {
    size_t bytes = sizeof(T);
    for (int64_t factor : {a, b, c}) {
      overflows_ |=
          factor < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(factor), &bytes);
    }
    overflows_ |= bytes > PTRDIFF_MAX - kAlignment;
    const size_t begin = used_;
    const size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    overflows_ |= __builtin_add_overflow(used_, padded, &used_) || used_ > PTRDIFF_MAX;
    largest_ = std::max(largest_, used_);
    return base_ ? reinterpret_cast<T*>(base_ + begin) : nullptr;
  }

  // What is taken after Mark() may be taken again after Return(mark): for slices that are not
  // needed at once.
  size_t Mark() const { return used_; }
  void Return(size_t mark) { used_ = mark; }

  size_t size() const { return std::max(largest_, used_); }
  bool Overflows() const { return overflows_; }

 private:
  char* base_;
  size_t used_ = 0;
  size_t largest_ = 0;
  bool overflows_ = false;
};

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_ARENA_H_
