// cuDNN handles for streams. Making one takes milliseconds and device memory, so they are kept; one
// handle serves one call at a time, so that two executions of a node can run at once.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_HANDLE_POOL_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_HANDLE_POOL_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "cc/cudnn/cuda_driver.h"
#include "cc/cudnn/cudnn_api.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// Thread-safe. Handles in the pool are destroyed with it.
class HandlePool {
 public:
  // Idle handles that one context, that is one GPU, keeps; beyond it the longest idle is destroyed.
  static constexpr size_t kKept = 8;

  explicit HandlePool(const CudnnApi& api) : api_(api) {}
  ~HandlePool();
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;

  // A handle on loan; given back at the end of its life.
  class Lease {
   public:
    Lease() = default;
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    cudnnHandle_t handle() const { return handle_; }

   private:
    friend class HandlePool;
    HandlePool* pool_ = nullptr;
    CUcontext context_ = nullptr;
    CUstream stream_ = nullptr;
    cudnnHandle_t handle_ = nullptr;
  };

  // Lends a handle that works on `stream`. `context` is the stream's and the thread's current one,
  // also when the lease ends. Handles are told apart by both: a new stream can have the address
  // that an old one had on another device.
  Status Borrow(CUcontext context, CUstream stream, Lease* lease);

 private:
  struct Idle {
    CUstream stream;
    cudnnHandle_t handle;
  };

  void GiveBack(const Lease& lease);

  const CudnnApi& api_;
  std::mutex mutex_;
  std::map<CUcontext, std::vector<Idle>> idle_;  // the longest idle first
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_HANDLE_POOL_H_
