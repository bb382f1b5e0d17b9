#include "cc/rnn/state_layout.h"

namespace tf_cudnn_rnn {

Status StateLayout::ForReading(const void* caller, int64_t width, const void** state) {
  *state = caller;
  if (!plan_.states_transposed()) return Status();
  void* scratch;
  TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Allocate(bytes(width), &scratch));
  const size_t row = element_size_ * width;
  const int pseudo_layers = plan_.dims().pseudo_layers();
  for (int p = 0; p < pseudo_layers; ++p) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(device_->Copy2D(static_cast<char*>(scratch) + p * plan_.B * row,
                                                 row, static_cast<const char*>(caller) + p * row,
                                                 pseudo_layers * row, row, plan_.B));
  }
  *state = scratch;
  return Status();
}

Status StateLayout::ForWriting(void* caller, int64_t width, void** state) {
  *state = caller;
  if (!plan_.states_transposed()) return Status();
  return device_->Allocate(bytes(width), state);
}

Status StateLayout::Finish(const void* state, int64_t width, void* caller) {
  if (!plan_.states_transposed()) return Status();
  const size_t row = element_size_ * width;
  const int pseudo_layers = plan_.dims().pseudo_layers();
  for (int p = 0; p < pseudo_layers; ++p) {
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        device_->Copy2D(static_cast<char*>(caller) + p * row, pseudo_layers * row,
                        static_cast<const char*>(state) + p * plan_.B * row, row, row, plan_.B));
  }
  return Status();
}

}  // namespace tf_cudnn_rnn
