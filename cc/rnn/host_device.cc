#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cc/cpu/convert.h"
#include "cc/rnn/device.h"

namespace tf_cudnn_rnn {

namespace {
constexpr size_t kAlignment = 64;

// NumPy's threshold: two huge pages, so that there is one between the ends.
constexpr size_t kHugePages = size_t{4} << 20;
constexpr uintptr_t kPage = 4096;
}  // namespace

Status HostDevice::Allocate(size_t bytes, void** memory) {
  *memory = nullptr;
  if (bytes == 0) return Status();
  std::shared_ptr<void> owned;
  TF_CUDNN_RNN_RETURN_IF_ERROR(AllocateShared(bytes, &owned));
  *memory = owned.get();
  scratch_.push_back(std::move(owned));
  return Status();
}

Status HostDevice::AllocateShared(size_t bytes, std::shared_ptr<void>* memory) {
  void* allocated = nullptr;
  if (posix_memalign(&allocated, kAlignment, bytes) != 0) {
    return ResourceExhausted("no memory for ", bytes, " bytes of scratch");
  }
  memory->reset(allocated, std::free);
  WillWrite(allocated, bytes);
  return Status();
}

void HostDevice::WillWrite([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
  if (bytes < kHugePages) return;
  // From the first whole page to the last.
  const size_t before = -reinterpret_cast<uintptr_t>(memory) % kPage;
  // A kernel that knows no huge pages refuses, as does one whose own pages are larger, and the
  // memory is as good as before.
  madvise(static_cast<char*>(memory) + before, (bytes - before) / kPage * kPage, MADV_HUGEPAGE);
#endif
}

// Null pointers come with 0 bytes: memcpy and memset refuse them even then.
Status HostDevice::Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return Status();
}

Status HostDevice::Zero(void* to, size_t bytes) {
  if (bytes > 0) std::memset(to, 0, bytes);
  return Status();
}

Status HostDevice::Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                          size_t row_bytes, size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, row_bytes);
  }
  return Status();
}

Status HostDevice::Zero2D(void* to, size_t pitch, size_t row_bytes, size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    std::memset(static_cast<char*>(to) + row * pitch, 0, row_bytes);
  }
  return Status();
}

Status HostDevice::ToFloat(void* to, const void* from, int64_t elements) {
  cpu::ConvertToFloat(CUDNN_DATA_BFLOAT16, from, static_cast<float*>(to), elements);
  return Status();
}

Status HostDevice::ToBfloat16(void* to, const void* from, int64_t elements) {
  cpu::ConvertFromFloat(CUDNN_DATA_BFLOAT16, static_cast<const float*>(from), to, elements);
  return Status();
}

}  // namespace tf_cudnn_rnn
