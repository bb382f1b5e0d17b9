// Sizes, canonical lists and conversions of params.
#include "cc/rnn/params_layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "cc/cudnn/cudnn_api.h"

namespace tf_cudnn_rnn {
namespace {

RnnConfig Config(cudnnRNNMode_t rnn_mode, cudnnDirectionMode_t direction, int64_t num_proj = 0) {
  RnnConfig config;
  config.rnn_mode = rnn_mode;
  config.direction = direction;
  config.num_proj = num_proj;
  return config;
}

int64_t Size(const RnnConfig& config, int64_t L, int64_t H, int64_t I) {
  ParamsLayout layout;
  const Status status = ParamsLayout::Create(config, L, H, I, &layout);
  EXPECT_TRUE(status.ok()) << status.message();
  return layout.size();
}

TEST(ParamsLayout, KnownSizes) {
  EXPECT_EQ(Size(Config(CUDNN_LSTM, CUDNN_BIDIRECTIONAL), 3, 143, 143), 1315600);
  EXPECT_EQ(Size(Config(CUDNN_GRU, CUDNN_UNIDIRECTIONAL), 1, 128, 28), 60672);
  EXPECT_EQ(Size(Config(CUDNN_LSTM, CUDNN_UNIDIRECTIONAL), 1, 2, 3), 56);
  EXPECT_EQ(Size(Config(CUDNN_RNN_RELU, CUDNN_UNIDIRECTIONAL), 1, 1, 4), 7);
  EXPECT_EQ(Size(Config(CUDNN_GRU, CUDNN_UNIDIRECTIONAL), 1, 1, 4), 21);
}

TEST(ParamsLayout, SizeDoesNotDependOnTheType) {
  RnnConfig config = Config(CUDNN_LSTM, CUDNN_UNIDIRECTIONAL);
  for (cudnnDataType_t type :
       {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE}) {
    config.data_type = type;
    EXPECT_EQ(Size(config, 1, 2, 3), 56);
  }
}

std::string Message(const RnnConfig& config, int64_t L, int64_t H, int64_t I) {
  ParamsLayout layout;
  const Status status = ParamsLayout::Create(config, L, H, I, &layout);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return status.message();
}

TEST(ParamsLayout, RefusesSizes) {
  const RnnConfig lstm = Config(CUDNN_LSTM, CUDNN_UNIDIRECTIONAL);
  EXPECT_EQ(Message(lstm, 0, 1, 1), "num_layers must be at least 1, got 0");
  EXPECT_EQ(Message(lstm, 1, -1, 1), "num_units must be at least 1, got -1");
  EXPECT_EQ(Message(lstm, 1, 1, 0), "input_size must be at least 1, got 0");
  EXPECT_EQ(Message(Config(CUDNN_LSTM, CUDNN_UNIDIRECTIONAL, 9), 1, 8, 3),
            "num_proj must be at most num_units, 8, got 9");
  EXPECT_EQ(Message(Config(CUDNN_GRU, CUDNN_UNIDIRECTIONAL, 2), 1, 8, 3),
            "num_proj must be 0 with rnn_mode gru, got 2");
  RnnConfig skip = Config(CUDNN_LSTM, CUDNN_UNIDIRECTIONAL);
  skip.input_mode = InputMode::kSkip;
  EXPECT_EQ(Message(skip, 1, 8, 3), "input_size must be num_units, 8, with skip_input, got 3");
  skip.num_proj = 3;
  EXPECT_EQ(Message(skip, 1, 8, 8), "num_proj must be 0 or num_units, 8, with skip_input, got 3");
}

TEST(ParamsLayout, RefusesWhatOverflows) {
  const int64_t most = std::numeric_limits<int32_t>::max();
  const RnnConfig config = Config(CUDNN_LSTM, CUDNN_BIDIRECTIONAL);
  EXPECT_EQ(Message(config, most, 1, 1), "num_layers must be at most 119304647, got 2147483647");
  EXPECT_EQ(Message(config, 1, most, most),
            "the size of params is more than fits in int64: num_layers 1, num_units 2147483647, "
            "input_size 2147483647");
  EXPECT_EQ(Message(config, 119304647, most, 1),
            "the size of params is more than fits in int64: num_layers 119304647, num_units "
            "2147483647, input_size 1");
}

TEST(ParamsLayout, ScalarsOnly) {
  const int32_t value = 3;
  int64_t size = 0;
  EXPECT_TRUE(ReadSize("num_layers", {}, &value, &size).ok());
  EXPECT_EQ(size, 3);
  EXPECT_EQ(ReadSize("num_layers", {1}, &value, &size).message(),
            "num_layers must be a scalar, got shape [1]");
  EXPECT_EQ(ReadSize("num_units", {0}, nullptr, &size).message(),
            "num_units must be a scalar, got shape [0]");
}

TEST(ParamsLayout, ListsOfAProjectingModel) {
  ParamsLayout layout;
  ASSERT_TRUE(
      ParamsLayout::Create(Config(CUDNN_LSTM, CUDNN_BIDIRECTIONAL, 3), 2, 8, 5, &layout).ok());
  ASSERT_EQ(layout.num_weights(), 2 * 2 * 9);
  ASSERT_EQ(layout.num_biases(), 2 * 2 * 8);
  EXPECT_EQ(layout.weight_shape(0), (Shape{8, 5}));
  EXPECT_EQ(layout.weight_shape(4), (Shape{8, 3}));
  EXPECT_EQ(layout.weight_shape(8), (Shape{3, 8}));
  EXPECT_EQ(layout.weight_shape(18), (Shape{8, 6}));  // layer 1 reads both directions
  EXPECT_EQ(layout.bias_shape(31), Shape{8});
}

TEST(ParamsLayout, ProjectionToAllUnitsHasNoMatrix) {
  ParamsLayout layout;
  ASSERT_TRUE(
      ParamsLayout::Create(Config(CUDNN_LSTM, CUDNN_UNIDIRECTIONAL, 8), 1, 8, 5, &layout).ok());
  EXPECT_EQ(layout.num_weights(), 8);
}

TEST(ParamsLayout, CountsAreNamed) {
  ParamsLayout layout;
  ASSERT_TRUE(ParamsLayout::Create(Config(CUDNN_GRU, CUDNN_UNIDIRECTIONAL), 2, 8, 5, &layout).ok());
  EXPECT_TRUE(layout.CheckCounts("num_params", 12, "num_params", 12).ok());
  EXPECT_EQ(layout.CheckCounts("num_params_weights", 8, "num_params_biases", 12).message(),
            "num_params_weights must be 12, the number of weight matrices of this model, got 8");
  EXPECT_EQ(layout.CheckCounts("num_params_weights", 12, "num_params_biases", 6).message(),
            "num_params_biases must be 12, the number of bias vectors of this model, got 6");
}

// The pieces, one after another, fill params without gap or overlap.
class Pieces : public testing::TestWithParam<std::tuple<RnnConfig, bool>> {
 protected:
  // Three layers of four units.
  void SetUp() override {
    RnnConfig config = std::get<0>(GetParam());
    const bool skip_input = std::get<1>(GetParam());
    if (skip_input) config.input_mode = InputMode::kSkip;
    ASSERT_TRUE(ParamsLayout::Create(config, 3, 4, skip_input ? 4 : 5, &layout).ok());
  }

