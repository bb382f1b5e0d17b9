#include "cc/rnn/cudnn_status.h"

namespace tf_cudnn_rnn {

Status CudnnError(const CudnnApi& api, cudnnStatus_t status, const char* function,
                  const std::string& configuration) {
  char last_error[512] = "";
  api.cudnnGetLastErrorString(last_error, sizeof(last_error));
  std::string message = Concatenate(function, " failed with ", api.cudnnGetErrorString(status));
  if (last_error[0] != '\0') message += Concatenate(" (", last_error, ")");
  message += " for " + configuration;

  const int category = status / 1000 * 1000;
  if (category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_NOT_SUPPORTED) {
    return Status(StatusCode::kInvalidArgument, std::move(message));
  }
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return Status(StatusCode::kResourceExhausted, std::move(message));
  }
  return Status(StatusCode::kInternal, std::move(message));
}

}  // namespace tf_cudnn_rnn
