// libcudnn_rnn_cpu.so: cuDNN's own names for the engine, so that a program which expects libcudnn
// can run on it.
#include "cc/cpu/cpu_cudnn.h"

extern "C" {
#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments)   \
  __attribute__((visibility("default"))) result name parameters { \
    return tf_cudnn_rnn::cpu::name arguments;                     \
  }
#include "cc/cudnn/cudnn_functions.inc"
}
