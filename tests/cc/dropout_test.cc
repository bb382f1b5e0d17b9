// The generator of the dropout masks, the masks, and what calls make of them.
#include "cc/cpu/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/cc/engine_call.h"

namespace tf_cudnn_rnn {
namespace {

using cpu::ApplyDropout;
using cpu::DropoutMask;
using cpu::PhiloxBlock;

// The known answers that Random123 publishes for philox4x32-10.
TEST(Philox, KnownAnswers) {
  struct {
    PhiloxBlock counter;
    uint64_t key;
    PhiloxBlock expected;
  } const cases[] = {
      {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       0xffffffffffffffff,
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0x299f31d0a4093822,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const auto& c : cases) {
    const PhiloxBlock block = cpu::Philox(c.counter, c.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], c.expected.word[i]) << i;
  }
}

std::vector<double> MaskOf(const DropoutMask& mask, int layer, int64_t first, int64_t n) {
  const std::vector<double> ones(n, 1);
  std::vector<double> values(n);
  ApplyDropout(mask, layer, first, ones.data(), values.data(), n);
  return values;
}

TEST(Mask, ZeroOrScaled) {
  for (float dropout : {0.1f, 0.25f, 0.5f, 0.9f}) {
    const double scale = 1 / (1 - static_cast<double>(dropout));
    for (double value : MaskOf({dropout, 1, 2}, 1, 0, 1000)) {
      EXPECT_TRUE(value == 0 || value == scale) << value;
    }
  }
}

// Binomial: within five standard deviations, overall and in every position of a block of four.
TEST(Mask, DropsAsManyAsItShould) {
  const int n = 200000;
  for (float dropout : {0.01f, 0.3f, 0.5f, 0.99f}) {
    const std::vector<double> mask = MaskOf({dropout, 11, 5}, 2, 0, n);
    int dropped[4] = {};
    for (int i = 0; i < n; ++i) dropped[i % 4] += mask[i] == 0;
    for (int each : dropped) {
      const double expected = n / 4 * static_cast<double>(dropout);
      EXPECT_NEAR(each, expected, 5 * std::sqrt(expected * (1 - dropout))) << dropout;
    }
  }
}

// What is dropped tells nothing about the neighbours, the next call, layer or seed.
TEST(Mask, Independent) {
  const int n = 100000;
  const std::vector<double> mask = MaskOf({0.5f, 3, 8}, 1, 0, n + 64);
  const auto expect_independent = [&](const double* other, const char* what) {
    int both = 0;
    for (int i = 0; i < n; ++i) both += mask[i] == 0 && other[i] == 0;
    EXPECT_NEAR(both, n * 0.25, 5 * std::sqrt(n * 0.25 * 0.75)) << what;
  };
  for (int shift : {1, 2, 3, 4, 5, 16, 64}) expect_independent(mask.data() + shift, "shifted");
  expect_independent(MaskOf({0.5f, 3, 9}, 1, 0, n).data(), "call");
  expect_independent(MaskOf({0.5f, 3, uint64_t{8} << 32}, 1, 0, n).data(), "call, high half");
  expect_independent(MaskOf({0.5f, 3, 8}, 2, 0, n).data(), "layer");
  expect_independent(MaskOf({0.5f, 4, 8}, 1, 0, n).data(), "seed");
  expect_independent(MaskOf({0.5f, uint64_t{3} << 32, 8}, 1, 0, n).data(), "seed, high half");
  expect_independent(MaskOf({0.5f, 3, 8}, 1, int64_t{1} << 34, n).data(), "elements beyond 2^34");
}

// The same element gets the same value in whatever piece it is asked for, and in place.
TEST(Mask, FunctionOfTheElement) {
  const DropoutMask mask = {0.3f, 123456789012345, 77};
  const std::vector<double> whole = MaskOf(mask, 3, 0, 500);
  for (int64_t first : {0, 1, 2, 3, 4, 7, 101}) {
    for (int64_t n : {1, 2, 3, 4, 5, 9, 399}) {
      const std::vector<double> part = MaskOf(mask, 3, first, n);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first << " " << n;
    }
  }
  std::vector<float> values(500, 1), outside(500);
  ApplyDropout(mask, 3, 0, values.data(), outside.data(), 500);
  ApplyDropout(mask, 3, 0, values.data(), values.data(), 500);
  EXPECT_EQ(values, outside);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(values[i] == 0, whole[i] == 0) << "float and double";
}

// ---- the states buffer and calls ----

EngineCase DropoutCase() {
  EngineCase c;
  c.mode = CUDNN_RNN_TANH, c.L = 2, c.T = 6, c.B = 4, c.I = 5, c.H = 20;
  c.dropout = 0.5f, c.type = CUDNN_DATA_DOUBLE;
  return c;
}

GuardedBytes ForwardOutput(EngineCall* call) {
  EXPECT_EQ(call->Forward(), CUDNN_STATUS_SUCCESS) << LastError();
  return call->out.y;
}

TEST(DropoutStates, SuccessiveCallsDiffer) {
  EngineCall call(DropoutCase());
  std::set<std::string> outputs;
  for (int i = 0; i < 10; ++i) {
    const GuardedBytes y = ForwardOutput(&call);
    outputs.insert(std::string(y.data(), y.size()));
  }
  EXPECT_EQ(outputs.size(), 10u);
}

TEST(DropoutStates, SettingStartsAnew) {
  EngineCall call(DropoutCase()), other(DropoutCase());
  const GuardedBytes first = ForwardOutput(&call), second = ForwardOutput(&call);
  EXPECT_TRUE(ForwardOutput(&other) == first);
  const auto set = [&](unsigned long long seed) {
    return call.api.cudnnSetDropoutDescriptor(call.dropout_desc.get(), call.handle.get(), 0.5f,
                                              call.dropout_states.data(),
                                              call.dropout_states.size(), seed);
  };
  EXPECT_EQ(set(call.c.seed), CUDNN_STATUS_SUCCESS);
  EXPECT_TRUE(ForwardOutput(&call) == first);
  EXPECT_TRUE(ForwardOutput(&call) == second);
  EXPECT_EQ(set(call.c.seed + 1), CUDNN_STATUS_SUCCESS);
  EXPECT_FALSE(ForwardOutput(&call) == first);
  EXPECT_TRUE(call.GuardsAreIntact());
}

TEST(DropoutStates, RestoringContinues) {
  EngineCall call(DropoutCase()), other(DropoutCase());
  ForwardOutput(&call);
  const GuardedBytes second = ForwardOutput(&call);
  ForwardOutput(&other);
  const auto restore = [&](float dropout, size_t size, unsigned long long seed) {
    return other.api.cudnnRestoreDropoutDescriptor(other.dropout_desc.get(), other.handle.get(),
                                                   dropout, other.dropout_states.data(), size,
                                                   seed);
  };
  const size_t size = other.dropout_states.size();
  EXPECT_EQ(restore(0.5f, size, other.c.seed), CUDNN_STATUS_SUCCESS) << LastError();
  EXPECT_TRUE(ForwardOutput(&other) == second);
  EXPECT_EQ(restore(0.5f, size, other.c.seed + 1), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(restore(0.5f, size - 1, other.c.seed), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(restore(1.5f, size, other.c.seed), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(restore(std::nanf(""), size, other.c.seed), CUDNN_STATUS_BAD_PARAM);
  std::memset(other.dropout_states.data(), 0, size);
  EXPECT_EQ(restore(0.5f, size, other.c.seed), CUDNN_STATUS_BAD_PARAM);
}

TEST(DropoutStates, NoneInInferenceOrWithOneLayer) {
  EngineCase c = DropoutCase(), without = c;
  without.dropout = 0;
  EngineCall call(c), plain(without);
  const GuardedBytes work = call.work;
  EXPECT_EQ(call.Infer(), CUDNN_STATUS_SUCCESS);
  EXPECT_TRUE(call.out.y == ForwardOutput(&plain));
  call.work = work;
  // It has not drawn a mask either.
  EngineCall fresh(c);
  EXPECT_TRUE(ForwardOutput(&call) == ForwardOutput(&fresh));

  c.L = without.L = 1;
  EngineCall one_layer(c), one_layer_plain(without);
  EXPECT_TRUE(ForwardOutput(&one_layer) == ForwardOutput(&one_layer_plain));
}

// The same mask of the reserve space, whatever forward calls have come since: gradients agree with
// difference quotients of the forward call whose mask it is.
TEST(DropoutStates, BackwardUsesTheForwardsMask) {
  EngineCall call(DropoutCase());
  const auto restart = [&] {
    ASSERT_EQ(call.api.cudnnSetDropoutDescriptor(call.dropout_desc.get(), call.handle.get(), 0.5f,
                                                 call.dropout_states.data(),
                                                 call.dropout_states.size(), call.c.seed),
              CUDNN_STATUS_SUCCESS);
  };
  const auto loss = [&] {
    restart();
    EXPECT_EQ(call.Forward(), CUDNN_STATUS_SUCCESS);
    double sum = 0;
    const auto add = [&](const GuardedBytes& values, const GuardedBytes& gradient) {
      for (size_t i = 0; i < values.size() / sizeof(double); ++i) {
        sum += ReadElement(CUDNN_DATA_DOUBLE, values.data(), i) *
               ReadElement(CUDNN_DATA_DOUBLE, gradient.data(), i);
      }
    };
    add(call.out.y, call.dy);
    add(call.out.hy, call.dhy);
    return sum;
  };
  loss();
  // Another call in between, with another reserve space and another mask.
  const GuardedBytes reserve = call.reserve, y = call.out.y;
  ForwardOutput(&call);
  call.reserve = reserve, call.out.y = y;
  ASSERT_EQ(call.BackwardData(), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(call.BackwardWeights(), CUDNN_STATUS_SUCCESS);
  const EngineResults gradients = call.out;

  const double step = 1e-6;
  const auto quotient = [&](GuardedBytes* tensor, int64_t i) {
    double* element = reinterpret_cast<double*>(tensor->data()) + i;
    const double before = *element;
    *element = before + step;
    const double high = loss();
    *element = before - step;
    const double low = loss();
    *element = before;
    return (high - low) / (2 * step);
  };
  for (int64_t i : {0, 7, 31, 119}) {
    EXPECT_NEAR(ReadElement(CUDNN_DATA_DOUBLE, gradients.dx.data(), i), quotient(&call.x, i), 1e-7);
  }
  const int64_t weights = call.weights.size() / sizeof(double);
  for (int64_t i = 0; i < weights; i += 61) {
    EXPECT_NEAR(ReadElement(CUDNN_DATA_DOUBLE, gradients.dweights.data(), i),
                quotient(&call.weights, i), 1e-7)
        << i;
  }
}

// More padding, the same masks: steps are numbered by time and row.
TEST(DropoutStates, PaddingDoesNotChangeTheMask) {
  EngineCase c = DropoutCase();
  c.D = 2, c.L = 3, c.lengths = {6, 0, 2, 5};
  EngineCase padded = c;
  padded.T = 9;
  EngineCall a(c), b(padded);
  b.weights = a.weights, b.hx = a.hx, b.dhy = a.dhy;
  const auto copy_steps = [&](const GuardedBytes& from, GuardedBytes* to) {
    std::memcpy(to->data(), from.data(), from.size());
  };
  copy_steps(a.x, &b.x);
  copy_steps(a.dy, &b.dy);
  ASSERT_EQ(a.Run(), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(b.Run(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(std::memcmp(a.out.y.data(), b.out.y.data(), a.out.y.size()), 0);
  EXPECT_EQ(std::memcmp(a.out.dx.data(), b.out.dx.data(), a.out.dx.size()), 0);
  EXPECT_TRUE(a.out.hy == b.out.hy);
  EXPECT_TRUE(a.out.dhx == b.out.dhx);
  EXPECT_TRUE(a.out.dweights == b.out.dweights);
}

// A row of its own length among others gets the mask that it gets in any order of layouts.
TEST(DropoutStates, LayoutDoesNotChangeTheMask) {
  EngineCase c = DropoutCase();
  c.lengths = {6, 4, 4, 1};
  EngineCase batch_major = c;
  batch_major.layout = CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;
  EngineCall a(c), b(batch_major);
  const size_t row = c.I * sizeof(double), y_row = c.H * sizeof(double);
  for (int t = 0; t < c.T; ++t) {
    for (int i = 0; i < c.B; ++i) {
      std::memcpy(b.x.data() + b.Row(t, i) * row, a.x.data() + a.Row(t, i) * row, row);
    }
  }
  ForwardOutput(&a);
  ForwardOutput(&b);
  for (int t = 0; t < c.T; ++t) {
    for (int i = 0; i < c.B; ++i) {
      EXPECT_EQ(std::memcmp(b.out.y.data() + b.Row(t, i) * y_row,
                            a.out.y.data() + a.Row(t, i) * y_row, y_row),
                0);
    }
  }
}

}  // namespace
}  // namespace tf_cudnn_rnn
