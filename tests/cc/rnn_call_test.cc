// What a call asks of cuDNN, in which order and with which memory, and what it puts right around
// it: on a table that computes nothing (fake_cudnn.h).
#include "cc/rnn/rnn_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "tests/cc/fake_cudnn.h"

namespace tf_cudnn_rnn {
namespace {

using Floats = std::vector<float>;

const float kNan = std::numeric_limits<float>::quiet_NaN();

// The tensors of one call, of float. The inputs count up from 1, the outputs hold NaN.
struct Tensors {
  RnnConfig config;
  int T = 3, B = 4, I = 2, H = 3, R = 3, L = 1, D = 1;
  std::vector<int32_t> lengths;
  Floats input, input_h, input_c, params, output, output_h, output_c;
  Floats output_backprop, output_h_backprop, output_c_backprop;
  Floats input_backprop, input_h_backprop, input_c_backprop, params_backprop;
  // Aligned as TensorFlow's tensors are.
  alignas(64) float reserve[64];
  int64_t reserve_elements = 25;

  // After the sizes have been set.
  Status Plan(RnnPlan* plan) {
    D = config.D();
    if (lengths.empty()) lengths.assign(B, T);
    RnnDims dims;
    dims.G = config.G(), dims.L = L, dims.D = D, dims.I = I, dims.H = H, dims.R = R;
    const int64_t P = L * D;
    Fill(&input, int64_t{T} * B * I);
    Fill(&input_h, P * B * R);
    Fill(&input_c, P * B * H);
    Fill(&params, WeightLayout(dims).size());
    Fill(&output_backprop, int64_t{T} * B * D * R);
    Fill(&output_h_backprop, P * B * R);
    Fill(&output_c_backprop, P * B * H);
    output.assign(output_backprop.size(), kNan);
    output_h.assign(input_h.size(), kNan);
    output_c.assign(input_c.size(), kNan);
    input_backprop.assign(input.size(), kNan);
    input_h_backprop.assign(input_h.size(), kNan);
    input_c_backprop.assign(input_c.size(), kNan);
    params_backprop.assign(params.size(), kNan);
    std::iota(std::begin(reserve), std::end(reserve), 1.f);

    const auto layout = [this](int64_t first, int64_t width) {
      return config.time_major ? Shape{first, B, width} : Shape{B, first, width};
    };
    ForwardArguments forward;
    forward.input = layout(T, I);
    forward.input_h = layout(P, R);
    forward.input_c = layout(P, H);
    forward.params = {static_cast<int64_t>(params.size())};
    forward.sequence_lengths = {B};
    forward.sequence_lengths_values = lengths.data();
    BackwardArguments backward;
    backward.output = backward.output_backprop = layout(T, D * R);
    backward.output_h = backward.output_h_backprop = forward.input_h;
    backward.output_c = backward.output_c_backprop = forward.input_c;
    backward.reserve_space = {reserve_elements};
    return PlanBackward(config, forward, backward, plan);
  }

  ForwardBuffers Forward() {
    ForwardBuffers buffers;
    buffers.input = input.data(), buffers.input_h = input_h.data();
    buffers.input_c = input_c.data(), buffers.params = params.data();
    buffers.output = output.data(), buffers.output_h = output_h.data();
    buffers.output_c = output_c.data(), buffers.reserve_space = reserve;
    return buffers;
  }

  BackwardBuffers Backward() {
    BackwardBuffers buffers;
    buffers.input = input.data(), buffers.input_h = input_h.data();
    buffers.input_c = input_c.data(), buffers.params = params.data();
    buffers.output = output.data(), buffers.output_backprop = output_backprop.data();
    buffers.output_h_backprop = output_h_backprop.data();
    buffers.output_c_backprop = output_c_backprop.data();
    buffers.reserve_space = reserve;
    buffers.input_backprop = input_backprop.data();
    buffers.input_h_backprop = input_h_backprop.data();
    buffers.input_c_backprop = input_c_backprop.data();
    buffers.params_backprop = params_backprop.data();
    return buffers;
  }

