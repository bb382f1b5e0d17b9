// Calls on the CPU engine: everything that is worked around for cuDNN gives the numbers that the
// engine gives by itself.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "cc/cpu/cpu_cudnn.h"
#include "cc/cudnn/descriptors.h"
#include "cc/rnn/rnn_call.h"

namespace tf_cudnn_rnn {
namespace {

using Doubles = std::vector<double>;

const double kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  std::string name;
  cudnnRNNMode_t rnn_mode = CUDNN_LSTM;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  InputMode input_mode = InputMode::kLinear;
  int T = 5, B = 4, I = 3, H = 6, num_proj = 0, L = 1;
  bool time_major = true;
  float dropout = 0;
  std::vector<int32_t> lengths = {0, 5, 0, 2};

  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
};

struct Results {
  Doubles output, output_h, output_c;
  Doubles input_backprop, input_h_backprop, input_c_backprop, params_backprop;
};

// One forward and one backward call of `c` on the engine; two backward calls, in fact, which must
// agree. Padding and the states of rows without steps are `padding`.
class Runner {
 public:
  Runner(const Case& c, double padding) : c_(c) {
    config_.rnn_mode = c.rnn_mode;
    config_.direction = c.direction;
    config_.input_mode = c.input_mode;
    config_.num_proj = c.num_proj;
    config_.data_type = CUDNN_DATA_DOUBLE;
    config_.time_major = c.time_major;
    config_.dropout = c.dropout;
    dims_.G = config_.G(), dims_.L = c.L, dims_.D = config_.D(), dims_.I = c.I, dims_.H = c.H;
    dims_.R = c.num_proj > 0 ? c.num_proj : c.H;
    dims_.skip_input = c.input_mode == InputMode::kSkip;
    const int64_t P = dims_.pseudo_layers();
    Fill(&input_, int64_t{c.T} * c.B * c.I);
    Fill(&input_h_, P * c.B * dims_.R);
    Fill(&input_c_, P * c.B * c.H);
    Fill(&params_, WeightLayout(dims_).size());
    Fill(&output_backprop_, int64_t{c.T} * c.B * dims_.D * dims_.R);
    Fill(&output_h_backprop_, P * c.B * dims_.R);
    Fill(&output_c_backprop_, P * c.B * c.H);
    for (int b = 0; b < c.B; ++b) {
      for (int t = c.lengths[b]; t < c.T; ++t) {
        const int64_t step = c.time_major ? int64_t{t} * c.B + b : int64_t{b} * c.T + t;
        for (int i = 0; i < c.I; ++i) input_[step * c.I + i] = padding;
      }
      if (c.lengths[b] > 0) continue;
      for (int64_t p = 0; p < P; ++p) {
        const int64_t state = c.time_major ? p * c.B + b : b * P + p;
        for (int64_t i = 0; i < dims_.R; ++i) input_h_[state * dims_.R + i] = padding;
        for (int64_t i = 0; i < c.H; ++i) input_c_[state * c.H + i] = padding;
      }
    }
  }

  Results Run(const DeviceTraits& traits) {
    Results r;
    Handle handle(cpu::Api());
    EXPECT_EQ(handle.Create(), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cpu::SetReserveReadOnly(handle.get(), traits.reserve_is_read_only),
              CUDNN_STATUS_SUCCESS);
    HostDevice device(cpu::Api(), handle.get(), traits);
    DropoutStates dropout(c_.dropout, 11);
    r.output.assign(output_backprop_.size(), kNan);
    r.output_h.assign(input_h_.size(), kNan);
    r.output_c.assign(input_c_.size(), kNan);

    const int64_t P = dims_.pseudo_layers();
    ForwardArguments forward;
    forward.input = Layout(c_.T, c_.I);
    forward.input_h = Layout(P, dims_.R);
    forward.input_c = Layout(P, c_.H);
    forward.params = {static_cast<int64_t>(params_.size())};
    forward.sequence_lengths = {c_.B};
    forward.sequence_lengths_values = c_.lengths.data();
    RnnPlan plan;
    ExpectOk(PlanForward(config_, forward, &plan));
    RnnCall call(plan, &device, &dropout);
    ExpectOk(call.Prepare(params_.data()));
    void* reserve;
    ExpectOk(device.Allocate(call.reserve_elements() * sizeof(double), &reserve));
    ForwardBuffers buffers;
    buffers.input = input_.data(), buffers.input_h = input_h_.data();
    buffers.input_c = input_c_.data(), buffers.params = params_.data();
    buffers.output = r.output.data(), buffers.output_h = r.output_h.data();
    buffers.output_c = r.output_c.data(), buffers.reserve_space = reserve;
    ExpectOk(call.Forward(buffers));

    Backward(forward, {call.reserve_elements()}, reserve, &device, &r);
    Results again = r;
    Backward(forward, {call.reserve_elements()}, reserve, &device, &again);
    EXPECT_EQ(again.params_backprop, r.params_backprop);
    EXPECT_EQ(again.input_backprop, r.input_backprop);
    return r;
  }

 private:
  static void ExpectOk(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  void Fill(Doubles* values, int64_t count) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    values->resize(count);
    for (double& value : *values) value = uniform(random_);
  }

