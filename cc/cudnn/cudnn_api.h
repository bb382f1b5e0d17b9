// The table through which all of cc/rnn reaches cuDNN. It is filled from libcudnn.so.9 on a GPU and
// from our own engine (cc/cpu/cpu_cudnn.h) on a CPU; its users cannot tell which.
#ifndef TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_API_H_
#define TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_API_H_

#include "cc/cudnn/cudnn_rnn_api.h"

namespace tf_cudnn_rnn {

// One typed pointer per function of cudnn_functions.inc, under the function's own name. A complete
// table has no null pointer.
struct CudnnApi {
#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments) result(*name) parameters = nullptr;
#include "cc/cudnn/cudnn_functions.inc"
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_API_H_
