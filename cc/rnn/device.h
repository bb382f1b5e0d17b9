// What an op needs of the device it runs on besides cuDNN's functions: memory, copies and fills, in
// the order in which they are asked for. One Device serves one call of one op.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_DEVICE_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cc/cudnn/cudnn_api.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// What the table behind a device can do. The defaults are cuDNN's ways; the CPU engine can do more.
struct DeviceTraits {
  // Forward and backward take sequence lengths of 0. cuDNN 9 fails in the forward pass when all are
  // 0 and in the backward pass when any is.
  bool takes_zero_lengths = false;
  // BackwardData leaves the reserve space as it found it.
  bool reserve_is_read_only = false;
  // BackwardData answers BAD_PARAM to a reserve space that the forward pass made for another
  // configuration.
  bool checks_reserve = false;
  // BackwardData writes zeros into the input gradient beyond each length.
  bool zeroes_padding = false;
  // The weight space is laid out as params are (cc/cudnn/weight_layout.h).
  bool dense_params = false;
  // It computes in bfloat16 storage. GPUs before compute capability 8.0 do not.
  bool takes_bfloat16 = true;
  // Single-precision products may round their factors to TF32.
  bool tensor_float_32 = false;
};

class Device {
 public:
  // `handle` belongs to the caller and outlives the device; null if Open sets it.
  Device(const CudnnApi& api, cudnnHandle_t handle, const DeviceTraits& traits)
      : api_(api), handle_(handle), traits_(traits) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // What can fail on the way to cuDNN. Before the first use of handle() and of api(); the rest
  // works without.
  virtual Status Open() { return Status(); }

  const CudnnApi& api() const { return api_; }
  cudnnHandle_t handle() const { return handle_; }
  const DeviceTraits& traits() const { return traits_; }

  // Scratch that lives as long as the device, at least 64-byte aligned, not filled. Null for 0
  // bytes. ResourceExhausted.
  virtual Status Allocate(size_t bytes, void** memory) = 0;

  // The same, for as long as any copy of `memory` lives.
  virtual Status AllocateShared(size_t bytes, std::shared_ptr<void>* memory) = 0;

  // `bytes` bytes that were just allocated, not by this device, are about to be written: a chance
  // to prepare them. Allocate and AllocateShared prepare theirs.
  virtual void WillWrite(void* /*memory*/, size_t /*bytes*/) {}

  // Both pointers are the device's; the ranges do not overlap.
  virtual Status Copy(void* to, const void* from, size_t bytes) = 0;
  virtual Status Zero(void* to, size_t bytes) = 0;

  // `rows` rows of `row_bytes` bytes; a row begins `pitch` bytes after the one before.
  virtual Status Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                        size_t row_bytes, size_t rows) = 0;
  virtual Status Zero2D(void* to, size_t pitch, size_t row_bytes, size_t rows) = 0;

  // `elements` values from bfloat16 to float, exactly, and back, rounded to the nearest, ties to
  // even. Not meant to be fast: only where the traits say that bfloat16 is not taken.
  virtual Status ToFloat(void* to, const void* from, int64_t elements) = 0;
  virtual Status ToBfloat16(void* to, const void* from, int64_t elements) = 0;

 protected:
  void set_handle(cudnnHandle_t handle) { handle_ = handle; }

 private:
  const CudnnApi& api_;
  cudnnHandle_t handle_;
  const DeviceTraits traits_;
};

// Host memory from the heap. cc/kernels derives its CPU device from this one and takes the memory
// from TensorFlow instead.
class HostDevice : public Device {
 public:
  using Device::Device;

  Status Allocate(size_t bytes, void** memory) override;
  Status AllocateShared(size_t bytes, std::shared_ptr<void>* memory) override;
  // Asks Linux for huge pages where there is room for some. Otherwise the first write to each page
  // of 4 KiB is a page fault: 33 000 of them, 150 ms of the system's time, in a training step of
  // 400 ms; with huge pages 1 500 and 50 ms.
  void WillWrite(void* memory, size_t bytes) override;
  Status Copy(void* to, const void* from, size_t bytes) override;
  Status Zero(void* to, size_t bytes) override;
  Status Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t row_bytes,
                size_t rows) override;
  Status Zero2D(void* to, size_t pitch, size_t row_bytes, size_t rows) override;
  Status ToFloat(void* to, const void* from, int64_t elements) override;
  Status ToBfloat16(void* to, const void* from, int64_t elements) override;

 private:
  std::vector<std::shared_ptr<void>> scratch_;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_DEVICE_H_