 private:
  static void Fill(Floats* values, int64_t count) {
    values->resize(count);
    std::iota(values->begin(), values->end(), 1.f);
  }
};

class RnnCallTest : public testing::Test {
 protected:
  RnnCallTest() { traits.dense_params = true; }

  Status Forward() {
    RnnPlan plan;
    TF_CUDNN_RNN_RETURN_IF_ERROR(t.Plan(&plan));
    HostDevice device(fake.api(), nullptr, traits);
    RnnCall call(plan, &device, &dropout);
    TF_CUDNN_RNN_RETURN_IF_ERROR(call.Prepare());
    reserve_elements = call.reserve_elements();
    return call.Forward(t.Forward());
  }

  Status Backward() {
    RnnPlan plan;
    TF_CUDNN_RNN_RETURN_IF_ERROR(t.Plan(&plan));
    HostDevice device(fake.api(), nullptr, traits);
    RnnCall call(plan, &device, &dropout);
    TF_CUDNN_RNN_RETURN_IF_ERROR(call.Prepare());
    return call.Backward(t.Backward(), {t.reserve_elements});
  }

  FakeCudnn fake;
  DeviceTraits traits;
  DropoutStates dropout{0.5, 7};
  Tensors t;
  int64_t reserve_elements = -1;
};

void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

TEST_F(RnnCallTest, ForwardInOrderOnTheCallersMemory) {
  FakeRun run;
  fake.forward = [&](const FakeRun& r) { run = r; };
  ExpectOk(Forward());
  const std::vector<std::string> expected = {
      "cudnnCreateDropoutDescriptor", "cudnnSetDropoutDescriptor",
      "cudnnCreateRNNDescriptor",     "cudnnSetRNNDescriptor_v8",
      "cudnnCreateRNNDataDescriptor", "cudnnSetRNNDataDescriptor",
      "cudnnCreateRNNDataDescriptor", "cudnnSetRNNDataDescriptor",
      "cudnnCreateTensorDescriptor",  "cudnnSetTensorNdDescriptor",
      "cudnnCreateTensorDescriptor",  "cudnnSetTensorNdDescriptor",
      "cudnnGetRNNTempSpaceSizes",    "cudnnRNNForward"};
  EXPECT_EQ(fake.calls, expected);
  EXPECT_EQ(fake.alive, 0);
  EXPECT_EQ(run.x, t.input.data());
  EXPECT_EQ(run.hx, t.input_h.data());
  EXPECT_EQ(run.cx, t.input_c.data());
  EXPECT_EQ(run.y_out, t.output.data());
  EXPECT_EQ(run.hy, t.output_h.data());
  EXPECT_EQ(run.cy, t.output_c.data());
  EXPECT_EQ(run.weights, t.params.data());
  EXPECT_EQ(run.weight_bytes, t.params.size() * 4);
  EXPECT_EQ(run.work_bytes, fake.work_bytes);
  EXPECT_EQ(run.reserve, t.reserve);
  EXPECT_EQ(run.reserve_bytes, fake.reserve_bytes);
  EXPECT_EQ(fake.asked_mode, CUDNN_FWD_MODE_TRAINING);
  EXPECT_EQ(reserve_elements, 25);
}

TEST_F(RnnCallTest, DescribesTheModel) {
  t.config.num_proj = 2;
  t.R = 2;
  t.L = 2;
  t.config.direction = CUDNN_BIDIRECTIONAL;
  t.lengths = {3, 1, 2, 3};
  ExpectOk(Forward());
  EXPECT_EQ(fake.rnn.algo, CUDNN_RNN_ALGO_STANDARD);
  EXPECT_EQ(fake.rnn.mode, CUDNN_LSTM);
  EXPECT_EQ(fake.rnn.bias, CUDNN_RNN_DOUBLE_BIAS);
  EXPECT_EQ(fake.rnn.direction, CUDNN_BIDIRECTIONAL);
  EXPECT_EQ(fake.rnn.input_mode, CUDNN_LINEAR_INPUT);
  EXPECT_EQ(fake.rnn.input, 2);
  EXPECT_EQ(fake.rnn.hidden, 3);
  EXPECT_EQ(fake.rnn.projection, 2);
  EXPECT_EQ(fake.rnn.layers, 2);
  EXPECT_EQ(fake.rnn.flags, static_cast<uint32_t>(CUDNN_RNN_PADDED_IO_ENABLED));
  ASSERT_EQ(fake.data.size(), 2u);
  EXPECT_EQ(fake.data[0].width, 2);
  EXPECT_EQ(fake.data[1].width, 4);
  for (const FakeData& data : fake.data) {
    EXPECT_EQ(data.T, 3);
    EXPECT_EQ(data.B, 4);
    EXPECT_EQ(data.lengths, (std::vector<int>{3, 1, 2, 3}));
    EXPECT_EQ(data.layout, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED);
  }
  EXPECT_EQ(fake.tensors, (std::vector<std::vector<int>>{{4, 4, 2, 8, 2, 1}, {4, 4, 3, 12, 3, 1}}));
}

TEST_F(RnnCallTest, NumProjOfAllUnitsIsNoProjection) {
  t.config.num_proj = 3;
  ExpectOk(Forward());
  EXPECT_EQ(fake.rnn.projection, 3);
}

TEST_F(RnnCallTest, OtherModesHaveNoCellState) {
  t.config.rnn_mode = CUDNN_GRU;
  FakeRun run;
  fake.forward = [&](const FakeRun& r) { run = r; };
  ExpectOk(Forward());
  EXPECT_FALSE(run.has_c_descriptor);
  EXPECT_EQ(run.cx, nullptr);
  EXPECT_EQ(run.cy, nullptr);
  fake.backward_data = [&](const FakeRun& r) { run = r; };
  ExpectOk(Backward());
  EXPECT_FALSE(run.has_c_descriptor);
  EXPECT_EQ(run.dcy, nullptr);
  EXPECT_EQ(run.dcx, nullptr);
}

TEST_F(RnnCallTest, TypesMathAndPaddingFill) {
  struct Expected {
    cudnnDataType_t type, precision;
    bool tensor_float_32;
    cudnnMathType_t math;
  };
  for (const Expected& e : std::initializer_list<Expected>{
           {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, false, CUDNN_FMA_MATH},
           {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, true, CUDNN_DEFAULT_MATH},
           {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, true, CUDNN_DEFAULT_MATH},
           {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, false, CUDNN_TENSOR_OP_MATH},
           {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, false, CUDNN_TENSOR_OP_MATH}}) {
    fake.data.clear();
    t.config.data_type = e.type;
    traits.tensor_float_32 = e.tensor_float_32;
    fake.reserve_bytes = 25;
    ExpectOk(Forward());
    EXPECT_EQ(fake.rnn.data_type, e.type);
    EXPECT_EQ(fake.rnn.math_precision, e.precision);
    EXPECT_EQ(fake.rnn.math_type, e.math);
    for (const FakeData& data : fake.data) EXPECT_EQ(data.fill_bits, 0u);
    // Whole elements that hold 25 bytes.
    EXPECT_EQ(reserve_elements, e.type == CUDNN_DATA_DOUBLE  ? 4
                                : e.type == CUDNN_DATA_FLOAT ? 7
                                                             : 13);
  }
}

TEST_F(RnnCallTest, InferenceHasNoReserveSpace) {
  t.config.is_training = false;
  FakeRun run;
  fake.forward = [&](const FakeRun& r) { run = r; };
  ExpectOk(Forward());
  EXPECT_EQ(fake.asked_mode, CUDNN_FWD_MODE_INFERENCE);
  EXPECT_EQ(run.reserve, nullptr);
  EXPECT_EQ(run.reserve_bytes, 0u);
  EXPECT_EQ(reserve_elements, 0);
}

// Batch-major states reach cuDNN as [L·D, B, width] and come back as [B, L·D, width].
TEST_F(RnnCallTest, BatchMajorStatesAreTransposed) {
  t.config.time_major = false;
  t.L = 2;
  Floats hx, cx;
  fake.forward = [&](const FakeRun& r) {
    EXPECT_EQ(r.x, t.input.data());
    EXPECT_EQ(r.y_out, t.output.data());
    const size_t count = t.input_h.size();
    hx.assign(static_cast<const float*>(r.hx), static_cast<const float*>(r.hx) + count);
    cx.assign(static_cast<const float*>(r.cx), static_cast<const float*>(r.cx) + count);
    std::copy(hx.begin(), hx.end(), static_cast<float*>(r.hy));
    std::copy(cx.begin(), cx.end(), static_cast<float*>(r.cy));
  };
  ExpectOk(Forward());
  for (const FakeData& data : fake.data) {
    EXPECT_EQ(data.layout, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED);
  }
  for (int p = 0; p < 2; ++p) {
    for (int b = 0; b < t.B; ++b) {
      for (int i = 0; i < t.H; ++i) {
        EXPECT_EQ(hx[(p * t.B + b) * t.H + i], t.input_h[(b * 2 + p) * t.H + i]);
      }
    }
  }
  EXPECT_EQ(cx, hx);
  EXPECT_EQ(t.output_h, t.input_h);
  EXPECT_EQ(t.output_c, t.input_c);

  fake.backward_data = [&](const FakeRun& r) {
    const size_t bytes = t.input_h.size() * 4;
    EXPECT_EQ(std::memcmp(r.hx, hx.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(r.dhy, hx.data(), bytes), 0);
    std::memcpy(r.dhx, r.dhy, bytes);
    std::memcpy(r.dcx, r.dcy, bytes);
  };
  ExpectOk(Backward());
  EXPECT_EQ(t.input_h_backprop, t.output_h_backprop);
  EXPECT_EQ(t.input_c_backprop, t.output_c_backprop);
}

TEST_F(RnnCallTest, OneRowOrOneStateNeedsNoTransposition) {
  t.config.time_major = false;
  FakeRun run;
  fake.forward = [&](const FakeRun& r) { run = r; };
  ExpectOk(Forward());
  EXPECT_EQ(run.hx, t.input_h.data());
  t.L = 2;
  t.B = 1;
  t.lengths.clear();
  ExpectOk(Forward());
  EXPECT_EQ(run.hx, t.input_h.data());
}

TEST_F(RnnCallTest, ZeroLengthsGoToATableThatTakesThem) {
  traits.takes_zero_lengths = true;
  t.lengths = {0, 2, 0, 0};
  FakeRun run;
  fake.forward = [&](const FakeRun& r) { run = r; };
  ExpectOk(Forward());
  EXPECT_EQ(fake.data[0].lengths, (std::vector<int>{0, 2, 0, 0}));
  EXPECT_EQ(run.x, t.input.data());
}

// Rows 0, 2 and 3 have no step.
class ZeroLengths : public RnnCallTest, public testing::WithParamInterface<bool> {
 protected:
  ZeroLengths() {
    t.config.time_major = GetParam();
    t.L = 2;
    t.lengths = {0, 2, 0, 0};
  }
  // The first step of row b in [T, B, width] or [B, T, width], as an offset.
  int64_t Step(int b, int width) const {
    return (GetParam() ? int64_t{b} : int64_t{b} * t.T) * width;
  }
  // State p of row b.
  int64_t State(int p, int b, int width) const {
    return (GetParam() ? p * t.B + b : b * t.L + p) * width;
  }
  // Whether the values of those rows are `expected` and of row 1 are `other`.
  static void ExpectRows(const float* values, int64_t offset, int width, int b, float expected,
                         float other) {
    for (int i = 0; i < width; ++i) {
      EXPECT_EQ(values[offset + i], b == 1 ? other : expected) << "row " << b;
    }
  }
};

TEST_P(ZeroLengths, TrainingRunsThemOnZeros) {
  fake.forward = [&](const FakeRun& r) {
    const auto *x = static_cast<const float*>(r.x), *hx = static_cast<const float*>(r.hx);
    for (int b = 0; b < t.B; ++b) {
      for (int i = 0; i < t.I; ++i) {
        const int64_t at = Step(b, t.I) + i;
        EXPECT_EQ(x[at], b == 1 ? t.input[at] : 0);
      }
      for (int p = 0; p < t.L; ++p) {
        for (int i = 0; i < t.R; ++i) {
          EXPECT_EQ(hx[(p * t.B + b) * t.R + i], b == 1 ? t.input_h[State(p, b, t.R) + i] : 0);
        }
      }
    }
    std::fill_n(static_cast<float*>(r.y_out), t.output.size(), 9.f);
    std::fill_n(static_cast<float*>(r.hy), t.output_h.size(), 9.f);
    std::fill_n(static_cast<float*>(r.cy), t.output_c.size(), 9.f);
  };
  ExpectOk(Forward());
  EXPECT_EQ(fake.data[0].lengths, (std::vector<int>{1, 2, 1, 1}));
  for (int b = 0; b < t.B; ++b) {
    ExpectRows(t.output.data(), Step(b, t.R), t.R, b, 0, 9);
    for (int p = 0; p < t.L; ++p) {
      for (int i = 0; i < t.R; ++i) {
        const int64_t at = State(p, b, t.R) + i;
        EXPECT_EQ(t.output_h[at], b == 1 ? 9 : t.input_h[at]);
        EXPECT_EQ(t.output_c[at], b == 1 ? 9 : t.input_c[at]);
      }
    }
  }
}

TEST_P(ZeroLengths, InferenceCopiesNoSequence) {
  t.config.is_training = false;
  const void* x = nullptr;
  fake.forward = [&](const FakeRun& r) { x = r.x; };
  ExpectOk(Forward());
  EXPECT_EQ(x, t.input.data());
  for (int b : {0, 2, 3}) {
    for (int i = 0; i < t.R; ++i) {
      EXPECT_EQ(t.output[Step(b, t.R) + i], 0);
      EXPECT_EQ(t.output_h[State(1, b, t.R) + i], t.input_h[State(1, b, t.R) + i]);
    }
  }
}

TEST_P(ZeroLengths, NoGradientEntersThem) {
  std::vector<const void*> weights_x;
  fake.backward_data = [&](const FakeRun& r) {
    const auto* dy = static_cast<const float*>(r.dy);
    const auto *dhy = static_cast<const float*>(r.dhy), *dcy = static_cast<const float*>(r.dcy);
    const auto* cx = static_cast<const float*>(r.cx);
    for (int b : {0, 2, 3}) {
      for (int i = 0; i < t.R; ++i) {
        EXPECT_EQ(dy[Step(b, t.R) + i], 0);
        for (int p = 0; p < t.L; ++p) {
          EXPECT_EQ(dhy[(p * t.B + b) * t.R + i], 0);
          EXPECT_EQ(dcy[(p * t.B + b) * t.R + i], 0);
          EXPECT_EQ(cx[(p * t.B + b) * t.R + i], 0);
        }
      }
    }
    std::fill_n(static_cast<float*>(r.dx), t.input.size(), 9.f);
    std::fill_n(static_cast<float*>(r.dhx), t.input_h.size(), 9.f);
    std::fill_n(static_cast<float*>(r.dcx), t.input_c.size(), 9.f);
  };
  fake.backward_weights = [&](const FakeRun& r) {
    for (int b : {0, 2, 3}) {
      EXPECT_EQ(static_cast<const float*>(r.x)[Step(b, t.I)], 0);
      EXPECT_EQ(static_cast<const float*>(r.hx)[b * t.R], 0);
    }
  };
  ExpectOk(Backward());
  for (int b = 0; b < t.B; ++b) {
    ExpectRows(t.input_backprop.data(), Step(b, t.I), t.I, b, 0, 9);
    for (int p = 0; p < t.L; ++p) {
      for (int i = 0; i < t.R; ++i) {
        const int64_t at = State(p, b, t.R) + i;
        EXPECT_EQ(t.input_h_backprop[at], b == 1 ? 9 : t.output_h_backprop[at]);
        EXPECT_EQ(t.input_c_backprop[at], b == 1 ? 9 : t.output_c_backprop[at]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RnnCall, ZeroLengths, testing::Bool(),
                         [](const auto& info) { return info.param ? "TimeMajor" : "BatchMajor"; });

TEST_F(RnnCallTest, BackwardInOrder) {
  FakeRun data, weights;
  fake.backward_data = [&](const FakeRun& r) { data = r; };
  fake.backward_weights = [&](const FakeRun& r) {
    weights = r;
    for (size_t i = 0; i < t.params.size(); ++i) {
      ASSERT_EQ(static_cast<const float*>(r.dweights)[i], 0) << "BackwardWeights adds";
    }
  };
  ExpectOk(Backward());
  ASSERT_GE(fake.calls.size(), 2u);
  EXPECT_EQ(*(fake.calls.end() - 2), "cudnnRNNBackwardData_v8");
  EXPECT_EQ(fake.calls.back(), "cudnnRNNBackwardWeights_v8");
  EXPECT_EQ(fake.alive, 0);
  EXPECT_EQ(data.y, t.output.data());
  EXPECT_EQ(data.dy, t.output_backprop.data());
  EXPECT_EQ(data.dx, t.input_backprop.data());
  EXPECT_EQ(data.dhy, t.output_h_backprop.data());
  EXPECT_EQ(data.dhx, t.input_h_backprop.data());
  EXPECT_EQ(data.weights, t.params.data());
  EXPECT_EQ(weights.x, t.input.data());
  EXPECT_EQ(weights.y, t.output.data());
  EXPECT_EQ(weights.dweights, t.params_backprop.data());
  EXPECT_EQ(weights.work, data.work);
  EXPECT_EQ(weights.reserve, data.reserve);
  EXPECT_EQ(weights.reserve_bytes, 100u);
}

TEST_F(RnnCallTest, ReserveSpaceStaysAsItWas) {
  const float before = t.reserve[0] = 1;
  fake.backward_data = [&](const FakeRun& r) {
    EXPECT_NE(r.reserve, t.reserve);
    EXPECT_EQ(*static_cast<float*>(r.reserve), before);
    *static_cast<float*>(r.reserve) = 5;
  };
  fake.backward_weights = [&](const FakeRun& r) { EXPECT_EQ(*static_cast<float*>(r.reserve), 5); };
  ExpectOk(Backward());
  EXPECT_EQ(t.reserve[0], before);
}

TEST_F(RnnCallTest, ReserveSpaceIsNotCopiedWhereNothingWritesToIt) {
  traits.reserve_is_read_only = true;
  const void* reserve = nullptr;
  fake.backward_data = [&](const FakeRun& r) { reserve = r.reserve; };
  ExpectOk(Backward());
  EXPECT_EQ(reserve, t.reserve);
}

TEST_F(RnnCallTest, ASliceOfATensorMayBeNoAlignedReserveSpace) {
  traits.reserve_is_read_only = true;
  RnnPlan plan;
  ExpectOk(t.Plan(&plan));
  HostDevice device(fake.api(), nullptr, traits);
  RnnCall call(plan, &device, nullptr);
  ExpectOk(call.Prepare());
  BackwardBuffers buffers = t.Backward();
  buffers.reserve_space = t.reserve + 1;
  fake.backward_data = [&](const FakeRun& r) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(r.reserve) % 64, 0u);
    EXPECT_EQ(*static_cast<float*>(r.reserve), t.reserve[1]);
  };
  ExpectOk(call.Backward(buffers, {25}));
}

TEST_F(RnnCallTest, ReserveSpaceOfAnotherSize) {
  t.reserve_elements = 24;
  const Status status = Backward();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "reserve_space must be a tensor of shape [25], what the forward op made for this "
            "configuration (lstm float, unidirectional, linear_input, training, dropout 0, "
            "time-major, T=3 B=4 I=2 H=3 R=3 L=1), got [24]");
}

TEST_F(RnnCallTest, ReserveSpaceOfAnotherConfiguration) {
  traits.checks_reserve = true;
  fake.failures["cudnnRNNBackwardData_v8"] = CUDNN_STATUS_BAD_PARAM;
  fake.last_error = "the reserve space is another's";
  const Status status = Backward();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().find("reserve_space must be what the forward op made for this "
                                  "configuration, got another: cudnnRNNBackwardData_v8 failed with "
                                  "CUDNN_STATUS_BAD_PARAM (the reserve space is another's) for "
                                  "lstm float"),
            0u)
      << status.message();
}

// cuDNN may leave the input gradient as it was beyond the lengths.
TEST_F(RnnCallTest, PaddingOfTheInputGradientIsZeroBefore) {
  bool zero = false;
  fake.backward_data = [&](const FakeRun& r) {
    const auto* dx = static_cast<const float*>(r.dx);
    zero = std::all_of(dx, dx + t.input.size(), [](float value) { return value == 0; });
  };
  t.lengths = {3, 3, 3, 2};
  ExpectOk(Backward());
  EXPECT_TRUE(zero);

  t.lengths = {3, 3, 3, 3};
  ExpectOk(Backward());
  EXPECT_FALSE(zero);

  t.lengths = {3, 3, 3, 2};
  traits.zeroes_padding = true;
  ExpectOk(Backward());
  EXPECT_FALSE(zero);
}

TEST_F(RnnCallTest, NoRows) {
  t.B = 0;
  t.reserve_elements = 0;
  ExpectOk(Forward());
  EXPECT_EQ(reserve_elements, 0);
  ExpectOk(Backward());
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_EQ(t.params_backprop, Floats(t.params.size(), 0));
}

TEST_F(RnnCallTest, NoSteps) {
  t.T = 0;
  t.L = 2;
  t.config.time_major = false;
  t.reserve_elements = 0;
  ExpectOk(Forward());
  EXPECT_EQ(reserve_elements, 0);
  EXPECT_EQ(t.output_h, t.input_h);
  EXPECT_EQ(t.output_c, t.input_c);
  ExpectOk(Backward());
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_EQ(t.input_h_backprop, t.output_h_backprop);
  EXPECT_EQ(t.input_c_backprop, t.output_c_backprop);
  EXPECT_EQ(t.params_backprop, Floats(t.params.size(), 0));
}

// Each function in turn fails; nothing is left behind and the next call works.
TEST_F(RnnCallTest, EveryFailureIsAStatus) {
  t.L = 2;
  t.config.dropout = 0.5;
  ExpectOk(Forward());
  ExpectOk(Backward());
  const std::set<std::string> functions(fake.calls.begin(), fake.calls.end());
  EXPECT_GE(functions.size(), 12u);
  for (const std::string& function : functions) {
    for (const auto& [answer, code] : std::initializer_list<std::pair<cudnnStatus_t, StatusCode>>{
             {CUDNN_STATUS_BAD_PARAM, StatusCode::kInvalidArgument},
             {CUDNN_STATUS_NOT_SUPPORTED, StatusCode::kInvalidArgument},
             {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, StatusCode::kResourceExhausted},
             {CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, StatusCode::kResourceExhausted},
             {CUDNN_STATUS_EXECUTION_FAILED, StatusCode::kInternal}}) {
      fake.failures = {{function, answer}};
      DropoutStates fresh(0.5, 7);
      RnnPlan plan;
      ExpectOk(t.Plan(&plan));
      HostDevice device(fake.api(), nullptr, traits);
      Status status;
      for (int i = 0; i < 2 && status.ok(); ++i) {  // the second call restores the dropout states
        RnnCall call(plan, &device, &fresh);
        status = call.Prepare();
        if (status.ok()) status = call.Forward(t.Forward());
        if (status.ok()) status = call.Backward(t.Backward(), {t.reserve_elements});
      }
      EXPECT_EQ(status.code(), code) << function;
      EXPECT_NE(status.message().find(function + " failed with "), std::string::npos) << function;
      EXPECT_EQ(fake.alive, 0) << function;
    }
  }
  fake.failures.clear();
  ExpectOk(Forward());
}

class OutOfMemory : public HostDevice {
 public:
  using HostDevice::HostDevice;
  int allocations = 0, fail_at = -1;
  Status Allocate(size_t bytes, void** memory) override {
    if (allocations++ == fail_at) return ResourceExhausted("no memory");
    return HostDevice::Allocate(bytes, memory);
  }
};

TEST_F(RnnCallTest, EveryAllocationMayFail) {
  t.L = 2;
  t.config.time_major = false;
  t.lengths = {0, 1, 2, 3};
  RnnPlan plan;
  ExpectOk(t.Plan(&plan));
  int failures = 0;
  for (int fail_at = 0;; ++fail_at) {
    OutOfMemory device(fake.api(), nullptr, traits);
    device.fail_at = fail_at;
    RnnCall call(plan, &device, nullptr);
    ExpectOk(call.Prepare());
    Status status = call.Forward(t.Forward());
    if (status.ok()) status = call.Backward(t.Backward(), {t.reserve_elements});
    if (status.ok()) break;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    ++failures;
  }
  // States in and out, copies without the rows of no steps, work and reserve space.
  EXPECT_EQ(failures, 4 + 3 + 1 + 6 + 6 + 1 + 1);
}

TEST_F(RnnCallTest, DropoutStatesAreMadeOnceAndKept) {
  t.L = 2;
  t.config.dropout = 0.5;
  ExpectOk(Forward());
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "cudnnSetDropoutDescriptor"), 1);
  EXPECT_EQ(fake.dropout, 0.5f);
  EXPECT_EQ(fake.dropout_seed, 7u);
  EXPECT_EQ(fake.dropout_given_bytes, fake.dropout_states_bytes);
  EXPECT_TRUE(fake.rnn.has_dropout);
  const void* states = fake.dropout_states;
  EXPECT_NE(states, nullptr);
  fake.calls.clear();
  ExpectOk(Forward());
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "cudnnSetDropoutDescriptor"), 0);
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "cudnnRestoreDropoutDescriptor"), 1);
  EXPECT_EQ(fake.dropout_states, states);
}

TEST_F(RnnCallTest, NoDropoutStatesWhereNothingDrops) {
  t.config.dropout = 0.5;  // one layer
  ExpectOk(Forward());
  t.L = 2;
  t.config.is_training = false;
  ExpectOk(Forward());
  t.config.is_training = true;
  t.config.dropout = 0;
  ExpectOk(Forward());
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "cudnnDropoutGetStatesSize"), 0);
  EXPECT_EQ(fake.dropout_states, nullptr);
}

TEST(CombineSeeds, PairsDiffer) {
  std::set<uint64_t> seen;
  const int64_t limit = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> seeds = {limit, limit - 1, -limit - 1, -limit};
  for (int64_t i = -20; i <= 20; ++i) seeds.push_back(i);
  for (int64_t shift = 8; shift < 63; shift += 5) seeds.push_back(int64_t{1} << shift);
  for (int64_t seed : seeds) {
    for (int64_t seed2 : seeds) seen.insert(CombineSeeds(seed, seed2));
  }
  EXPECT_EQ(seen.size(), seeds.size() * seeds.size());
}

}  // namespace
}  // namespace tf_cudnn_rnn
