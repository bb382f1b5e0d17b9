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

  // Floating-point operations below which a task costs more to hand over than it saves. Waking a
  // thread of TensorFlow's pool and waiting for it adds some 50 µs to a call on a virtual machine:
  // one streaming step of a gru of 256 units (8e5 operations) took 614 µs in a tf.function alone
  // and 742 µs with two threads.
  virtual double least_task() const { return 1e6; }

  // Whether nobody wants the results any more; once true, always true. The engine asks between time
  // steps, from any thread, and then ends the call with CUDNN_STATUS_EXECUTION_FAILED; the contents
  // of the outputs are unspecified.
  virtual bool Cancelled() const { return false; }
};

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_PARALLEL_H_
