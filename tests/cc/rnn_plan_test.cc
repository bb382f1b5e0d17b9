// Every check that a plan makes, with its message, and what a plan says when all is well.
#include "cc/rnn/rnn_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>

namespace tf_cudnn_rnn {
namespace {

// A call that is right; the tests below spoil one thing each. T=5 B=4 I=3 H=8 L=2 D=2.
struct Call {
  RnnConfig config;
  ForwardArguments forward;
  BackwardArguments backward;
  std::vector<int32_t> lengths = {5, 0, 3, 1};

  Call() {
    config.direction = CUDNN_BIDIRECTIONAL;
    forward.input = {5, 4, 3};
    forward.input_h = forward.input_c = {4, 4, 8};
    // 4 gates, 2 directions: input matrices 3 and 16 wide, recurrent ones, two biases each.
    forward.params = {2 * 4 * (8 * 3 + 8 * 16 + 2 * 8 * 8 + 2 * 2 * 8)};
    forward.sequence_lengths = {4};
    backward.output = backward.output_backprop = {5, 4, 16};
    backward.output_h = backward.output_h_backprop = {4, 4, 8};
    backward.output_c = backward.output_c_backprop = {4, 4, 8};
    backward.reserve_space = {1};
  }

  Status Plan(RnnPlan* plan) {
    forward.sequence_lengths_values = lengths.data();
    return PlanBackward(config, forward, backward, plan);
  }
};

struct Refusal {
  const char* name;
  std::function<void(Call&)> spoil;
  const char* message;
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) { return out << refusal.name; }

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, SaysWhatAndWhy) {
  Call call;
  GetParam().spoil(call);
  RnnPlan plan;
  const Status status = call.Plan(&plan);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), GetParam().message);
}

const int64_t kHuge = int64_t{1} << 31;

