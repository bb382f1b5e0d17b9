// Sigmoid and tanh of every instruction set that this machine has, against libm in a wider type.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cc/cpu/kernels.h"

namespace tf_cudnn_rnn::cpu {
namespace {

// What activations_inl.h promises.
constexpr double kMostUlp = 3;
// Below this a sigmoid may be any value up to it.
template <class C>
constexpr C kTiny = sizeof(C) == 4 ? C(1.7e-38) : C(1e-307);

template <class C>
using Wide = std::conditional_t<sizeof(C) == 4, double, long double>;

template <class C>
Wide<C> Sigmoid(Wide<C> x) {
  return 1 / (1 + std::exp(-x));
}

// How far `got` is from the exact value, in units of the last place of the exact value.
template <class C>
double UlpError(C got, Wide<C> exact) {
  const C rounded = std::abs(static_cast<C>(exact));
  const C ulp = std::max(std::nextafter(rounded, std::numeric_limits<C>::infinity()) - rounded,
                         std::numeric_limits<C>::denorm_min());
  return static_cast<double>(std::abs(got - exact) / ulp);
}

template <class C>
std::vector<C> Sample();

// Every 1009th of all floats, a prime so that all mantissas take part.
template <>
std::vector<float> Sample<float>() {
  std::vector<float> sample;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1009) {
    const uint32_t narrow = static_cast<uint32_t>(bits);
    float x;
    std::memcpy(&x, &narrow, sizeof(x));
    if (std::isfinite(x)) sample.push_back(x);
  }
  return sample;
}

// Linear from −800 to 800, and logarithmic over all magnitudes.
template <>
std::vector<double> Sample<double>() {
  std::vector<double> sample;
  for (int i = -400000; i <= 400000; ++i) {
    sample.push_back(i * 1.9999937e-3);
    sample.push_back(i * 4.9999937e-5);
  }
  for (double exponent = -1074; exponent < 1024; exponent += 0.0117) {
    sample.push_back(std::exp2(exponent));
    sample.push_back(-sample.back());
  }
  return sample;
}

template <class C>
class Activations : public testing::Test {
 protected:
  // f(kernels) for each instruction set.
  template <class F>
  static void ForEachSet(F f) {
    int sets = 0;
    for (const char* name : {"avx512", "avx2", "baseline", "neon"}) {
      const Kernels<C>* kernels = KernelsNamed<C>(name);
      if (!kernels) continue;
      SCOPED_TRACE(name);
      ++sets;
      f(*kernels);
    }
    EXPECT_GT(sets, 0);
  }

  static C Apply(void (*f)(const C*, C*, int64_t), C x) {
    C y = 7;
    f(&x, &y, 1);
    return y;
  }
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Activations, Types);

TYPED_TEST(Activations, SigmoidIsAccurate) {
  using C = TypeParam;
  const std::vector<C> x = Sample<C>();
  std::vector<C> y(x.size());
  this->ForEachSet([&](const Kernels<C>& kernels) {
    kernels.sigmoid(x.data(), y.data(), x.size());
    double most = 0;
    C worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const Wide<C> exact = Sigmoid<C>(x[i]);
      if (exact < kTiny<C>) {
        ASSERT_TRUE(y[i] >= 0 && y[i] <= kTiny<C>) << x[i] << " gives " << y[i];
        continue;
      }
      const double error = UlpError<C>(y[i], exact);
      ASSERT_FALSE(std::isnan(error)) << x[i] << " gives " << y[i];
      if (error > most) most = error, worst = x[i];
    }
    EXPECT_LE(most, kMostUlp) << "at " << worst;
    std::printf("%s, %zu bytes: sigmoid %.3f ULP at %.17g\n", kernels.name, sizeof(C), most,
                static_cast<double>(worst));
  });
}

TYPED_TEST(Activations, TanhIsAccurate) {
  using C = TypeParam;
  const std::vector<C> x = Sample<C>();
  std::vector<C> y(x.size());
  this->ForEachSet([&](const Kernels<C>& kernels) {
    kernels.tanh(x.data(), y.data(), x.size());
    double most = 0;
    C worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = UlpError<C>(y[i], std::tanh(static_cast<Wide<C>>(x[i])));
      ASSERT_FALSE(std::isnan(error)) << x[i] << " gives " << y[i];
      ASSERT_LE(std::abs(y[i]), 1) << x[i];
      if (error > most) most = error, worst = x[i];
    }
    EXPECT_LE(most, kMostUlp) << "at " << worst;
    std::printf("%s, %zu bytes: tanh %.3f ULP at %.17g\n", kernels.name, sizeof(C), most,
                static_cast<double>(worst));
  });
}

TYPED_TEST(Activations, SpecialValues) {
  using C = TypeParam;
  using Limits = std::numeric_limits<C>;
  this->ForEachSet([&](const Kernels<C>& kernels) {
    const auto sigmoid = [&](C x) { return this->Apply(kernels.sigmoid, x); };
    const auto tanh = [&](C x) { return this->Apply(kernels.tanh, x); };
    for (C nan : {Limits::quiet_NaN(), -Limits::quiet_NaN()}) {
      EXPECT_TRUE(std::isnan(sigmoid(nan)));
      EXPECT_TRUE(std::isnan(tanh(nan)));
    }
    for (C large : {Limits::infinity(), Limits::max(), C(1e4), C(800)}) {
      EXPECT_EQ(sigmoid(large), 1);
      EXPECT_GE(sigmoid(-large), 0);
      EXPECT_LE(sigmoid(-large), kTiny<C>);
      EXPECT_EQ(tanh(large), 1);
      EXPECT_EQ(tanh(-large), -1);
    }
    for (C tiny : {C(0), -C(0), Limits::denorm_min(), -Limits::denorm_min(), Limits::min(),
                   -Limits::min(), Limits::min() / 3}) {
      EXPECT_EQ(sigmoid(tiny), C(0.5));
      EXPECT_LE(UlpError<C>(tanh(tiny), tiny), kMostUlp) << tiny;
    }
    EXPECT_EQ(tanh(C(0)), 0);
    EXPECT_EQ(tanh(-C(0)), 0);
  });
}

// Of a vector that is not full only the elements that exist are read and written.
TYPED_TEST(Activations, PartsOfVectors) {
  using C = TypeParam;
  this->ForEachSet([&](const Kernels<C>& kernels) {
    for (int n = 1; n <= 2 * kernels.vector_length + 1; ++n) {
      std::vector<C> x(n), whole(n), y(n + 1, C(7));
      for (int i = 0; i < n; ++i) {
        x[i] = C(0.37) * (i - n / 2);
        whole[i] = this->Apply(kernels.tanh, x[i]);
      }
      kernels.tanh(x.data(), y.data(), n);
      for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], whole[i]) << i << " of " << n;
      EXPECT_EQ(y[n], 7);
    }
  });
}

TEST(Kernels, UnknownInstructionSets) {
  EXPECT_EQ(KernelsNamed<float>("avx1024"), nullptr);
  EXPECT_EQ(KernelsNamed<double>(""), nullptr);
}

}  // namespace
}  // namespace tf_cudnn_rnn::cpu
