#include "cc/rnn/dropout.h"

#include "cc/rnn/cudnn_status.h"

namespace tf_cudnn_rnn {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every bit of the
// input changes about half of the output's.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

uint64_t CombineSeeds(int64_t seed, int64_t seed2) {
  // Without the constant (2^64 divided by the golden ratio) 0 and 0 would give 0.
  return Mix(Mix(static_cast<uint64_t>(seed) + 0x9e3779b97f4a7c15u) ^ static_cast<uint64_t>(seed2));
}

Status DropoutStates::Describe(Device* device, DropoutDescriptor* descriptor) {
  const CudnnApi& api = device->api();
  const auto configuration = [this] { return Concatenate("dropout ", dropout_); };
  const cudnnStatus_t created = descriptor->Create();
  if (created != CUDNN_STATUS_SUCCESS) {
    return CudnnError(api, created, "cudnnCreateDropoutDescriptor", configuration());
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (memory_ != nullptr) {
    TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration(), cudnnRestoreDropoutDescriptor,
                                       descriptor->get(), device->handle(), dropout_, memory_.get(),
                                       bytes_, seed_);
    return Status();
  }
  size_t bytes = 0;
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration(), cudnnDropoutGetStatesSize,
                                     device->handle(), &bytes);
  std::shared_ptr<void> memory;
  TF_CUDNN_RNN_RETURN_IF_ERROR(device->AllocateShared(bytes, &memory));
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration(), cudnnSetDropoutDescriptor,
                                     descriptor->get(), device->handle(), dropout_, memory.get(),
                                     bytes, seed_);
  memory_ = std::move(memory);
  bytes_ = bytes;
  return Status();
}

}  // namespace tf_cudnn_rnn
