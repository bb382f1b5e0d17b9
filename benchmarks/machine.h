// What a core can do at best: the figures that the engine's are held against. Nothing of the engine
// is used here.
#ifndef TF_CUDNN_RNN_OPS_BENCHMARKS_MACHINE_H_
#define TF_CUDNN_RNN_OPS_BENCHMARKS_MACHINE_H_

#include <cstdint>

namespace tf_cudnn_rnn {

// Multiply-adds in float on registers alone, with the widest vectors of `instruction_set`
// (cpu::InstructionSet's names): as many independent sums as hide the latency, in a loop of
// `repeats`. Returns the floating-point operations done: two per multiply-add.
double MultiplyAdd(const char* instruction_set, int64_t repeats);

// Reads `bytes` bytes, a multiple of 1024 and aligned to 64, with vectors of that width, and
// returns what depends on each of them, so that no read can be left out.
float Read(const char* instruction_set, const void* buffer, int64_t bytes);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_BENCHMARKS_MACHINE_H_
