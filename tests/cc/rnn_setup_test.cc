#include "cc/rnn/rnn_setup.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "cc/cpu/cpu_cudnn.h"

namespace tf_cudnn_rnn {
namespace {

// lstm, L = 2, D = 2, I = 3, H = 4, R = 2.
constexpr int kT = 2, kB = 3;

// A table whose weight space has everything in the opposite order of params, with a gap of 8 bytes
// before each piece; float.
RnnDims dims;
constexpr size_t kGap = 8;

size_t SpaceBytes() {
  const WeightLayout layout(dims);
  const int pieces = dims.pseudo_layers() * (dims.matrices() + 2 * dims.G);
  return layout.size() * sizeof(float) + pieces * kGap;
}

size_t PieceOffset(int wanted_p, int wanted_id, bool wanted_bias) {
  const WeightLayout layout(dims);
  size_t offset = 0;
  for (int bias = 1; bias >= 0; --bias) {
    for (int p = dims.pseudo_layers() - 1; p >= 0; --p) {
      for (int id = (bias ? 2 * dims.G : dims.matrices()) - 1; id >= 0; --id) {
        const WeightPiece piece = bias ? layout.Bias(p, id) : layout.Matrix(p, id);
        offset += kGap;
        if (p == wanted_p && id == wanted_id && bias == wanted_bias) return offset;
        offset += piece.rows * piece.columns * sizeof(float);
      }
    }
  }
  return 0;
}

CudnnApi OtherLayoutApi() {
  CudnnApi api = cpu::Api();
  api.cudnnGetRNNWeightSpaceSize = [](cudnnHandle_t, cudnnRNNDescriptor_t, size_t* bytes) {
    *bytes = SpaceBytes();
    return CUDNN_STATUS_SUCCESS;
  };
  api.cudnnGetRNNWeightParams = [](cudnnHandle_t, cudnnRNNDescriptor_t, int32_t p, size_t,
                                   const void* space, int32_t id, cudnnTensorDescriptor_t,
                                   void** matrix, cudnnTensorDescriptor_t, void** bias) {
    char* const base = static_cast<char*>(const_cast<void*>(space));
    *matrix = id < dims.matrices() ? base + PieceOffset(p, id, false) : nullptr;
    *bias = id < 2 * dims.G ? base + PieceOffset(p, id, true) : nullptr;
    return CUDNN_STATUS_SUCCESS;
  };
  return api;
}

class RnnSetupTest : public testing::Test {
 protected:
  void SetUp() override {
    dims = RnnDims();
    dims.G = 4, dims.L = 2, dims.D = 2, dims.I = 3, dims.H = 4, dims.R = 2;
    Plan(&plan_, 0.5);
    params_.resize(plan_.weights.size());
    std::iota(params_.begin(), params_.end(), 1.f);
  }

