#include "cc/rnn/cuda_device.h"

namespace tf_cudnn_rnn {
namespace {

CUdeviceptr Address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

Status CudaError(const CudaDriver& driver, CUresult error, const char* call) {
  const char* name = nullptr;
  if (driver.cuGetErrorName(error, &name) != CUDA_SUCCESS || name == nullptr) name = "an error";
  const std::string message =
      Concatenate(call, " failed with ", name, " (", static_cast<int>(error), ")");
  return Status(
      error == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::kResourceExhausted : StatusCode::kInternal,
      message);
}

// The driver refuses copies and fills of 0 bytes at null pointers.
Status CudaDevice::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return Status();
  const CUresult result = driver_.cuMemcpyDtoDAsync_v2(Address(to), Address(from), bytes, stream_);
  return result == CUDA_SUCCESS ? Status() : CudaError(driver_, result, "cuMemcpyDtoDAsync");
}

Status CudaDevice::Zero(void* to, size_t bytes) {
  if (bytes == 0) return Status();
  const CUresult result = driver_.cuMemsetD8Async(Address(to), 0, bytes, stream_);
  return result == CUDA_SUCCESS ? Status() : CudaError(driver_, result, "cuMemsetD8Async");
}

Status CudaDevice::Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                          size_t row_bytes, size_t rows) {
  if (row_bytes == 0 || rows == 0) return Status();
  if (to_pitch == row_bytes && from_pitch == row_bytes) return Copy(to, from, row_bytes * rows);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = Address(from);
  copy.srcPitch = from_pitch;
  copy.dstDevice = Address(to);
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = row_bytes;
  copy.Height = rows;
  if (driver_.cuMemcpy2DAsync_v2(&copy, stream_) == CUDA_SUCCESS) return Status();
  // The driver need not take pitches that cuMemAllocPitch did not choose, nor any beyond the
  // device's limit. Row by row it takes all.
  for (size_t row = 0; row < rows; ++row) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(Copy(static_cast<char*>(to) + row * to_pitch,
                                      static_cast<const char*>(from) + row * from_pitch,
                                      row_bytes));
  }
  return Status();
}

Status CudaDevice::Zero2D(void* to, size_t pitch, size_t row_bytes, size_t rows) {
  if (row_bytes == 0 || rows == 0) return Status();
  if (pitch == row_bytes) return Zero(to, row_bytes * rows);
  if (driver_.cuMemsetD2D8Async(Address(to), pitch, 0, row_bytes, rows, stream_) == CUDA_SUCCESS) {
    return Status();
  }
  for (size_t row = 0; row < rows; ++row) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(Zero(static_cast<char*>(to) + row * pitch, row_bytes));
  }
  return Status();
}

}  // namespace tf_cudnn_rnn
