#include "cc/rnn/handle_pool.h"

#include "cc/rnn/cudnn_status.h"

namespace tf_cudnn_rnn {

HandlePool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->GiveBack(*this);
}

HandlePool::~HandlePool() {
  for (const auto& [context, handles] : idle_) {
    for (const Idle& idle : handles) api_.cudnnDestroy(idle.handle);
  }
}

Status HandlePool::Borrow(CUcontext context, CUstream stream, Lease* lease) {
  cudnnHandle_t handle = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Idle>& handles = idle_[context];
    for (size_t i = handles.size(); i-- > 0 && handle == nullptr;) {
      if (handles[i].stream != stream) continue;
      handle = handles[i].handle;
      handles.erase(handles.begin() + i);
    }
  }
  if (handle == nullptr) {
    TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api_, "a new handle", cudnnCreate, &handle);
    const cudnnStatus_t status = api_.cudnnSetStream(handle, stream);
    if (status != CUDNN_STATUS_SUCCESS) {
      Status error = CudnnError(api_, status, "cudnnSetStream", "a new handle");
      api_.cudnnDestroy(handle);
      return error;
    }
  }
  lease->pool_ = this;
  lease->context_ = context;
  lease->stream_ = stream;
  lease->handle_ = handle;
  return Status();
}

void HandlePool::GiveBack(const Lease& lease) {
  cudnnHandle_t too_many = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Idle>& handles = idle_[lease.context_];
    handles.push_back({lease.stream_, lease.handle_});
    if (handles.size() > kKept) {
      too_many = handles.front().handle;
      handles.erase(handles.begin());
    }
  }
  if (too_many != nullptr) api_.cudnnDestroy(too_many);
}

}  // namespace tf_cudnn_rnn
