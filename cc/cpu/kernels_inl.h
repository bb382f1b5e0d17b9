// Builds the kernel tables of one instruction set. Included once by each kernels_<isa>.cc, which
// first defines
//   ISA_NAMESPACE, ISA_NAME   e.g. avx2, "avx2"
//   VECTOR_BYTES              width of a vector register
//   VECTOR_REGISTERS          how many there are, 16 or 32
// Everything lives in a namespace of that instruction set, and no header with inline functions of
// its own is included: the linker would otherwise be free to give a machine code that it cannot
// run.
#include "cc/cpu/kernels.h"

namespace tf_cudnn_rnn::cpu::ISA_NAMESPACE {
namespace {

// In the order in which they use each other.
// clang-format off
#include "cc/cpu/vector_inl.h"
#include "cc/cpu/activations_inl.h"
#include "cc/cpu/product_inl.h"
#include "cc/cpu/cells_inl.h"
// clang-format on

template <class C, Vector<C> (*f)(Vector<C>)>
void Map(const C* x, C* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kVectorLength<C>)
    Store<C>(y + i, f(Load<C>(x + i, n - i)), n - i);
}

template <class C>
constexpr Kernels<C> kTable = {
    ISA_NAME,
    kVectorLength<C>,
    Product<C>,
    Dot<C>,
    LstmForward<C>,
    GruForward<C>,
    RnnForward<C, TanhActivation<C>>,
    RnnForward<C, ReluActivation<C>>,
    LstmBackward<C>,
    GruBackward<C>,
    RnnBackward<C, TanhActivation<C>>,
    RnnBackward<C, ReluActivation<C>>,
    Map<C, Sigmoid<C>>,
    Map<C, Tanh<C>>,
};

}  // namespace

extern const Kernels<float> kFloatKernels;
const Kernels<float> kFloatKernels = kTable<float>;
extern const Kernels<double> kDoubleKernels;
const Kernels<double> kDoubleKernels = kTable<double>;

}  // namespace tf_cudnn_rnn::cpu::ISA_NAMESPACE
