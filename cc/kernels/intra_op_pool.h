// TensorFlow's intra-op threads for the engine.
#ifndef TF_CUDNN_RNN_OPS_CC_KERNELS_INTRA_OP_POOL_H_
#define TF_CUDNN_RNN_OPS_CC_KERNELS_INTRA_OP_POOL_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

#include "cc/cpu/parallel.h"

namespace tf_cudnn_rnn {

// `Pool` has void Schedule(std::function<void()>), like tensorflow::thread::ThreadPool. The tasks
// are cut into one block per thread. The caller works too and takes every block that no thread of
// the pool has begun, so it waits for running tasks only: a pool that is busy, or all of whose
// threads wait for something themselves, costs speed and never a deadlock.
template <typename Pool>
class IntraOpPool : public cpu::Parallel {
 public:
  // `pool` is not owned; it has `num_threads` threads.
  IntraOpPool(Pool* pool, int num_threads) : pool_(pool), num_threads_(std::max(num_threads, 1)) {}

  int num_threads() const override { return num_threads_; }

  void Run(int count, const std::function<void(int)>& task) const override {
    const int blocks = std::min(count, num_threads_);
    if (blocks <= 1) {
      for (int i = 0; i < count; ++i) task(i);
      return;
    }
    // Outlives this function in the threads that come too late.
    auto work = std::make_shared<Work>(count, blocks, &task);
    try {
      for (int i = 1; i < blocks; ++i) {
        pool_->Schedule([work] { work->Help(); });
      }
    } catch (const std::bad_alloc&) {
      // With as many as could be asked. Those must not find `task` gone, so it runs to the end.
    }
    work->Help();
    work->Wait();
  }

 private:
  class Work {
   public:
    Work(int count, int blocks, const std::function<void(int)>* task)
        : count_(count), blocks_(blocks), task_(task), unfinished_(blocks) {}

    // Runs blocks until all have been begun. `task_` is alive as long as one is unfinished.
    void Help() {
      for (int block; (block = next_.fetch_add(1, std::memory_order_relaxed)) < blocks_;) {
        const int end = First(block + 1);
        for (int i = First(block); i < end; ++i) (*task_)(i);
        if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
          // With the lock, so that the caller is not between its look and its sleep.
          std::lock_guard<std::mutex> lock(mutex_);
          done_.notify_one();
        }
      }
    }

    void Wait() {
      // The blocks are alike, so the others end about now: sleeping would take longer.
      for (int i = 0; i < kSpins; ++i) {
        if (Done()) return;
      }
      std::unique_lock<std::mutex> lock(mutex_);
      done_.wait(lock, [this] { return Done(); });
    }

   private:
    static constexpr int kSpins = 4000;  // some microseconds

    bool Done() const { return unfinished_.load(std::memory_order_acquire) == 0; }
    int First(int block) const {
      return static_cast<int>(static_cast<long long>(count_) * block / blocks_);
    }

    const int count_;
    const int blocks_;
    const std::function<void(int)>* const task_;
    std::atomic<int> next_{0};
    std::atomic<int> unfinished_;
    std::mutex mutex_;
    std::condition_variable done_;
  };

  Pool* const pool_;
  const int num_threads_;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_KERNELS_INTRA_OP_POOL_H_
