#include "cc/rnn/handle_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tf_cudnn_rnn {
namespace {

// A table whose handles are numbers.
std::atomic<int> created, live, streams_set;
cudnnStatus_t create_status, stream_status;

CudnnApi CountingApi() {
  created = live = streams_set = 0;
  create_status = stream_status = CUDNN_STATUS_SUCCESS;
  CudnnApi api;
  api.cudnnCreate = [](cudnnHandle_t* handle) {
    if (create_status != CUDNN_STATUS_SUCCESS) return create_status;
    ++live;
    *handle = reinterpret_cast<cudnnHandle_t>(static_cast<intptr_t>(++created));
    return CUDNN_STATUS_SUCCESS;
  };
  api.cudnnDestroy = [](cudnnHandle_t) {
    --live;
    return CUDNN_STATUS_SUCCESS;
  };
  api.cudnnSetStream = [](cudnnHandle_t, cudaStream_t) {
    ++streams_set;
    return stream_status;
  };
  api.cudnnGetErrorString = [](cudnnStatus_t) { return "CUDNN_STATUS_OF_TEST"; };
  api.cudnnGetLastErrorString = [](char* message, size_t) { message[0] = '\0'; };
  return api;
}

CUcontext Context(intptr_t i) { return reinterpret_cast<CUcontext>(i); }
CUstream Stream(intptr_t i) { return reinterpret_cast<CUstream>(i); }

TEST(HandlePoolTest, OneAfterAnotherShareAHandle) {
  const CudnnApi api = CountingApi();
  HandlePool pool(api);
  for (int i = 0; i < 5; ++i) {
    HandlePool::Lease lease;
    ASSERT_TRUE(pool.Borrow(Context(1), Stream(1), &lease).ok());
    EXPECT_NE(lease.handle(), nullptr);
  }
  EXPECT_EQ(created, 1);
  EXPECT_EQ(streams_set, 1);
}

TEST(HandlePoolTest, AtOnceHaveHandlesOfTheirOwn) {
  const CudnnApi api = CountingApi();
  HandlePool pool(api);
  HandlePool::Lease first, second;
  ASSERT_TRUE(pool.Borrow(Context(1), Stream(1), &first).ok());
  ASSERT_TRUE(pool.Borrow(Context(1), Stream(1), &second).ok());
  EXPECT_NE(first.handle(), second.handle());
}

TEST(HandlePoolTest, StreamsAndContextsAreKeptApart) {
  const CudnnApi api = CountingApi();
  HandlePool pool(api);
  for (int i = 0; i < 2; ++i) {
    for (const auto& [context, stream] : {std::pair(1, 1), {1, 2}, {2, 1}}) {
      HandlePool::Lease lease;
      ASSERT_TRUE(pool.Borrow(Context(context), Stream(stream), &lease).ok());
    }
  }
  EXPECT_EQ(created, 3);
}

TEST(HandlePoolTest, IdleHandlesAreBounded) {
  const CudnnApi api = CountingApi();
  {
    HandlePool pool(api);
    {
      std::vector<HandlePool::Lease> leases(3 * HandlePool::kKept);
      for (HandlePool::Lease& lease : leases) {
        ASSERT_TRUE(pool.Borrow(Context(1), Stream(1), &lease).ok());
      }
    }
    EXPECT_EQ(live, HandlePool::kKept);
    for (int stream = 2; stream < 50; ++stream) {
      HandlePool::Lease lease;
      ASSERT_TRUE(pool.Borrow(Context(1), Stream(stream), &lease).ok());
    }
    EXPECT_EQ(live, HandlePool::kKept);
  }
  EXPECT_EQ(live, 0);
}

TEST(HandlePoolTest, FailuresLeaveNothingBehind) {
  const CudnnApi api = CountingApi();
  HandlePool pool(api);
  create_status = CUDNN_STATUS_NOT_INITIALIZED;
  {
    HandlePool::Lease lease;
    const Status status = pool.Borrow(Context(1), Stream(1), &lease);
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_NE(status.message().find("cudnnCreate failed"), std::string::npos);
  }
  create_status = CUDNN_STATUS_SUCCESS;
  stream_status = CUDNN_STATUS_BAD_PARAM;
  {
    HandlePool::Lease lease;
    EXPECT_FALSE(pool.Borrow(Context(1), Stream(1), &lease).ok());
  }
  EXPECT_EQ(live, 0);
  stream_status = CUDNN_STATUS_SUCCESS;
  HandlePool::Lease lease;
  EXPECT_TRUE(pool.Borrow(Context(1), Stream(1), &lease).ok());
}

TEST(HandlePoolTest, ThreadsNeverShareAHandle) {
  const CudnnApi api = CountingApi();
  HandlePool pool(api);
  std::atomic<bool> in_use[16] = {};
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        HandlePool::Lease lease;
        if (!pool.Borrow(Context(1), Stream(1), &lease).ok()) continue;
        std::atomic<bool>& mine = in_use[reinterpret_cast<intptr_t>(lease.handle()) % 16];
        clashes += mine.exchange(true);
        mine = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  EXPECT_LE(created, 4);
}

}  // namespace
}  // namespace tf_cudnn_rnn