  Shape Layout(int64_t first, int64_t width) const {
    return c_.time_major ? Shape{first, c_.B, width} : Shape{c_.B, first, width};
  }

  void Backward(const ForwardArguments& forward, const Shape& reserve_space, const void* reserve,
                Device* device, Results* r) {
    r->input_backprop.assign(input_.size(), kNan);
    r->input_h_backprop.assign(input_h_.size(), kNan);
    r->input_c_backprop.assign(input_c_.size(), kNan);
    r->params_backprop.assign(params_.size(), kNan);
    BackwardArguments arguments;
    arguments.output = arguments.output_backprop = Layout(c_.T, dims_.D * dims_.R);
    arguments.output_h = arguments.output_h_backprop = forward.input_h;
    arguments.output_c = arguments.output_c_backprop = forward.input_c;
    arguments.reserve_space = reserve_space;
    RnnPlan plan;
    ExpectOk(PlanBackward(config_, forward, arguments, &plan));
    // A kernel of its own, with random states of its own, which must not matter.
    DropoutStates dropout(c_.dropout, 12);
    RnnCall call(plan, device, &dropout);
    ExpectOk(call.Prepare(params_.data()));
    BackwardBuffers buffers;
    buffers.input = input_.data(), buffers.input_h = input_h_.data();
    buffers.input_c = input_c_.data(), buffers.params = params_.data();
    buffers.output = r->output.data(), buffers.output_backprop = output_backprop_.data();
    buffers.output_h_backprop = output_h_backprop_.data();
    buffers.output_c_backprop = output_c_backprop_.data();
    buffers.reserve_space = reserve;
    buffers.input_backprop = r->input_backprop.data();
    buffers.input_h_backprop = r->input_h_backprop.data();
    buffers.input_c_backprop = r->input_c_backprop.data();
    buffers.params_backprop = r->params_backprop.data();
    ExpectOk(call.Backward(buffers, reserve_space));
  }

  const Case c_;
  RnnConfig config_;
  RnnDims dims_;
  std::mt19937 random_{1};
  Doubles input_, input_h_, input_c_, params_;
  Doubles output_backprop_, output_h_backprop_, output_c_backprop_;
};

DeviceTraits EngineTraits() {
  DeviceTraits traits;
  traits.takes_zero_lengths = traits.reserve_is_read_only = traits.checks_reserve = true;
  traits.zeroes_padding = traits.dense_params = true;
  return traits;
}

void ExpectNear(const char* what, const Doubles& got, const Doubles& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    ASSERT_NEAR(got[i], expected[i], 1e-13) << what << " " << i;
  }
}

// All but the final states, which are the initial ones in rows without steps, NaN too.
void ExpectNear(const Results& got, const Results& expected, bool lstm) {
  ExpectNear("output", got.output, expected.output);
  ExpectNear("input_backprop", got.input_backprop, expected.input_backprop);
  ExpectNear("input_h_backprop", got.input_h_backprop, expected.input_h_backprop);
  ExpectNear("params_backprop", got.params_backprop, expected.params_backprop);
  if (lstm) ExpectNear("input_c_backprop", got.input_c_backprop, expected.input_c_backprop);
}

class OnTheEngine : public testing::TestWithParam<Case> {};

TEST_P(OnTheEngine, WorkaroundsChangeNothing) {
  const bool lstm = GetParam().rnn_mode == CUDNN_LSTM;
  for (double padding : {0.0, kNan}) {
    const Results native = Runner(GetParam(), padding).Run(EngineTraits());
    const Results around = Runner(GetParam(), padding).Run(DeviceTraits());
    ExpectNear(around, native, lstm);
    ExpectNear("output_h", around.output_h, native.output_h);
    if (lstm) ExpectNear("output_c", around.output_c, native.output_c);
  }
}

TEST_P(OnTheEngine, PaddingDoesNotMatter) {
  const bool lstm = GetParam().rnn_mode == CUDNN_LSTM;
  for (const DeviceTraits& traits : {EngineTraits(), DeviceTraits()}) {
    ExpectNear(Runner(GetParam(), kNan).Run(traits), Runner(GetParam(), 0).Run(traits), lstm);
  }
}

TEST_P(OnTheEngine, RowsWithoutSteps) {
  const Case& c = GetParam();
  const Results r = Runner(c, kNan).Run(DeviceTraits());
  const int64_t width = r.output.size() / (int64_t{c.T} * c.B);
  for (int b = 0; b < c.B; ++b) {
    for (int t = c.lengths[b]; t < c.T; ++t) {
      const int64_t step = c.time_major ? int64_t{t} * c.B + b : int64_t{b} * c.T + t;
      for (int64_t i = 0; i < width; ++i) EXPECT_EQ(r.output[step * width + i], 0);
      for (int i = 0; i < c.I; ++i) EXPECT_EQ(r.input_backprop[step * c.I + i], 0);
    }
  }
}