const Refusal kRefusals[] = {
    {"dropout_1", [](Call& c) { c.config.dropout = 1; }, "dropout must be in [0, 1), got 1"},
    {"dropout_negative", [](Call& c) { c.config.dropout = -0.5; },
     "dropout must be in [0, 1), got -0.5"},
    {"dropout_nan", [](Call& c) { c.config.dropout = NAN; }, "dropout must be in [0, 1), got nan"},
    {"dropout_infinite", [](Call& c) { c.config.dropout = INFINITY; },
     "dropout must be in [0, 1), got inf"},
    {"num_proj_negative", [](Call& c) { c.config.num_proj = -1; },
     "num_proj must be 0 or more, got -1"},
    {"num_proj_of_gru", [](Call& c) { c.config.num_proj = 2, c.config.rnn_mode = CUDNN_GRU; },
     "num_proj must be 0 with rnn_mode gru, got 2"},
    {"num_proj_too_large", [](Call& c) { c.config.num_proj = 9; },
     "num_proj must be at most num_units, the last dimension of input_c, 8, got 9"},
    {"input_rank_1", [](Call& c) { c.forward.input = {2}; },
     "input must be a tensor of rank 3 [T,B,I], got [2]"},
    {"input_scalar", [](Call& c) { c.forward.input = {}; },
     "input must be a tensor of rank 3 [T,B,I], got []"},
    {"input_rank_4_batch_major",
     [](Call& c) { c.forward.input = {1, 2, 3, 4}, c.config.time_major = false; },
     "input must be a tensor of rank 3 [B,T,I], got [1,2,3,4]"},
    {"input_size_0", [](Call& c) { c.forward.input = {5, 4, 0}; },
     "input must be a tensor whose last dimension, input_size, is at least 1, got [5,4,0]"},
    {"input_beyond_int", [](Call& c) { c.forward.input = {kHuge, 0, 3}; },
     "input must be a tensor with dimensions of at most 2147483647, got [2147483648,0,3]"},
    {"input_h_rank", [](Call& c) { c.forward.input_h = {4, 8}; },
     "input_h must be a tensor of rank 3 [L*D,B,R], got [4,8]"},
    {"input_h_rank_batch_major",
     [](Call& c) { c.forward.input_h = {4, 8}, c.config.time_major = false; },
     "input_h must be a tensor of rank 3 [B,L*D,R], got [4,8]"},
    {"input_h_layers_odd", [](Call& c) { c.forward.input_h = c.forward.input_c = {3, 4, 8}; },
     "input_h must be a tensor whose dimension 0, layers times directions, is a positive multiple "
     "of 2, got [3,4,8]"},
    {"input_h_no_layers", [](Call& c) { c.forward.input_h = c.forward.input_c = {0, 4, 8}; },
     "input_h must be a tensor whose dimension 0, layers times directions, is a positive multiple "
     "of 2, got [0,4,8]"},
    {"input_h_batch", [](Call& c) { c.forward.input_h = {4, 2, 8}; },
     "input_h must be a tensor of shape [4,4,8], got [4,2,8]"},
    {"input_h_units_0", [](Call& c) { c.forward.input_h = {4, 4, 0}; },
     "input_h must be a tensor whose last dimension, num_units, is at least 1, got [4,4,0]"},
    {"input_h_not_num_proj", [](Call& c) { c.config.num_proj = 3; },
     "input_h must be a tensor of shape [4,4,3], got [4,4,8]"},
    {"input_h_beyond_int", [](Call& c) { c.forward.input_h = {4, 4, kHuge}; },
     "input_h must be a tensor with dimensions of at most 2147483647, got [4,4,2147483648]"},
    {"input_h_width_times_batch",
     [](Call& c) {
       c.forward.input = {0, 1 << 16, 3};
       c.forward.input_h = c.forward.input_c = {2, 1 << 16, 1 << 16};
     },
     "batch size times num_units must be at most 2147483647, got 65536 times 65536"},
    {"input_h_output_width",
     [](Call& c) {
       c.forward.input = {0, 1, 3};
       c.forward.input_h = c.forward.input_c = {2, 1, (1 << 30) + 1};
     },
     "input_h must be a tensor whose last dimension times the directions is at most 2147483647, "
     "got [2,1,1073741825]"},
    {"input_c_rank", [](Call& c) { c.forward.input_c = {}; },
     "input_c must be a tensor of rank 3 [L*D,B,H], got []"},
    {"input_c_shape", [](Call& c) { c.forward.input_c = {4, 4, 7}; },
     "input_c must be a tensor of shape [4,4,8], got [4,4,7]"},
    {"skip_input", [](Call& c) { c.config.input_mode = InputMode::kSkip; },
     "input must be a tensor whose last dimension, input_size, is num_units, 8, with skip_input, "
     "got [5,4,3]"},
    {"skip_input_with_projection",
     [](Call& c) {
       c.config.input_mode = InputMode::kSkip, c.config.num_proj = 3;
       c.forward.input_h = {4, 4, 3};
     },
     "num_proj must be 0 or num_units, 8, with skip_input, got 3"},
    {"params_rank", [](Call& c) { c.forward.params = {2, 2}; },
     "params must be a tensor of rank 1 [params_size], got [2,2]"},
    {"params_one_short", [](Call& c) { c.forward.params = {2495}; },
     "params must be a tensor of shape [2496], got [2495]"},
    {"params_beyond_int64",
     [](Call& c) {
       c.forward.input = {0, 0, 3};
       c.forward.input_h = c.forward.input_c = {1 << 20, 0, 1 << 29};
     },
     "params must be a tensor of shape [params_size], but params_size is more than fits in int64; "
     "params is [2496]"},
    {"lengths_rank", [](Call& c) { c.forward.sequence_lengths = {4, 1}; },
     "sequence_lengths must be a tensor of shape [4], got [4,1]"},
    {"lengths_count", [](Call& c) { c.forward.sequence_lengths = {3}; },
     "sequence_lengths must be a tensor of shape [4], got [3]"},
    {"length_negative", [](Call& c) { c.lengths[0] = -1; },
     "sequence_lengths[0] must be in [0, 5], got -1"},
    {"length_too_large", [](Call& c) { c.lengths[2] = 7; },
     "sequence_lengths[2] must be in [0, 5], got 7"},
    {"output", [](Call& c) { c.backward.output = {5, 4, 8}; },
     "output must be a tensor of shape [5,4,16], got [5,4,8]"},
    {"output_h", [](Call& c) { c.backward.output_h = {4, 8}; },
     "output_h must be a tensor of shape [4,4,8], got [4,8]"},
    {"output_c", [](Call& c) { c.backward.output_c = {0}; },
     "output_c must be a tensor of shape [4,4,8], got [0]"},
    {"output_backprop", [](Call& c) { c.backward.output_backprop = {}; },
     "output_backprop must be a tensor of shape [5,4,16], got []"},
    {"output_h_backprop", [](Call& c) { c.backward.output_h_backprop = {4, 4, 9}; },
     "output_h_backprop must be a tensor of shape [4,4,8], got [4,4,9]"},
    {"output_c_backprop", [](Call& c) { c.backward.output_c_backprop = {2, 4, 8}; },
     "output_c_backprop must be a tensor of shape [4,4,8], got [2,4,8]"},
    {"reserve_space", [](Call& c) { c.backward.reserve_space = {}; },
     "reserve_space must be a tensor of rank 1 [reserve_size], got []"},
    {"host_reserved", [](Call& c) { c.backward.host_reserved = {1, 1}; },
     "host_reserved must be a tensor of rank 1 [0], got [1,1]"},
    {"rank_beyond_all", [](Call& c) { c.forward.input = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; },
     "input must be a tensor of rank 3 [T,B,I], got [1,2,3,4,5,6,7,8,... rank 10]"},
};

