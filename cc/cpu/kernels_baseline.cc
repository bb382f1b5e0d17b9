// The kernels for any machine: 128-bit vectors (SSE2 on x86-64).
#define ISA_NAMESPACE baseline
#define ISA_NAME "baseline"
#define VECTOR_BYTES 16
#define VECTOR_REGISTERS 16
#include "cc/cpu/kernels_inl.h"