  ParamsLayout layout;
};

TEST_P(Pieces, FillParams) {
  int64_t next = 0;
  for (int64_t i = 0; i < layout.num_weights(); ++i) {
    const WeightPiece piece = layout.weight(i);
    EXPECT_EQ(piece.offset, next) << "weight " << i;
    next += piece.rows * piece.columns;
  }
  for (int64_t i = 0; i < layout.num_biases(); ++i) {
    const WeightPiece piece = layout.bias(i);
    EXPECT_EQ(piece.offset, next) << "bias " << i;
    next += piece.rows;
  }
  EXPECT_EQ(next, layout.size());
}

// Packing the pieces of 0, 1, 2, … gives 0, 1, 2, … again.
TEST_P(Pieces, PackAndUnpack) {
  const CudnnApi api;
  HostDevice device(api, nullptr, DeviceTraits());
  std::vector<float> params(layout.size());
  std::iota(params.begin(), params.end(), 0.f);

  std::vector<std::vector<float>> memory;
  std::vector<CanonicalInput> weights, biases;
  for (int64_t i = 0; i < layout.num_weights(); ++i) {
    memory.emplace_back(layout.weight_shape(i).elements());
    ASSERT_TRUE(
        UnpackPiece(layout.weight(i), 4, params.data(), memory.back().data(), &device).ok());
    weights.push_back({layout.weight_shape(i), memory.back().data()});
  }
  for (int64_t i = 0; i < layout.num_biases(); ++i) {
    memory.emplace_back(layout.bias_shape(i).elements());
    ASSERT_TRUE(UnpackPiece(layout.bias(i), 4, params.data(), memory.back().data(), &device).ok());
    biases.push_back({layout.bias_shape(i), memory.back().data()});
  }
  std::vector<float> packed(layout.size(), -1);
  ASSERT_TRUE(CheckCanonical(layout, weights, biases).ok());
  ASSERT_TRUE(PackParams(layout, 4, weights, biases, packed.data(), &device).ok());
  EXPECT_EQ(packed, params);
}

INSTANTIATE_TEST_SUITE_P(ParamsLayout, Pieces,
                         testing::Combine(testing::Values(Config(CUDNN_RNN_TANH,
                                                                 CUDNN_UNIDIRECTIONAL),
                                                          Config(CUDNN_GRU, CUDNN_BIDIRECTIONAL),
                                                          Config(CUDNN_LSTM, CUDNN_BIDIRECTIONAL)),
                                          testing::Bool()));

INSTANTIATE_TEST_SUITE_P(ParamsLayoutProjection, Pieces,
                         testing::Values(std::tuple(Config(CUDNN_LSTM, CUDNN_BIDIRECTIONAL, 3),
                                                    false)));

TEST(CheckCanonical, NamesTheEntry) {
  ParamsLayout layout;
  ASSERT_TRUE(
      ParamsLayout::Create(Config(CUDNN_RNN_TANH, CUDNN_UNIDIRECTIONAL), 1, 4, 5, &layout).ok());
  std::vector<CanonicalInput> weights = {{{4, 5}, nullptr}, {{4, 4}, nullptr}};
  std::vector<CanonicalInput> biases = {{{4}, nullptr}, {{4}, nullptr}};
  EXPECT_TRUE(CheckCanonical(layout, weights, biases).ok());
  weights[0].shape = {5, 4};
  EXPECT_EQ(CheckCanonical(layout, weights, biases).message(),
            "weights[0] must be a tensor of shape [4,5], got [5,4]");
  weights[0].shape = {20};
  EXPECT_EQ(CheckCanonical(layout, weights, biases).message(),
            "weights[0] must be a tensor of shape [4,5], got [20]");
  weights[0].shape = {4, 5};
  biases[1].shape = {4, 1};
  EXPECT_EQ(CheckCanonical(layout, weights, biases).message(),
            "biases[1] must be a tensor of shape [4], got [4,1]");
  biases.pop_back();
  EXPECT_EQ(CheckCanonical(layout, weights, biases).message(),
            "the length of biases must be 2, the number of bias vectors of this model, got 1");
}

}  // namespace
}  // namespace tf_cudnn_rnn
