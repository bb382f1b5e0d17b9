// The kernels for AVX2 with FMA.
#define ISA_NAMESPACE avx2
#define ISA_NAME "avx2"
#define VECTOR_BYTES 32
#define VECTOR_REGISTERS 16
#include "cc/cpu/kernels_inl.h"
