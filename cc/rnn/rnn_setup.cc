#include "cc/rnn/rnn_setup.h"

#include <tuple>
#include <utility>

#include "cc/rnn/cudnn_status.h"

namespace tf_cudnn_rnn {
namespace {

cudnnMathType_t MathType(cudnnDataType_t data_type, bool tensor_float_32) {
  switch (data_type) {
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return CUDNN_TENSOR_OP_MATH;
    case CUDNN_DATA_FLOAT:
      // cuDNN's default rounds to TF32 on hardware that has it.
      return tensor_float_32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
    case CUDNN_DATA_DOUBLE:
      break;
  }
  return CUDNN_DEFAULT_MATH;
}

}  // namespace

RnnSetup::Key::Key(const RnnPlan& plan, const DeviceTraits& traits)
    : rnn_mode(plan.config.rnn_mode),
      direction(plan.config.direction),
      input_mode(plan.dims().skip_input ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT),
      data_type(plan.config.data_type),
      math_precision(data_type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
      math_type(MathType(data_type, traits.tensor_float_32)),
      I(static_cast<int>(plan.dims().I)),
      H(static_cast<int>(plan.dims().H)),
      R(static_cast<int>(plan.dims().R)),
      L(plan.dims().L),
      dropout(plan.drops() ? plan.config.dropout : 0) {}

bool RnnSetup::Key::operator==(const Key& other) const {
  const auto all = [](const Key& key) {
    return std::tie(key.rnn_mode, key.direction, key.input_mode, key.data_type, key.math_precision,
                    key.math_type, key.I, key.H, key.R, key.L, key.dropout, key.flags);
  };
  return all(*this) == all(other);
}

Status RnnSetup::Create(const RnnPlan& plan, Device* device, DropoutStates* dropout,
                        const void* params) {
  const CudnnApi& api = device->api();
  const auto configuration = [&plan] { return plan.Describe(); };
  key_ = Key(plan, device->traits());
  if (plan.drops()) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(dropout->Describe(device, &dropout_descriptor_));
  } else {
    // No states are needed for a rate of 0.
    const cudnnStatus_t created = dropout_descriptor_.Create();
    if (created != CUDNN_STATUS_SUCCESS) {
      return CudnnError(api, created, "cudnnCreateDropoutDescriptor", configuration());
    }
    TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration(), cudnnSetDropoutDescriptor,
                                       dropout_descriptor_.get(), device->handle(), 0, nullptr, 0,
                                       0);
  }
  const cudnnStatus_t created = rnn_.Create();
  if (created != CUDNN_STATUS_SUCCESS) {
    return CudnnError(api, created, "cudnnCreateRNNDescriptor", configuration());
  }
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration(), cudnnSetRNNDescriptor_v8, rnn_.get(),
                                     CUDNN_RNN_ALGO_STANDARD, key_.rnn_mode, CUDNN_RNN_DOUBLE_BIAS,
                                     key_.direction, key_.input_mode, key_.data_type,
                                     key_.math_precision, key_.math_type, key_.I, key_.H, key_.R,
                                     key_.L, dropout_descriptor_.get(), key_.flags);
  weight_bytes_ = plan.weights.size() * ElementSize(key_.data_type);
  return device->traits().dense_params ? Status() : FindWeights(plan, device, params);
}

