// bfloat16 through float: outputs are those of the same call in float on the same values, rounded.
#include "cc/rnn/widened_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "cc/cpu/convert.h"
#include "cc/cpu/cpu_cudnn.h"

namespace tf_cudnn_rnn {
namespace {

constexpr int kT = 4, kB = 3, kI = 5, kH = 6, kLayers = 2;
const std::vector<int32_t> kLengths = {0, 4, 2};

struct Case {
  cudnnRNNMode_t rnn_mode;
  int num_proj;
  bool time_major;
  float dropout;
};

using Words = std::vector<uint16_t>;
using Floats = std::vector<float>;

Floats Wide(const Words& narrow) {
  Floats wide(narrow.size());
  cpu::ConvertToFloat(CUDNN_DATA_BFLOAT16, narrow.data(), wide.data(), narrow.size());
  return wide;
}

Words Narrow(const Floats& wide) {
  Words narrow(wide.size());
  cpu::ConvertFromFloat(CUDNN_DATA_BFLOAT16, wide.data(), narrow.data(), wide.size());
  return narrow;
}

class WidenedCallTest : public testing::TestWithParam<Case> {
 protected:
  // The tensors of one run, elements in float or in bfloat16.
  template <typename T>
  struct Tensors {
    std::vector<T> x, h, c, params, dy, dh, dc;                // given
    std::vector<T> y, hy, cy, dx, dhx, dcx, dparams, reserve;  // computed
  };

  void SetUp() override {
    config_.rnn_mode = GetParam().rnn_mode;
    config_.direction = CUDNN_BIDIRECTIONAL;
    config_.num_proj = GetParam().num_proj;
    config_.time_major = GetParam().time_major;
    config_.dropout = GetParam().dropout;
    dims_.G = config_.G(), dims_.L = kLayers, dims_.D = 2, dims_.I = kI, dims_.H = kH;
    dims_.R = config_.num_proj > 0 ? config_.num_proj : kH;
    ASSERT_EQ(handle_.Create(), CUDNN_STATUS_SUCCESS);
  }

  Words Random(int64_t elements) {
    std::normal_distribution<float> normal(0, 0.5);
    Floats values(elements);
    for (float& value : values) value = normal(random_);
    return Narrow(values);
  }

  template <typename T>
  void Size(Tensors<T>* t) const {
    t->y.resize(t->dy.size());
    t->hy.resize(t->h.size());
    t->cy.resize(t->c.size());
    t->dx.resize(t->x.size());
    t->dhx.resize(t->h.size());
    t->dcx.resize(t->c.size());
    t->dparams.assign(t->params.size(), T(1));
  }

