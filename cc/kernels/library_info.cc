// What the Python package asks the library by ctypes.
#include <string>

#include "cc/cpu/cpu_cudnn.h"
#include "cc/cudnn/cudnn_library.h"

// The instruction set that the CPU kernels use on this machine: "avx512", "avx2", "baseline" or
// "neon". Static memory.
extern "C" __attribute__((visibility("default"))) const char* tf_cudnn_rnn_ops_instruction_set() {
  return tf_cudnn_rnn::cpu::InstructionSet();
}

// The cuDNN that the GPU kernels use, "9.28.0, <path>", or what was looked for and why none is
// used. Opens it, if it has not been. Static memory.
extern "C" __attribute__((visibility("default"))) const char* tf_cudnn_rnn_ops_cudnn() {
  static const std::string* const text = [] {
    const tf_cudnn_rnn::CudnnLibrary& cudnn = tf_cudnn_rnn::Cudnn();
    return new std::string(cudnn.ok()
                               ? tf_cudnn_rnn::CudnnVersionText(cudnn.version) + ", " + cudnn.path
                               : cudnn.error);
  }();
  return text->c_str();
}
