// cuDNN's RNN functions on host memory: the CPU engine's public face.
//
// Each function of cudnn_functions.inc exists here under its own name in this namespace and with
// cuDNN's meaning; "device" pointers are host pointers and a call has finished when it returns.
// libcudnn_rnn_cpu.so exports the same functions under their global C names (cudnn_exports.cc).
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_CPU_CUDNN_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_CPU_CUDNN_H_

#include "cc/cpu/parallel.h"
#include "cc/cudnn/cudnn_api.h"

namespace tf_cudnn_rnn::cpu {

#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments) result name parameters;
#include "cc/cudnn/cudnn_functions.inc"

// The table of the functions above.
const CudnnApi& Api();

// What cuDNN's API has no word for. Both apply to the calls made with this handle afterwards.
//
// Threads for the computations; `parallel` is not owned and must outlive its use. Null, the
// default: the calling thread only. Results do not depend on it, bit for bit.
cudnnStatus_t SetParallel(cudnnHandle_t handle, const Parallel* parallel);

// true: BackwardData leaves reserveSpace as it found it and hands its intermediate results to
// BackwardWeights in workSpace, which must then be the same buffer, unchanged, in both calls.
// cudnnGetRNNTempSpaceSizes answers accordingly. false, the default and cuDNN's own way: they are
// written into reserveSpace.
cudnnStatus_t SetReserveReadOnly(cudnnHandle_t handle, bool read_only);

// The instruction set that the kernels use on this machine: "avx512", "avx2", "baseline" or "neon".
// Chosen once, at first use; the environment variable TF_CUDNN_RNN_ISA may name a lesser one.
const char* InstructionSet();

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_CPU_CUDNN_H_
