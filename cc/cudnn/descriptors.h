// Owners of cuDNN's handles and descriptors: made by Create, destroyed with the owner.
#ifndef TF_CUDNN_RNN_OPS_CC_CUDNN_DESCRIPTORS_H_
#define TF_CUDNN_RNN_OPS_CC_CUDNN_DESCRIPTORS_H_

#include "cc/cudnn/cudnn_api.h"

namespace tf_cudnn_rnn {

// `kCreate` and `kDestroy` are members of CudnnApi. The table outlives the owner.
template <typename Object, auto kCreate, auto kDestroy>
class CudnnOwner {
 public:
  explicit CudnnOwner(const CudnnApi& api) : api_(api) {}
  ~CudnnOwner() {
    if (object_ != nullptr) (api_.*kDestroy)(object_);
  }
  CudnnOwner(const CudnnOwner&) = delete;
  CudnnOwner& operator=(const CudnnOwner&) = delete;

  // At most once.
  cudnnStatus_t Create() { return (api_.*kCreate)(&object_); }

  // Null before Create.
  Object get() const { return object_; }

 private:
  const CudnnApi& api_;
  Object object_ = nullptr;
};

using Handle = CudnnOwner<cudnnHandle_t, &CudnnApi::cudnnCreate, &CudnnApi::cudnnDestroy>;
using TensorDescriptor = CudnnOwner<cudnnTensorDescriptor_t, &CudnnApi::cudnnCreateTensorDescriptor,
                                    &CudnnApi::cudnnDestroyTensorDescriptor>;
using DropoutDescriptor =
    CudnnOwner<cudnnDropoutDescriptor_t, &CudnnApi::cudnnCreateDropoutDescriptor,
               &CudnnApi::cudnnDestroyDropoutDescriptor>;
using RnnDescriptor = CudnnOwner<cudnnRNNDescriptor_t, &CudnnApi::cudnnCreateRNNDescriptor,
                                 &CudnnApi::cudnnDestroyRNNDescriptor>;
using RnnDataDescriptor =
    CudnnOwner<cudnnRNNDataDescriptor_t, &CudnnApi::cudnnCreateRNNDataDescriptor,
               &CudnnApi::cudnnDestroyRNNDataDescriptor>;

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_CUDNN_DESCRIPTORS_H_
