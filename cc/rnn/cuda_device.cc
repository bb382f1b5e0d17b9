#include "cc/rnn/cuda_device.h"

#include <vector>

#include "cc/cpu/convert.h"

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

Status CudaDevice::Download(void* to, const void* from, size_t bytes) {
  CUresult result = driver_.cuMemcpyDtoHAsync_v2(to, Address(from), bytes, stream_);
  if (result == CUDA_SUCCESS) result = driver_.cuStreamSynchronize(stream_);
  return result == CUDA_SUCCESS ? Status() : CudaError(driver_, result, "cuMemcpyDtoHAsync");
}

Status CudaDevice::Upload(void* to, const void* from, size_t bytes) {
  CUresult result = driver_.cuMemcpyHtoDAsync_v2(Address(to), from, bytes, stream_);
  if (result == CUDA_SUCCESS) result = driver_.cuStreamSynchronize(stream_);
  return result == CUDA_SUCCESS ? Status() : CudaError(driver_, result, "cuMemcpyHtoDAsync");
}

Status CudaDevice::ToFloat(void* to, const void* from, int64_t elements) {
  if (elements == 0) return Status();
  std::vector<uint16_t> narrow(elements);
  std::vector<float> wide(elements);
  TF_CUDNN_RNN_RETURN_IF_ERROR(Download(narrow.data(), from, elements * sizeof(uint16_t)));
  cpu::ConvertToFloat(CUDNN_DATA_BFLOAT16, narrow.data(), wide.data(), elements);
  return Upload(to, wide.data(), elements * sizeof(float));
}

Status CudaDevice::ToBfloat16(void* to, const void* from, int64_t elements) {
  if (elements == 0) return Status();
  std::vector<float> wide(elements);
  std::vector<uint16_t> narrow(elements);
  TF_CUDNN_RNN_RETURN_IF_ERROR(Download(wide.data(), from, elements * sizeof(float)));
  cpu::ConvertFromFloat(CUDNN_DATA_BFLOAT16, wide.data(), narrow.data(), elements);
  return Upload(to, narrow.data(), elements * sizeof(uint16_t));
}

bool GpuTakesBfloat16(const CudaDriver& driver) {
  constexpr int kAmpere = 8;
  CUdevice device = 0;
  int major = 0;
  return driver.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
         driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                     device) == CUDA_SUCCESS &&
         major >= kAmpere;
}

}  // namespace tf_cudnn_rnn