const Case kCases[] = {
    {"lstm"},
    {"lstm_batch_major", CUDNN_LSTM, CUDNN_UNIDIRECTIONAL, InputMode::kLinear, 5, 4, 3, 6, 0, 1,
     false},
    {"lstm_bidirectional_3_layers_batch_major", CUDNN_LSTM, CUDNN_BIDIRECTIONAL, InputMode::kLinear,
     5, 4, 3, 6, 0, 3, false},
    {"lstm_projection", CUDNN_LSTM, CUDNN_BIDIRECTIONAL, InputMode::kLinear, 5, 4, 3, 6, 2, 2,
     true},
    {"lstm_projection_batch_major", CUDNN_LSTM, CUDNN_BIDIRECTIONAL, InputMode::kLinear, 5, 4, 3, 6,
     2, 2, false},
    {"lstm_dropout", CUDNN_LSTM, CUDNN_BIDIRECTIONAL, InputMode::kLinear, 5, 4, 3, 6, 0, 2, true,
     0.5},
    {"gru_bidirectional", CUDNN_GRU, CUDNN_BIDIRECTIONAL, InputMode::kLinear, 5, 4, 3, 6, 0, 2,
     true},
    {"gru_skip_batch_major", CUDNN_GRU, CUDNN_UNIDIRECTIONAL, InputMode::kSkip, 5, 4, 6, 6, 0, 2,
     false},
    {"tanh", CUDNN_RNN_TANH, CUDNN_BIDIRECTIONAL, InputMode::kLinear, 5, 4, 3, 6, 0, 1, true},
    {"relu_dropout_batch_major", CUDNN_RNN_RELU, CUDNN_UNIDIRECTIONAL, InputMode::kLinear, 5, 4, 3,
     6, 0, 3, false, 0.25},
    {"all_without_steps",
     CUDNN_LSTM,
     CUDNN_BIDIRECTIONAL,
     InputMode::kLinear,
     5,
     4,
     3,
     6,
     0,
     2,
     false,
     0,
     {0, 0, 0, 0}},
    {"all_full",
     CUDNN_GRU,
     CUDNN_BIDIRECTIONAL,
     InputMode::kLinear,
     5,
     4,
     3,
     6,
     0,
     2,
     false,
     0,
     {5, 5, 5, 5}},
    {"first_and_last_without_steps",
     CUDNN_GRU,
     CUDNN_UNIDIRECTIONAL,
     InputMode::kLinear,
     5,
     4,
     3,
     6,
     0,
     2,
     true,
     0,
     {0, 3, 1, 0}},
};

INSTANTIATE_TEST_SUITE_P(RnnCall, OnTheEngine, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// A reserve space of the same size, but of other lengths.
TEST(RnnCallOnTheEngine, RefusesAForeignReserveSpace) {
  Handle handle(cpu::Api());
  ASSERT_EQ(handle.Create(), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cpu::SetReserveReadOnly(handle.get(), true), CUDNN_STATUS_SUCCESS);
  HostDevice device(cpu::Api(), handle.get(), EngineTraits());
  RnnConfig config;
  config.rnn_mode = CUDNN_RNN_TANH;
  const std::vector<float> values(100, 0.5);
  std::vector<float> output(100), backprop(100), state(100);
  const int32_t lengths[] = {2, 1}, other_lengths[] = {1, 2};
  ForwardArguments forward;
  forward.input = {2, 2, 3}, forward.input_h = {1, 2, 4}, forward.params = {3 * 4 + 4 * 4 + 8};
  forward.sequence_lengths = {2}, forward.sequence_lengths_values = lengths;
  RnnPlan plan;
  ASSERT_TRUE(PlanForward(config, forward, &plan).ok());
  RnnCall call(plan, &device, nullptr);
  ASSERT_TRUE(call.Prepare().ok());
  void* reserve;
  ASSERT_TRUE(device.Allocate(call.reserve_elements() * sizeof(float), &reserve).ok());
  ForwardBuffers buffers;
  buffers.input = buffers.input_h = buffers.params = values.data();
  buffers.output = output.data(), buffers.output_h = state.data(), buffers.reserve_space = reserve;
  ASSERT_TRUE(call.Forward(buffers).ok());

  forward.sequence_lengths_values = other_lengths;
  BackwardArguments backward;
  backward.output = backward.output_backprop = {2, 2, 4};
  backward.output_h = backward.output_h_backprop = {1, 2, 4};
  backward.reserve_space = {call.reserve_elements()};
  RnnPlan other_plan;
  ASSERT_TRUE(PlanBackward(config, forward, backward, &other_plan).ok());
  RnnCall other(other_plan, &device, nullptr);
  ASSERT_TRUE(other.Prepare().ok());
  BackwardBuffers gradients;
  gradients.input = gradients.input_h = gradients.params = values.data();
  gradients.output = output.data(), gradients.output_backprop = values.data();
  gradients.output_h_backprop = values.data(), gradients.reserve_space = reserve;
  gradients.input_backprop = gradients.params_backprop = backprop.data();
  gradients.input_h_backprop = state.data();
  const Status status = other.Backward(gradients, backward.reserve_space);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().find("reserve_space must be what the forward op made for this "
                                  "configuration, got another: "),
            0u)
      << status.message();
}

}  // namespace
}  // namespace tf_cudnn_rnn