INSTANTIATE_TEST_SUITE_P(RnnPlan, Refused, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RnnPlan, Sizes) {
  Call call;
  RnnPlan plan;
  ASSERT_TRUE(call.Plan(&plan).ok());
  EXPECT_EQ(plan.T, 5);
  EXPECT_EQ(plan.B, 4);
  EXPECT_EQ(plan.dims().L, 2);
  EXPECT_EQ(plan.dims().D, 2);
  EXPECT_EQ(plan.dims().I, 3);
  EXPECT_EQ(plan.dims().H, 8);
  EXPECT_EQ(plan.dims().R, 8);
  EXPECT_EQ(plan.output_shape, (Shape{5, 4, 16}));
  EXPECT_EQ(plan.output_c_shape, (Shape{4, 4, 8}));
  EXPECT_TRUE(plan.any_zero_length);
  EXPECT_TRUE(plan.any_padding);
  EXPECT_FALSE(plan.empty());
  EXPECT_FALSE(plan.states_transposed());
  EXPECT_EQ(plan.sequence_lengths, call.lengths.data());
  EXPECT_EQ(plan.Describe(),
            "lstm float, bidirectional, linear_input, training, dropout 0, time-major, T=5 B=4 I=3 "
            "H=8 R=8 L=2");
}

TEST(RnnPlan, FullLengths) {
  Call call;
  call.lengths = {5, 5, 5, 5};
  RnnPlan plan;
  ASSERT_TRUE(call.Plan(&plan).ok());
  EXPECT_FALSE(plan.any_zero_length);
  EXPECT_FALSE(plan.any_padding);
}

TEST(RnnPlan, WithoutLengthsAllAreT) {
  Call call;
  RnnPlan plan;
  ASSERT_TRUE(PlanForward(call.config, call.forward, &plan).ok());
  EXPECT_FALSE(plan.any_padding);
  for (int b = 0; b < 4; ++b) EXPECT_EQ(plan.sequence_lengths[b], 5);
}

TEST(RnnPlan, BatchMajor) {
  Call call;
  call.config.time_major = false;
  call.config.direction = CUDNN_UNIDIRECTIONAL;
  call.forward.input = {4, 5, 3};
  call.forward.input_h = call.forward.input_c = {4, 2, 8};
  call.forward.params = {4 * (8 * 3 + 8 * 8 + 2 * 8 * 8 + 2 * 2 * 8)};
  call.backward.output = call.backward.output_backprop = {4, 5, 8};
  call.backward.output_h = call.backward.output_h_backprop = {4, 2, 8};
  call.backward.output_c = call.backward.output_c_backprop = {4, 2, 8};
  RnnPlan plan;
  ASSERT_TRUE(call.Plan(&plan).ok());
  EXPECT_EQ(plan.T, 5);
  EXPECT_EQ(plan.B, 4);
  EXPECT_EQ(plan.dims().L, 2);
  EXPECT_EQ(plan.output_shape, (Shape{4, 5, 8}));
  EXPECT_TRUE(plan.states_transposed());
}

