#include "benchmarks/machine.h"

#include <cstring>

#if defined(__x86_64__)
#define TARGET(features) __attribute__((target(features)))
#else
#define TARGET(features)
#endif
#define INLINE inline __attribute__((always_inline))

namespace tf_cudnn_rnn {
namespace {

template <int bytes>
struct VectorOf {
  typedef float type __attribute__((vector_size(bytes), may_alias));
};

// Two multiply-adds a cycle with a latency of four to five cycles need ten sums; the baseline has
// 16 registers.
constexpr int kSums = 12;

template <int bytes>
INLINE double MultiplyAddOf(int64_t repeats) {
  using V = typename VectorOf<bytes>::type;
  V sums[kSums], factor, term;
  std::memset(sums, 0, sizeof(sums));
  factor = V{} + 0.5f;
  term = V{} + 1.0f;
  // The compiler must not know the values.
  asm volatile("" : "+m"(factor), "+m"(term));
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (int s = 0; s < kSums; ++s) sums[s] = sums[s] * factor + term;
  }
  asm volatile("" : "+m"(sums));
  return 2.0 * kSums * (bytes / sizeof(float)) * static_cast<double>(repeats);
}

template <int bytes>
INLINE float ReadOf(const void* buffer, int64_t size) {
  using V = typename VectorOf<bytes>::type;
  constexpr int kVectors = 8;
  const V* data = static_cast<const V*>(buffer);
  V sums[kVectors];
  std::memset(sums, 0, sizeof(sums));
  for (int64_t i = 0; i < size / bytes; i += kVectors) {
#pragma GCC unroll 8
    for (int s = 0; s < kVectors; ++s) sums[s] += data[i + s];
  }
  for (int s = 1; s < kVectors; ++s) sums[0] += sums[s];
  return sums[0][0];
}

TARGET("avx512f") double MultiplyAdd512(int64_t repeats) { return MultiplyAddOf<64>(repeats); }
TARGET("avx2,fma") double MultiplyAdd256(int64_t repeats) { return MultiplyAddOf<32>(repeats); }
double MultiplyAdd128(int64_t repeats) { return MultiplyAddOf<16>(repeats); }
TARGET("avx512f") float Read512(const void* b, int64_t bytes) { return ReadOf<64>(b, bytes); }
TARGET("avx2") float Read256(const void* b, int64_t bytes) { return ReadOf<32>(b, bytes); }
float Read128(const void* b, int64_t bytes) { return ReadOf<16>(b, bytes); }

bool Is(const char* instruction_set, const char* name) {
  return std::strcmp(instruction_set, name) == 0;
}

}  // namespace

double MultiplyAdd(const char* instruction_set, int64_t repeats) {
  if (Is(instruction_set, "avx512")) return MultiplyAdd512(repeats);
  if (Is(instruction_set, "avx2")) return MultiplyAdd256(repeats);
  return MultiplyAdd128(repeats);
}

float Read(const char* instruction_set, const void* buffer, int64_t bytes) {
  if (Is(instruction_set, "avx512")) return Read512(buffer, bytes);
  if (Is(instruction_set, "avx2")) return Read256(buffer, bytes);
  return Read128(buffer, bytes);
}

}  // namespace tf_cudnn_rnn
