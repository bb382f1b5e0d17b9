// How the engine gets its threads: an interface that TensorFlow's intra-op pool and the tests' pool
// adapt to.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_PARALLEL_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_PARALLEL_H_

#include <functional>

namespace tf_cudnn_rnn::cpu {

class Parallel {
 public:
  virtual ~Parallel() = default;

  // How many tasks can run at once, the caller's thread included; at least 1.
  virtual int num_threads() const = 0;

  // Calls task(0) … task(count − 1), each once, and returns when all have returned. The tasks must
  // be independent: they may run one after another on the caller's thread. Tasks do not throw.
  virtual void Run(int count, const std::function<void(int)>& task) const = 0;

  // Whether nobody wants the results any more; once true, always true. The engine asks between time
  // steps, from any thread, and then ends the call with CUDNN_STATUS_EXECUTION_FAILED; the contents
  // of the outputs are unspecified.
  virtual bool Cancelled() const { return false; }
};

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_PARALLEL_H_