TEST(RnnPlan, Projection) {
  Call call;
  call.config.num_proj = 3;
  call.forward.input_h = {4, 4, 3};
  call.forward.params = {2 * (4 * (8 * 3 + 8 * 6 + 2 * 8 * 3 + 2 * 2 * 8) + 2 * 3 * 8)};
  call.backward.output = call.backward.output_backprop = {5, 4, 6};
  call.backward.output_h = call.backward.output_h_backprop = {4, 4, 3};
  RnnPlan plan;
  ASSERT_TRUE(call.Plan(&plan).ok());
  EXPECT_EQ(plan.dims().H, 8);
  EXPECT_EQ(plan.dims().R, 3);
  EXPECT_TRUE(plan.dims().projects());
}

TEST(RnnPlan, ProjectionToAllUnitsIsNone) {
  Call call;
  call.config.num_proj = 8;
  RnnPlan plan;
  ASSERT_TRUE(call.Plan(&plan).ok());
  EXPECT_FALSE(plan.dims().projects());
}

TEST(RnnPlan, OtherModesIgnoreTheCellState) {
  for (const Shape& ignored : {Shape{}, Shape{0}, Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
    Call call;
    call.config.rnn_mode = CUDNN_GRU;
    call.forward.params = {2496 * 3 / 4};
    call.forward.input_c = ignored;
    call.backward.output_c = call.backward.output_c_backprop = ignored;
    RnnPlan plan;
    ASSERT_TRUE(call.Plan(&plan).ok());
    EXPECT_EQ(plan.output_c_shape, Shape{0});
  }
}

TEST(RnnPlan, AutoSelectComparesWithTheUnits) {
  Call call;
  call.config.input_mode = InputMode::kAutoSelect;
  RnnPlan linear;
  ASSERT_TRUE(call.Plan(&linear).ok());
  EXPECT_FALSE(linear.dims().skip_input);

  call.forward.input = {5, 4, 8};
  call.forward.params = {2496 - 2 * 4 * 8 * 3};
  RnnPlan skip;
  ASSERT_TRUE(call.Plan(&skip).ok());
  EXPECT_TRUE(skip.dims().skip_input);
}

TEST(RnnPlan, NoRowsOrNoSteps) {
  Call call;
  call.forward.input = {5, 0, 3};
  call.forward.input_h = call.forward.input_c = {4, 0, 8};
  RnnPlan no_rows;
  ASSERT_TRUE(PlanForward(call.config, call.forward, &no_rows).ok());
  EXPECT_TRUE(no_rows.empty());
  EXPECT_EQ(no_rows.output_shape, (Shape{5, 0, 16}));

  call.forward.input = {0, 4, 3};
  call.forward.input_h = call.forward.input_c = {4, 4, 8};
  RnnPlan no_steps;
  ASSERT_TRUE(PlanForward(call.config, call.forward, &no_steps).ok());
  EXPECT_TRUE(no_steps.empty());
}

TEST(RnnPlan, DropsOnlyBetweenLayersInTraining) {
  Call call;
  call.config.dropout = 0.5;
  RnnPlan plan;
  ASSERT_TRUE(call.Plan(&plan).ok());
  EXPECT_TRUE(plan.drops());

  call.config.is_training = false;
  RnnPlan inference;
  ASSERT_TRUE(call.Plan(&inference).ok());
  EXPECT_FALSE(inference.drops());
}

TEST(RnnConfig, WordsAndBack) {
  cudnnRNNMode_t rnn_mode;
  for (const char* text : {"rnn_relu", "rnn_tanh", "lstm", "gru"}) {
    ASSERT_TRUE(ParseRnnMode(text, &rnn_mode).ok());
    EXPECT_STREQ(RnnModeName(rnn_mode), text);
  }
  InputMode input_mode;
  for (const char* text : {"linear_input", "skip_input", "auto_select"}) {
    ASSERT_TRUE(ParseInputMode(text, &input_mode).ok());
    EXPECT_STREQ(InputModeName(input_mode), text);
  }
  cudnnDirectionMode_t direction;
  for (const char* text : {"unidirectional", "bidirectional"}) {
    ASSERT_TRUE(ParseDirection(text, &direction).ok());
    EXPECT_STREQ(DirectionName(direction), text);
  }
  EXPECT_EQ(ParseRnnMode("LSTM", &rnn_mode).message(),
            "rnn_mode must be one of rnn_relu, rnn_tanh, lstm, gru, got LSTM");
}

}  // namespace
}  // namespace tf_cudnn_rnn
