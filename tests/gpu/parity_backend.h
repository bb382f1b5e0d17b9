// The two sides that rnn_parity compares: a table of cuDNN's functions and the memory they work on.
#ifndef TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_BACKEND_H_
#define TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_BACKEND_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cc/rnn/device.h"

namespace tf_cudnn_rnn {

class Backend {
 public:
  virtual ~Backend() = default;

  // For one call; after the backend's Open.
  virtual std::unique_ptr<Device> NewDevice() = 0;
  virtual cudnnHandle_t handle() = 0;
  virtual const CudnnApi& api() = 0;

  // Memory of the backend, filled with 0xFF bytes, NaN in every type, so that what is not written
  // shows. Never null.
  virtual std::shared_ptr<void> Allocate(size_t bytes) = 0;
  virtual void Upload(void* to, const void* from, size_t bytes) = 0;
  // After all that was asked for before.
  virtual void Download(void* to, const void* from, size_t bytes) = 0;
  virtual void Synchronize() = 0;
  // What the work is done on, for the report.
  virtual std::string name() = 0;
};

// The CPU engine on host memory.
std::unique_ptr<Backend> CpuBackend();

// Any library with cuDNN's names on host memory, used as cuDNN is on a GPU: the rehearsal where
// there is no GPU. Null and `error` if it cannot be opened.
std::unique_ptr<Backend> HostLibraryBackend(const std::string& library, std::string* error);

// libcudnn.so.9, looked for in `folders` too, on the first GPU. Null and `error` if there is none.
std::unique_ptr<Backend> GpuBackend(const std::vector<std::string>& folders, std::string* error);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_TESTS_GPU_PARITY_BACKEND_H_
