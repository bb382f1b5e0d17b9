// Chooses the kernels of the machine's instruction set, once.
#include <cstdlib>
#include <cstring>

#include "cc/cpu/cpu_cudnn.h"
#include "cc/cpu/kernels.h"

namespace tf_cudnn_rnn::cpu {

#define DECLARE_KERNELS(isa)                   \
  namespace isa {                              \
  extern const Kernels<float> kFloatKernels;   \
  extern const Kernels<double> kDoubleKernels; \
  }

#if defined(__x86_64__)
DECLARE_KERNELS(baseline)
DECLARE_KERNELS(avx2)
DECLARE_KERNELS(avx512)
#elif defined(__aarch64__)
DECLARE_KERNELS(neon)
#else
DECLARE_KERNELS(baseline)
#endif

namespace {

struct InstructionSetEntry {
  const Kernels<float>* float_kernels;
  const Kernels<double>* double_kernels;
  bool available;
};

// From the best to the least; the last runs everywhere.
struct InstructionSets {
#if defined(__x86_64__)
  InstructionSetEntry entries[3] = {
      {&avx512::kFloatKernels, &avx512::kDoubleKernels,
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma")},
      {&avx2::kFloatKernels, &avx2::kDoubleKernels,
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
      {&baseline::kFloatKernels, &baseline::kDoubleKernels, true},
  };
#elif defined(__aarch64__)
  InstructionSetEntry entries[1] = {{&neon::kFloatKernels, &neon::kDoubleKernels, true}};
#else
  InstructionSetEntry entries[1] = {{&baseline::kFloatKernels, &baseline::kDoubleKernels, true}};
#endif

  const InstructionSetEntry* Named(const char* name) const {
    for (const InstructionSetEntry& entry : entries) {
      if (entry.available && std::strcmp(entry.float_kernels->name, name) == 0) return &entry;
    }
    return nullptr;
  }

  const InstructionSetEntry& Best() const {
    for (const InstructionSetEntry& entry : entries) {
      if (entry.available) return entry;
    }
    return *(entries + sizeof(entries) / sizeof(entries[0]) - 1);
  }
};

const InstructionSets& Sets() {
  static const InstructionSets sets;
  return sets;
}

const InstructionSetEntry& Chosen() {
  static const InstructionSetEntry& chosen = []() -> const InstructionSetEntry& {
    const char* name = std::getenv("TF_CUDNN_RNN_ISA");
    const InstructionSetEntry* named = name ? Sets().Named(name) : nullptr;
    return named ? *named : Sets().Best();
  }();
  return chosen;
}

template <class C>
const Kernels<C>& Pick(const InstructionSetEntry& entry);
template <>
const Kernels<float>& Pick<float>(const InstructionSetEntry& entry) {
  return *entry.float_kernels;
}
template <>
const Kernels<double>& Pick<double>(const InstructionSetEntry& entry) {
  return *entry.double_kernels;
}

}  // namespace

template <class C>
const Kernels<C>& BestKernels() {
  return Pick<C>(Chosen());
}
template const Kernels<float>& BestKernels();
template const Kernels<double>& BestKernels();

template <class C>
const Kernels<C>* KernelsNamed(const char* name) {
  const InstructionSetEntry* entry = Sets().Named(name);
  return entry ? &Pick<C>(*entry) : nullptr;
}
template const Kernels<float>* KernelsNamed(const char*);
template const Kernels<double>* KernelsNamed(const char*);

const char* InstructionSet() { return Chosen().float_kernels->name; }

}  // namespace tf_cudnn_rnn::cpu
