// Threads for the engine outside TensorFlow.
#ifndef TF_CUDNN_RNN_OPS_BENCHMARKS_THREAD_POOL_H_
#define TF_CUDNN_RNN_OPS_BENCHMARKS_THREAD_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tf_cudnn_rnn {

// The part of tensorflow::thread::ThreadPool that IntraOpPool needs, so that benchmarks and tests
// run the engine through the same adapter as the ops.
class ThreadPool {
 public:
  explicit ThreadPool(int threads) {
    for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { Work(); });
  }
  ~ThreadPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    ready_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void Schedule(std::function<void()> work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_.push_back(std::move(work));
    }
    ready_.notify_one();
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      ready_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool ends_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_BENCHMARKS_THREAD_POOL_H_