Status RnnSetup::FindWeights(const RnnPlan& plan, Device* device, const void* params) {
  const CudnnApi& api = device->api();
  const auto configuration = [&plan] { return plan.Describe(); };
  const size_t element = ElementSize(key_.data_type);
  const size_t dense_bytes = weight_bytes_;
  TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration(), cudnnGetRNNWeightSpaceSize,
                                     device->handle(), rnn_.get(), &weight_bytes_);
  TensorDescriptor matrix_descriptor(api), bias_descriptor(api);
  for (TensorDescriptor* descriptor : {&matrix_descriptor, &bias_descriptor}) {
    const cudnnStatus_t created = descriptor->Create();
    if (created != CUDNN_STATUS_SUCCESS) {
      return CudnnError(api, created, "cudnnCreateTensorDescriptor", configuration());
    }
  }
  const RnnDims& dims = plan.dims();
  // Adds the move of one piece; `found` is where cuDNN has it.
  const auto add = [&](const char* what, int p, int id, const WeightPiece& piece,
                       const void* found) -> Status {
    const size_t bytes = piece.rows * piece.columns * element;
    if (bytes == 0) return Status();
    const size_t offset = static_cast<const char*>(found) - static_cast<const char*>(params);
    if (found == nullptr || offset > weight_bytes_ || bytes > weight_bytes_ - offset) {
      return Internal("cuDNN has no place for ", what, " ", id, " of pseudo-layer ", p, " for ",
                      configuration());
    }
    Add({static_cast<size_t>(piece.offset) * element, offset, bytes});
    return Status();
  };
  // Matrices first, as in params, so that neighbours there are added one after another.
  for (const bool biases : {false, true}) {
    for (int p = 0; p < dims.pseudo_layers(); ++p) {
      for (int id = 0; id < (biases ? 2 * dims.G : dims.matrices()); ++id) {
        void *matrix = nullptr, *bias = nullptr;
        TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration(), cudnnGetRNNWeightParams,
                                           device->handle(), rnn_.get(), p, weight_bytes_, params,
                                           id, matrix_descriptor.get(), &matrix,
                                           bias_descriptor.get(), &bias);
        TF_CUDNN_RNN_RETURN_IF_ERROR(
            biases ? add("bias", p, id, plan.weights.Bias(p, id), bias)
                   : add("matrix", p, id, plan.weights.Matrix(p, id), matrix));
      }
    }
  }
  const bool same = moves_.size() == 1 && moves_[0].in_params == 0 && moves_[0].in_space == 0 &&
                    weight_bytes_ == dense_bytes;
  if (same) moves_.clear();
  return Status();
}

void RnnSetup::Add(const Move& move) {
  if (!moves_.empty()) {
    Move& last = moves_.back();
    if (last.in_params + last.bytes == move.in_params &&
        last.in_space + last.bytes == move.in_space) {
      last.bytes += move.bytes;
      return;
    }
  }
  moves_.push_back(move);
}

Status RnnSetup::ParamsToSpace(const void* params, void* space, Device* device) const {
  // What no weight fills must not be garbage either.
  TF_CUDNN_RNN_RETURN_IF_ERROR(device->Zero(space, weight_bytes_));
  for (const Move& move : moves_) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(device->Copy(static_cast<char*>(space) + move.in_space,
                                              static_cast<const char*>(params) + move.in_params,
                                              move.bytes));
  }
  return Status();
}

Status RnnSetup::SpaceToParams(const void* space, void* params, Device* device) const {
  for (const Move& move : moves_) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(device->Copy(static_cast<char*>(params) + move.in_params,
                                              static_cast<const char*>(space) + move.in_space,
                                              move.bytes));
  }
  return Status();
}

std::unique_ptr<RnnSetup> RnnSetupCache::Take(const RnnPlan& plan, const DeviceTraits& traits) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = setups_.size(); i-- > 0;) {
    if (!setups_[i]->Fits(plan, traits)) continue;
    std::unique_ptr<RnnSetup> setup = std::move(setups_[i]);
    setups_.erase(setups_.begin() + i);
    return setup;
  }
  return nullptr;
}

void RnnSetupCache::Put(std::unique_ptr<RnnSetup> setup) {
  std::unique_ptr<RnnSetup> dropped;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  setups_.push_back(std::move(setup));
  if (setups_.size() > kKept) {
    dropped = std::move(setups_.front());
    setups_.erase(setups_.begin());
  }
}

}  // namespace tf_cudnn_rnn
