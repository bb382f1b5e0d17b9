// What the Python package asks the library by ctypes.
#include "cc/cpu/cpu_cudnn.h"

// The instruction set that the CPU kernels use on this machine: "avx512", "avx2", "baseline" or
// "neon". Static memory.
extern "C" __attribute__((visibility("default"))) const char* tf_cudnn_rnn_ops_instruction_set() {
  return tf_cudnn_rnn::cpu::InstructionSet();
}
