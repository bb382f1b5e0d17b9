// A cuDNN status as a Status.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_CUDNN_STATUS_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_CUDNN_STATUS_H_

#include <string>

#include "cc/cudnn/cudnn_api.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// "FUNCTION failed with CUDNN_STATUS_… (cuDNN's last error) for CONFIGURATION". BAD_PARAM and
// NOT_SUPPORTED are InvalidArgument: the arguments were checked before, so cuDNN cannot do what the
// caller asked for, and Keras goes on without cuDNN. What says that memory ran out is
// ResourceExhausted, anything else Internal.
Status CudnnError(const CudnnApi& api, cudnnStatus_t status, const char* function,
                  const std::string& configuration);

}  // namespace tf_cudnn_rnn

// Calls `function` of the table `api` with the rest and leaves the function with the error, if it
// is one. `configuration` is only evaluated then.
#define TF_CUDNN_RNN_RETURN_IF_CUDNN_ERROR(api, configuration, function, ...)           \
  do {                                                                                  \
    const cudnnStatus_t status_of_call = (api).function(__VA_ARGS__);                   \
    if (status_of_call != CUDNN_STATUS_SUCCESS) {                                       \
      return ::tf_cudnn_rnn::CudnnError(api, status_of_call, #function, configuration); \
    }                                                                                   \
  } while (false)

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_CUDNN_STATUS_H_
