// Between cc/rnn's words and TensorFlow's, and what differs between the TensorFlow versions that
// this project builds against. From 2.18 to 2.21 nothing does, as long as a status is called
// absl::Status and headers are included by their tensorflow/core path.
#ifndef TF_CUDNN_RNN_OPS_CC_KERNELS_TF_COMPAT_H_
#define TF_CUDNN_RNN_OPS_CC_KERNELS_TF_COMPAT_H_

#include "absl/status/status.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// A status of cc/rnn as TensorFlow's.
inline absl::Status ToTensorFlow(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return absl::OkStatus();
    case StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(status.message());
    case StatusCode::kResourceExhausted:
      return absl::ResourceExhaustedError(status.message());
    case StatusCode::kInternal:
      break;
  }
  return absl::InternalError(status.message());
}

// And back: memory is told apart, anything else that TensorFlow refuses a kernel is internal.
inline Status FromTensorFlow(const absl::Status& status) {
  if (status.ok()) return Status();
  return Status(
      absl::IsResourceExhausted(status) ? StatusCode::kResourceExhausted : StatusCode::kInternal,
      std::string(status.message()));
}

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_KERNELS_TF_COMPAT_H_