  static void Plan(RnnPlan* plan, float dropout, bool is_training = true) {
    RnnConfig config;
    config.direction = CUDNN_BIDIRECTIONAL;
    config.num_proj = dims.R;
    config.dropout = dropout;
    config.is_training = is_training;
    ForwardArguments arguments;
    arguments.input = {kT, kB, dims.I};
    arguments.input_h = {dims.L * dims.D, kB, dims.R};
    arguments.input_c = {dims.L * dims.D, kB, dims.H};
    arguments.params = {WeightLayout(dims).size()};
    const Status status = PlanForward(config, arguments, plan);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  RnnPlan plan_;
  std::vector<float> params_;
  DropoutStates dropout_{0.5, 1};
};

TEST_F(RnnSetupTest, TheEnginesLayoutIsThatOfParams) {
  Handle handle(cpu::Api());
  ASSERT_EQ(handle.Create(), CUDNN_STATUS_SUCCESS);
  HostDevice device(cpu::Api(), handle.get(), DeviceTraits());
  RnnSetup setup(cpu::Api());
  const Status status = setup.Create(plan_, &device, &dropout_, params_.data());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(setup.relays_params());
  EXPECT_EQ(setup.weight_bytes(), params_.size() * sizeof(float));
}

TEST_F(RnnSetupTest, AnotherLayoutIsFollowedBothWays) {
  const CudnnApi api = OtherLayoutApi();
  Handle handle(api);
  ASSERT_EQ(handle.Create(), CUDNN_STATUS_SUCCESS);
  HostDevice device(api, handle.get(), DeviceTraits());
  RnnSetup setup(api);
  const Status status = setup.Create(plan_, &device, &dropout_, params_.data());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(setup.relays_params());
  ASSERT_EQ(setup.weight_bytes(), SpaceBytes());

  std::vector<char> space(SpaceBytes(), 0x55);
  ASSERT_TRUE(setup.ParamsToSpace(params_.data(), space.data(), &device).ok());
  const WeightLayout layout(dims);
  for (int p = 0; p < dims.pseudo_layers(); ++p) {
    for (int id = 0; id < dims.matrices(); ++id) {
      float first;
      std::memcpy(&first, &space[PieceOffset(p, id, false)], sizeof(first));
      EXPECT_EQ(first, params_[layout.Matrix(p, id).offset]);
    }
    for (int id = 0; id < 2 * dims.G; ++id) {
      float first;
      std::memcpy(&first, &space[PieceOffset(p, id, true)], sizeof(first));
      EXPECT_EQ(first, params_[layout.Bias(p, id).offset]);
    }
  }
  EXPECT_EQ(space[0], 0) << "gaps are zero";

  std::vector<float> back(params_.size(), 0);
  ASSERT_TRUE(setup.SpaceToParams(space.data(), back.data(), &device).ok());
  EXPECT_EQ(back, params_);
}

TEST_F(RnnSetupTest, AWeightWithoutAPlaceIsAnError) {
  CudnnApi api = cpu::Api();
  api.cudnnGetRNNWeightParams = [](cudnnHandle_t, cudnnRNNDescriptor_t, int32_t, size_t,
                                   const void* space, int32_t id, cudnnTensorDescriptor_t,
                                   void** matrix, cudnnTensorDescriptor_t, void** bias) {
    *matrix = const_cast<void*>(space);
    *bias = id == 3 ? nullptr : const_cast<void*>(space);
    return CUDNN_STATUS_SUCCESS;
  };
  Handle handle(api);
  ASSERT_EQ(handle.Create(), CUDNN_STATUS_SUCCESS);
  HostDevice device(api, handle.get(), DeviceTraits());
  RnnSetup setup(api);
  const Status status = setup.Create(plan_, &device, &dropout_, params_.data());
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("no place for bias 3 of pseudo-layer 0"), std::string::npos)
      << status.message();
}

class RnnSetupCacheTest : public RnnSetupTest {
 protected:
  std::unique_ptr<RnnSetup> New(const RnnPlan& plan, const DeviceTraits& traits) {
    HostDevice device(cpu::Api(), handle_.get(), traits);
    auto setup = std::make_unique<RnnSetup>(cpu::Api());
    const Status status = setup->Create(plan, &device, &dropout_, params_.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return setup;
  }
  void SetUp() override {
    RnnSetupTest::SetUp();
    ASSERT_EQ(handle_.Create(), CUDNN_STATUS_SUCCESS);
    traits_.dense_params = true;
  }

  Handle handle_{cpu::Api()};
  DeviceTraits traits_;
  RnnSetupCache cache_;
};

TEST_F(RnnSetupCacheTest, GivesBackWhatFits) {
  EXPECT_EQ(cache_.Take(plan_, traits_), nullptr);
  std::unique_ptr<RnnSetup> setup = New(plan_, traits_);
  RnnSetup* const address = setup.get();
  cache_.Put(std::move(setup));
  setup = cache_.Take(plan_, traits_);
  EXPECT_EQ(setup.get(), address);
  EXPECT_EQ(cache_.Take(plan_, traits_), nullptr) << "it serves one call at a time";
}

TEST_F(RnnSetupCacheTest, TellsDropoutAndTensorFloat32Apart) {
  cache_.Put(New(plan_, traits_));
  RnnPlan inference, other_rate;
  Plan(&inference, 0.5, /*is_training=*/false);
  Plan(&other_rate, 0.25);
  EXPECT_EQ(cache_.Take(inference, traits_), nullptr);
  EXPECT_EQ(cache_.Take(other_rate, traits_), nullptr);
  DeviceTraits tensor_float_32 = traits_;
  tensor_float_32.tensor_float_32 = true;
  EXPECT_EQ(cache_.Take(plan_, tensor_float_32), nullptr);
  EXPECT_NE(cache_.Take(plan_, traits_), nullptr);
}

TEST_F(RnnSetupCacheTest, IsBoundedAndDropsTheLongestUnused) {
  for (size_t i = 0; i < RnnSetupCache::kKept; ++i) cache_.Put(New(plan_, traits_));
  RnnPlan inference;
  Plan(&inference, 0.5, /*is_training=*/false);
  cache_.Put(New(inference, traits_));
  size_t kept = 0;
  while (cache_.Take(plan_, traits_) != nullptr) ++kept;
  EXPECT_EQ(kept, RnnSetupCache::kKept - 1);
  EXPECT_NE(cache_.Take(inference, traits_), nullptr);
}

}  // namespace
}  // namespace tf_cudnn_rnn
