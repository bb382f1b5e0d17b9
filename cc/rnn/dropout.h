// Dropout's random numbers. cuDNN keeps the generator's states in memory of the caller; they are
// made once and advance with every training forward pass.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_DROPOUT_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_DROPOUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "cc/cudnn/descriptors.h"
#include "cc/rnn/device.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// cuDNN takes one 64-bit seed where the ops have two. A bijection of each seed while the other
// stays, so that pairs differing in one of them never meet.
uint64_t CombineSeeds(int64_t seed, int64_t seed2);

// The states of one kernel, for all its calls. Thread-safe.
class DropoutStates {
 public:
  // `seed`: from CombineSeeds. Nothing is allocated before it is needed.
  DropoutStates(float dropout, uint64_t seed) : dropout_(dropout), seed_(seed) {}

  // Creates `descriptor` and gives it these states, making them if this is the first call. They
  // live as long as this object; the device is the same in every call as far as its memory goes.
  Status Describe(Device* device, DropoutDescriptor* descriptor);

 private:
  const float dropout_;
  const uint64_t seed_;
  std::mutex mutex_;
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_DROPOUT_H_
