// A GPU as a Device: copies and fills in the order of one stream, through the driver. Where memory
// comes from is left to the class derived: TensorFlow's allocator in the kernels, the CUDA runtime
// in tests/gpu.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_CUDA_DEVICE_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_CUDA_DEVICE_H_

#include "cc/cudnn/cuda_driver.h"
#include "cc/rnn/device.h"

namespace tf_cudnn_rnn {

class CudaDevice : public Device {
 public:
  // `handle`, or the one that Open sets, works on `stream`, whose context is the thread's current
  // one while the device is used (StreamContext). Nothing waits for the stream: memory must be
  // freed in its order.
  CudaDevice(const CudnnApi& api, cudnnHandle_t handle, const DeviceTraits& traits,
             const CudaDriver& driver, CUstream stream)
      : Device(api, handle, traits), driver_(driver), stream_(stream) {}

  Status Copy(void* to, const void* from, size_t bytes) override;
  Status Zero(void* to, size_t bytes) override;
  Status Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t row_bytes,
                size_t rows) override;
  Status Zero2D(void* to, size_t pitch, size_t row_bytes, size_t rows) override;
  // By way of the host, waiting for the stream: no kernel is compiled.
  Status ToFloat(void* to, const void* from, int64_t elements) override;
  Status ToBfloat16(void* to, const void* from, int64_t elements) override;

 private:
  Status Download(void* to, const void* from, size_t bytes);
  Status Upload(void* to, const void* from, size_t bytes);

  const CudaDriver& driver_;
  const CUstream stream_;
};

// Whether the GPU of the current context computes in bfloat16.
bool GpuTakesBfloat16(const CudaDriver& driver);

// "CALL failed with CUDA_ERROR_…": ResourceExhausted for memory, else Internal.
Status CudaError(const CudaDriver& driver, CUresult error, const char* call);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_CUDA_DEVICE_H_
