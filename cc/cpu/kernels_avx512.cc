// The kernels for AVX-512 (F, BW, DQ, VL).
#define ISA_NAMESPACE avx512
#define ISA_NAME "avx512"
#define VECTOR_BYTES 64
#define VECTOR_REGISTERS 32
#include "cc/cpu/kernels_inl.h"
