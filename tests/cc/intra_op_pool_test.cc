// The adapter from a thread pool to the engine's Parallel.
#include "cc/kernels/intra_op_pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tf_cudnn_rnn {
namespace {

// Never gets round to it, until the test says so.
struct BusyPool {
  std::vector<std::function<void()>> waiting;
  void Schedule(std::function<void()> work) { waiting.push_back(std::move(work)); }
};

// A thread for each.
struct ThreadPool {
  std::mutex mutex;
  std::vector<std::thread> threads;
  void Schedule(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(mutex);
    threads.emplace_back(std::move(work));
  }
  ~ThreadPool() {
    for (std::thread& thread : threads) thread.join();
  }
};

template <typename Pool>
void ExpectEachOnce(const IntraOpPool<Pool>& parallel, int count) {
  std::vector<std::atomic<int>> runs(count);
  parallel.Run(count, [&](int i) { ++runs[i]; });
  for (int i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1) << i << " of " << count;
}

TEST(IntraOpPool, TheCallerDoesWhatABusyPoolDoesNot) {
  BusyPool pool;
  const IntraOpPool<BusyPool> parallel(&pool, 4);
  for (int count : {0, 1, 2, 3, 4, 5, 17}) ExpectEachOnce(parallel, count);
  // Their work is done and the task is gone.
  for (const auto& late : pool.waiting) late();
}

TEST(IntraOpPool, OneThreadSchedulesNothing) {
  BusyPool pool;
  const IntraOpPool<BusyPool> parallel(&pool, 1);
  ExpectEachOnce(parallel, 5);
  EXPECT_TRUE(pool.waiting.empty());
  EXPECT_EQ(IntraOpPool<BusyPool>(&pool, 0).num_threads(), 1);
}

TEST(IntraOpPool, SchedulesAtMostOneLessThanTasksOrThreads) {
  BusyPool pool;
  const IntraOpPool<BusyPool> parallel(&pool, 8);
  ExpectEachOnce(parallel, 3);
  EXPECT_EQ(pool.waiting.size(), 2u);
}

TEST(IntraOpPool, BlocksAreContiguous) {
  BusyPool pool;
  const IntraOpPool<BusyPool> parallel(&pool, 3);
  std::vector<int> order;
  parallel.Run(10, [&](int i) { order.push_back(i); });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(order[i], i);
}

TEST(IntraOpPool, Threads) {
  for (int round = 0; round < 200; ++round) {
    ThreadPool pool;
    ExpectEachOnce(IntraOpPool<ThreadPool>(&pool, 4), 1 + round % 9);
  }
}

// Memory runs out after the first request, which the pool serves when Run has returned.
TEST(IntraOpPool, OutlivesAPoolWithoutMemory) {
  struct ExhaustedPool : BusyPool {
    void Schedule(std::function<void()> work) {
      if (!waiting.empty()) throw std::bad_alloc();
      BusyPool::Schedule(std::move(work));
    }
  } pool;
  ExpectEachOnce(IntraOpPool<ExhaustedPool>(&pool, 4), 17);
  ASSERT_EQ(pool.waiting.size(), 1u);
  pool.waiting[0]();
}

TEST(IntraOpPool, WaitsForALongTask) {
  ThreadPool pool;
  std::atomic<int> done{0};
  IntraOpPool<ThreadPool>(&pool, 2).Run(2, [&](int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++done;
  });
  EXPECT_EQ(done, 2);
}

TEST(IntraOpPool, RunsInsideRuns) {
  ThreadPool pool;
  const IntraOpPool<ThreadPool> parallel(&pool, 3);
  std::atomic<int> runs{0};
  parallel.Run(3, [&](int) { parallel.Run(3, [&](int) { ++runs; }); });
  EXPECT_EQ(runs, 9);
}

}  // namespace
}  // namespace tf_cudnn_rnn
