// half and bfloat16 to and from float: every pattern up, every boundary down.
#include <gtest/gtest.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cc/cpu/convert.h"

namespace tf_cudnn_rnn::cpu {
namespace {

constexpr int kPatterns = 1 << 16;

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// While it lives, subnormal results and operands are 0 on this thread, as on TensorFlow's threads.
class FlushSubnormals {
 public:
#if defined(__SSE2__)
  explicit FlushSubnormals(bool flush) : before_(_mm_getcsr()) {
    if (flush) _mm_setcsr(before_ | 0x8040);  // FTZ and DAZ
  }
  ~FlushSubnormals() { _mm_setcsr(before_); }

 private:
  const uint32_t before_;
#elif defined(__aarch64__)
  explicit FlushSubnormals(bool flush) {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (flush) asm volatile("msr fpcr, %0" : : "r"(before_ | uint64_t{1} << 24));
  }
  ~FlushSubnormals() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

 private:
  uint64_t before_;
#endif
};

// Sign, exponent and mantissa of a type of 16 bits.
struct Format {
  cudnnDataType_t type;
  int exponent_bits, mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint16_t infinity() const {
    return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  }
  bool IsNan(uint16_t pattern) const { return (pattern & 0x7fff) > infinity(); }

  // What the pattern stands for, by the definition of the format.
  double Value(uint16_t pattern) const {
    const double sign = pattern & 0x8000 ? -1 : 1;
    const int exponent = (pattern & 0x7fff) >> mantissa_bits;
    const int mantissa = pattern & ((1 << mantissa_bits) - 1);
    if (exponent == (1 << exponent_bits) - 1) {
      return mantissa ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    }
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias() - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias() - mantissa_bits);
  }
};

struct Parameter {
  const char* name;
  Format format;
  bool flush;
};

class Convert : public testing::TestWithParam<Parameter> {
 protected:
  uint16_t Down(float value) const {
    const FlushSubnormals flush(GetParam().flush);
    uint16_t pattern = 0x1234;
    ConvertFromFloat(format_.type, &value, &pattern, 1);
    return pattern;
  }

  const Format format_ = GetParam().format;
};

TEST_P(Convert, EveryPatternUpAndBack) {
  std::vector<uint16_t> patterns(kPatterns), back(kPatterns);
  for (int i = 0; i < kPatterns; ++i) patterns[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(kPatterns);
  {
    const FlushSubnormals flush(GetParam().flush);
    ConvertToFloat(format_.type, patterns.data(), floats.data(), kPatterns);
    ConvertFromFloat(format_.type, floats.data(), back.data(), kPatterns);
  }
  for (int i = 0; i < kPatterns; ++i) {
    if (format_.IsNan(patterns[i])) {
      EXPECT_TRUE(std::isnan(floats[i])) << std::hex << i;
      EXPECT_TRUE(format_.IsNan(back[i])) << std::hex << i;
      continue;
    }
    // Compared as bits: the sign of 0 counts too.
    ASSERT_EQ(BitsOf(floats[i]), BitsOf(static_cast<float>(format_.Value(patterns[i]))))
        << std::hex << i;
    ASSERT_EQ(back[i], patterns[i]);
  }
}

// Around the middle between each two neighbours, and around both.
TEST_P(Convert, RoundsToNearestEven) {
  for (uint32_t sign : {0u, 0x8000u}) {
    for (uint16_t low = 0; low < format_.infinity(); ++low) {
      const uint16_t high = low + 1;
      const double a = format_.Value(low);
      // What comes after the largest number: the next power of 2 would be a value.
      const double b =
          high == format_.infinity() ? std::ldexp(1, format_.bias() + 1) : format_.Value(high);
      const double middle = (a + b) / 2;
      const float exact = static_cast<float>(middle);
      ASSERT_EQ(static_cast<double>(exact), middle) << "the middle must be a float";
      const float sign_factor = sign ? -1.f : 1.f;
      const uint16_t even = low % 2 == 0 ? low : high;
      ASSERT_EQ(Down(sign_factor * exact), sign | even) << std::hex << low;
      ASSERT_EQ(Down(sign_factor * FromBits(BitsOf(exact) - 1)), sign | low) << std::hex << low;
      ASSERT_EQ(Down(sign_factor * FromBits(BitsOf(exact) + 1)), sign | high) << std::hex << low;
    }
  }
}

TEST_P(Convert, SpecialValues) {
  using Limits = std::numeric_limits<float>;
  const uint16_t infinity = format_.infinity();
  EXPECT_EQ(Down(Limits::infinity()), infinity);
  EXPECT_EQ(Down(-Limits::infinity()), infinity | 0x8000);
  EXPECT_EQ(Down(Limits::max()), infinity);
  EXPECT_EQ(Down(-Limits::max()), infinity | 0x8000);
  EXPECT_EQ(Down(0.f), 0);
  EXPECT_EQ(Down(-0.f), 0x8000);
  EXPECT_EQ(Down(Limits::denorm_min()), 0);
  EXPECT_EQ(Down(-Limits::denorm_min()), 0x8000);
  // Whatever bits a NaN has: none of them may round up to infinity or to 0.
  for (uint32_t mantissa : {1u, 0x1fffu, 0x2000u, 0x7fffu, 0xffffu, 0x400000u, 0x7fffffu}) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      EXPECT_TRUE(format_.IsNan(Down(FromBits(0x7f800000 | mantissa | sign))))
          << std::hex << mantissa;
    }
  }
}

// No element beyond n, from addresses that are aligned to 2 bytes only.
TEST_P(Convert, Tails) {
  for (int n = 0; n <= 40; ++n) {
    std::vector<uint16_t> patterns(n + 3, 0x3c00), down(n + 3, 0xabcd);
    std::vector<float> floats(n + 3, -5.f);
    ConvertToFloat(format_.type, patterns.data() + 1, floats.data() + 1, n);
    ConvertFromFloat(format_.type, floats.data() + 1, down.data() + 1, n);
    EXPECT_EQ(floats[0], -5.f);
    EXPECT_EQ(floats[n + 1], -5.f);
    EXPECT_EQ(down[0], 0xabcd);
    EXPECT_EQ(down[n + 1], 0xabcd);
    for (int i = 1; i <= n; ++i) EXPECT_EQ(down[i], 0x3c00);
  }
}

const Format kHalf = {CUDNN_DATA_HALF, 5, 10}, kBfloat16 = {CUDNN_DATA_BFLOAT16, 8, 7};
const Parameter kParameters[] = {{"half", kHalf, false},
                                 {"half_flushing", kHalf, true},
                                 {"bfloat16", kBfloat16, false},
                                 {"bfloat16_flushing", kBfloat16, true}};
INSTANTIATE_TEST_SUITE_P(Types, Convert, testing::ValuesIn(kParameters),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ElementSize, Types) {
  EXPECT_EQ(ElementSize(CUDNN_DATA_FLOAT), 4);
  EXPECT_EQ(ElementSize(CUDNN_DATA_DOUBLE), 8);
  EXPECT_EQ(ElementSize(CUDNN_DATA_HALF), 2);
  EXPECT_EQ(ElementSize(CUDNN_DATA_BFLOAT16), 2);
  EXPECT_EQ(ElementSize(static_cast<cudnnDataType_t>(3)), 0);
}

}  // namespace
}  // namespace tf_cudnn_rnn::cpu