  template <typename T>
  void Run(cudnnDataType_t type, const DeviceTraits& traits, Tensors<T>* t) {
    const int states = dims_.pseudo_layers();
    const bool major = config_.time_major;
    config_.data_type = type;
    ForwardArguments forward;
    forward.input = major ? Shape{kT, kB, kI} : Shape{kB, kT, kI};
    forward.input_h = major ? Shape{states, kB, dims_.R} : Shape{kB, states, dims_.R};
    forward.input_c = major ? Shape{states, kB, kH} : Shape{kB, states, kH};
    forward.params = {static_cast<int64_t>(t->params.size())};
    forward.sequence_lengths = {kB};
    forward.sequence_lengths_values = kLengths.data();
    RnnPlan plan;
    ASSERT_TRUE(PlanForward(config_, forward, &plan).ok());
    Size(t);
    DropoutStates dropout(config_.dropout, 3);
    RnnSetupCache setups;
    for (int pass = 0; pass < 2; ++pass) {
      HostDevice device(cpu::Api(), handle_.get(), traits);
      RnnCall call(plan, &device, &dropout, &setups);
      Status status = call.Prepare(t->params.data());
      ASSERT_TRUE(status.ok()) << status.message();
      if (pass == 0) {
        t->reserve.resize(call.reserve_elements());
        status = call.Forward({t->x.data(), t->h.data(), t->c.data(), t->params.data(), t->y.data(),
                               t->hy.data(), t->cy.data(), t->reserve.data()});
      } else {
        status =
            call.Backward({t->x.data(), t->h.data(), t->c.data(), t->params.data(), t->y.data(),
                           t->dy.data(), t->dh.data(), t->dc.data(), t->reserve.data(),
                           t->dx.data(), t->dhx.data(), t->dcx.data(), t->dparams.data()},
                          Shape{static_cast<int64_t>(t->reserve.size())});
      }
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }

  RnnConfig config_;
  RnnDims dims_;
  Handle handle_{cpu::Api()};
  std::mt19937 random_{7};
};

TEST_P(WidenedCallTest, EqualsFloatRounded) {
  const int64_t states = dims_.pseudo_layers();
  Tensors<uint16_t> narrow;
  narrow.x = Random(kT * kB * kI);
  narrow.h = Random(states * kB * dims_.R);
  narrow.c = Random(states * kB * kH);
  narrow.params = Random(WeightLayout(dims_).size());
  narrow.dy = Random(kT * kB * 2 * dims_.R);
  narrow.dh = Random(states * kB * dims_.R);
  narrow.dc = Random(states * kB * kH);
  Tensors<float> wide;
  wide.x = Wide(narrow.x), wide.h = Wide(narrow.h), wide.c = Wide(narrow.c);
  wide.params = Wide(narrow.params);
  wide.dy = Wide(narrow.dy), wide.dh = Wide(narrow.dh), wide.dc = Wide(narrow.dc);

  DeviceTraits traits;
  traits.takes_bfloat16 = false;
  Run(CUDNN_DATA_BFLOAT16, traits, &narrow);
  Run(CUDNN_DATA_FLOAT, traits, &wide);
  EXPECT_EQ(narrow.y, Narrow(wide.y));
  EXPECT_EQ(narrow.hy, Narrow(wide.hy));
  EXPECT_EQ(narrow.reserve.size(), 2 * wide.reserve.size());
  // The backward pass of the one reads rounded outputs, that of the other exact ones.
  const auto close = [](const Words& actual, const Floats& expected, const char* what) {
    const Floats values = Wide(actual);
    float largest = 0;
    for (float value : expected) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], expected[i], 0.02f * largest) << what << " " << i;
    }
  };
  close(narrow.dx, wide.dx, "input_backprop");
  close(narrow.dhx, wide.dhx, "input_h_backprop");
  close(narrow.dparams, wide.dparams, "params_backprop");
  if (config_.lstm()) {
    EXPECT_EQ(narrow.cy, Narrow(wide.cy));
    close(narrow.dcx, wide.dcx, "input_c_backprop");
  }
}

TEST_P(WidenedCallTest, AReserveSpaceOfAnotherSizeIsRefused) {
  const int64_t states = dims_.pseudo_layers();
  config_.data_type = CUDNN_DATA_BFLOAT16;
  config_.time_major = true;
  ForwardArguments forward;
  forward.input = {kT, kB, kI};
  forward.input_h = {states, kB, dims_.R};
  forward.input_c = {states, kB, kH};
  forward.params = {WeightLayout(dims_).size()};
  RnnPlan plan;
  ASSERT_TRUE(PlanForward(config_, forward, &plan).ok());
  DeviceTraits traits;
  traits.takes_bfloat16 = false;
  traits.dense_params = true;
  HostDevice device(cpu::Api(), handle_.get(), traits);
  DropoutStates dropout(config_.dropout, 3);
  RnnCall call(plan, &device, &dropout);
  ASSERT_TRUE(call.Prepare().ok());
  const Status status = call.Backward(BackwardBuffers(), Shape{call.reserve_elements() / 2});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("reserve_space"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Modes, WidenedCallTest,
                         testing::Values(Case{CUDNN_LSTM, 0, true, 0},
                                         Case{CUDNN_LSTM, 4, false, 0},
                                         Case{CUDNN_GRU, 0, false, 0.5},
                                         Case{CUDNN_RNN_TANH, 0, true, 0.5}));

}  // namespace
}  // namespace tf_cudnn_rnn
