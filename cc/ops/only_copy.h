// Two copies of this library in one process: the package installed in two places, or _ops.so copied
// and loaded by its path. Their kernels would have equal names and priorities, and TensorFlow then
// refuses to run any of them.
#ifndef TF_CUDNN_RNN_OPS_CC_OPS_ONLY_COPY_H_
#define TF_CUDNN_RNN_OPS_CC_OPS_ONLY_COPY_H_

namespace tf_cudnn_rnn {

// True in the first copy. In any later one false: it must register nothing, and whoever loads it is
// told, by a FailedPrecondition of tf.load_op_library or, without it, by TensorFlow's log. For
// static initializers.
bool IsOnlyCopy();

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_OPS_ONLY_COPY_H_
