// TensorFlow's tensors and attributes in cc/rnn's terms.
#ifndef TF_CUDNN_RNN_OPS_CC_KERNELS_TENSORS_H_
#define TF_CUDNN_RNN_OPS_CC_KERNELS_TENSORS_H_

#include "cc/rnn/shape.h"
#include "tensorflow/core/framework/tensor.h"

namespace tf_cudnn_rnn {

inline Shape ShapeOf(const tensorflow::Tensor& tensor) {
  Shape shape;
  for (int i = 0; i < tensor.dims(); ++i) shape.AddDim(tensor.dim_size(i));
  return shape;
}

// For a shape of few dimensions whose product the caller knows to fit in int64.
inline tensorflow::TensorShape ToTensorShape(const Shape& shape) {
  tensorflow::TensorShape result;
  for (int i = 0; i < shape.rank(); ++i) result.AddDim(shape.dim(i));
  return result;
}

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_KERNELS_TENSORS_H_
