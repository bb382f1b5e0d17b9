#include "cc/rnn/zero_length_rows.h"

#include <algorithm>

namespace tf_cudnn_rnn {

ZeroLengthRows::ZeroLengthRows(const RnnPlan& plan, Device* device)
    : plan_(plan), device_(device), element_size_(ElementSize(plan.config.data_type)) {
  if (!plan.any_zero_length || plan.empty() || device->traits().takes_zero_lengths) return;
  lengths_.assign(plan.sequence_lengths, plan.sequence_lengths + plan.B);
  for (int b = 0; b < plan.B; ++b) {
    if (lengths_[b] > 0) continue;
    lengths_[b] = 1;
    if (!runs_.empty() && runs_.back().first + runs_.back().second == b) {
      ++runs_.back().second;
    } else {
      runs_.push_back({b, 1});
    }
  }
}

Status ZeroLengthRows::ZeroFirstSteps(void* data, int64_t width) const {
  const size_t step = element_size_ * width;
  // From a row to the next one's first step.
  const size_t pitch = plan_.config.time_major ? step : step * plan_.T;
  for (const auto& [first, count] : runs_) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        device_->Zero2D(static_cast<char*>(data) + first * pitch, pitch, step, count));
  }
  return Status();
}

Status ZeroLengthRows::WithoutFirstSteps(int64_t width, const void** data) const {
  const size_t bytes = element_size_ * width * plan_.B * plan_.T;
  void* copy;
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(bytes, &copy));
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy(copy, *data, bytes));
  *data = copy;
  return ZeroFirstSteps(copy, width);
}

Status ZeroLengthRows::WithoutStates(int64_t width, const void** state) const {
  const size_t row = element_size_ * width;
  const size_t pitch = row * plan_.B;
  const size_t bytes = pitch * plan_.dims().pseudo_layers();
  void* copy;
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(bytes, &copy));
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy(copy, *state, bytes));
  *state = copy;
  for (const auto& [first, count] : runs_) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Zero2D(static_cast<char*>(copy) + first * row, pitch,
                                                 count * row, plan_.dims().pseudo_layers()));
  }
  return Status();
}

Status ZeroLengthRows::CopyStates(const void* from, int64_t width, void* to) const {
  const size_t row = element_size_ * width;
  const size_t pitch = row * plan_.B;
  for (const auto& [first, count] : runs_) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy2D(static_cast<char*>(to) + first * row, pitch,
                                                 static_cast<const char*>(from) + first * row,
                                                 pitch, count * row, plan_.dims().pseudo_layers()));
  }
  return Status();
}

}  // namespace tf_cudnn_rnn
