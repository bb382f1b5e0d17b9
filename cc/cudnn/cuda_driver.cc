#include "cc/cudnn/cuda_driver.h"

#include <dlfcn.h>

namespace tf_cudnn_rnn {
namespace {

constexpr char kSoname[] = "libcuda.so.1";

CudaDriver OpenDriver() {
  CudaDriver driver;
  // TensorFlow has loaded it when there is a GPU; by name it is found wherever it came from.
  void* handle = dlopen(kSoname, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    driver.error = std::string("NVIDIA's driver was not found: ") + (reason ? reason : kSoname);
    return driver;
  }
#define CUDA_DRIVER_FUNCTION(name, parameters)                                 \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(handle, #name)); \
  if (!driver.name) driver.error = std::string(kSoname) + " lacks " #name;
  CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_FUNCTION)
#undef CUDA_DRIVER_FUNCTION
  return driver;
}

}  // namespace

const CudaDriver& Driver() {
  static const CudaDriver* const driver = new CudaDriver(OpenDriver());
  return *driver;
}

StreamContext::StreamContext(const CudaDriver& driver, CUstream stream) : driver_(driver) {
  status_ = driver_.cuStreamGetCtx(stream, &context_);
  if (status_ == CUDA_SUCCESS) status_ = driver_.cuCtxPushCurrent_v2(context_);
}

StreamContext::~StreamContext() {
  CUcontext popped;
  if (status_ == CUDA_SUCCESS) driver_.cuCtxPopCurrent_v2(&popped);
}

}  // namespace tf_cudnn_rnn
