// The part of a call that does not depend on T, B or the lengths: cuDNN's RNN and dropout
// descriptors, and where cuDNN keeps the weights. Making it asks cuDNN for every weight's address,
// so GPU kernels keep a few for their next calls.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_RNN_SETUP_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_RNN_SETUP_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "cc/cudnn/descriptors.h"
#include "cc/rnn/device.h"
#include "cc/rnn/dropout.h"
#include "cc/rnn/rnn_plan.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

class RnnSetup {
 public:
  explicit RnnSetup(const CudnnApi& api) : dropout_descriptor_(api), rnn_(api) {}

  // Once. `dropout` may be null where the plan does not drop; it outlives the object. `params`: the
  // op's, of which only the address is used.
  Status Create(const RnnPlan& plan, Device* device, DropoutStates* dropout, const void* params);

  // Whether it was created for this plan's attributes and weights on this kind of device.
  bool Fits(const RnnPlan& plan, const DeviceTraits& traits) const {
    return key_ == Key(plan, traits);
  }

  cudnnRNNDescriptor_t rnn() const { return rnn_.get(); }

  // Bytes of cuDNN's weight space.
  size_t weight_bytes() const { return weight_bytes_; }

  // cuDNN wants the weights elsewhere than params has them. Then the two functions below move them
  // between params and cuDNN's space.
  bool relays_params() const { return !moves_.empty(); }
  Status ParamsToSpace(const void* params, void* space, Device* device) const;
  Status SpaceToParams(const void* space, void* params, Device* device) const;

 private:
  // All that the descriptors and the layout depend on.
  struct Key {
    Key() = default;
    Key(const RnnPlan& plan, const DeviceTraits& traits);
    bool operator==(const Key& other) const;

    cudnnRNNMode_t rnn_mode = CUDNN_LSTM;
    cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
    cudnnRNNInputMode_t input_mode = CUDNN_LINEAR_INPUT;
    cudnnDataType_t data_type = CUDNN_DATA_FLOAT;
    cudnnDataType_t math_precision = CUDNN_DATA_FLOAT;
    cudnnMathType_t math_type = CUDNN_DEFAULT_MATH;
    int I = 0, H = 0, R = 0, L = 0;
    float dropout = 0;
    uint32_t flags = CUDNN_RNN_PADDED_IO_ENABLED;
  };
  // Bytes that lie together in params and in cuDNN's space.
  struct Move {
    size_t in_params, in_space, bytes;
  };

  Status FindWeights(const RnnPlan& plan, Device* device, const void* params);
  void Add(const Move& move);

  Key key_;
  DropoutDescriptor dropout_descriptor_;
  RnnDescriptor rnn_;
  size_t weight_bytes_ = 0;
  std::vector<Move> moves_;
};

// The setups of one kernel that no call uses at the moment. Thread-safe; a setup serves one call at
// a time.
class RnnSetupCache {
 public:
  // More than this many, and the longest unused is dropped.
  static constexpr size_t kKept = 8;

  // Put, which ends a call whatever happened in it, then allocates nothing.
  RnnSetupCache() { setups_.reserve(kKept + 1); }

  // One that fits, or null.
  std::unique_ptr<RnnSetup> Take(const RnnPlan& plan, const DeviceTraits& traits);
  void Put(std::unique_ptr<RnnSetup> setup);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<RnnSetup>> setups_;  // the longest unused first
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_RNN_SETUP_H_
