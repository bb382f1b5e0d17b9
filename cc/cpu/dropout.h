// Dropout between layers: a counter-based generator (Philox 4x32-10; Salmon, Moraes, Dror and Shaw,
// "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011), so that every mask can be made again
// anywhere, in any order, on any thread.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_DROPOUT_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_DROPOUT_H_

#include <atomic>
#include <cstdint>

namespace tf_cudnn_rnn::cpu {

// What the dropout states buffer of cudnnSetDropoutDescriptor holds.
struct DropoutStates {
  uint64_t magic;
  uint64_t seed;
  std::atomic<uint64_t> calls;  // training forwards so far
};

// One training call's masks: a pure function of (seed, call, layer, element).
struct DropoutMask {
  float dropout =
      0;  // probability that an element becomes 0; the others are scaled by 1 / (1 − dropout)
  uint64_t seed = 0;
  uint64_t call = 0;
};

// to[i] = from[i] · mask of (layer, first_element + i), for i in [0, n). `to` may be `from`.
template <class C>
void ApplyDropout(const DropoutMask& mask, int layer, int64_t first_element, const C* from, C* to,
                  int64_t n);

// The generator itself: four 32-bit numbers from a 128-bit counter and a 64-bit key.
struct PhiloxBlock {
  uint32_t word[4];
};
PhiloxBlock Philox(PhiloxBlock counter, uint64_t key);

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_DROPOUT_H_
