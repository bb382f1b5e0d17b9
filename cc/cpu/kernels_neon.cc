// The kernels for 64-bit Arm: 128-bit vectors, fused multiply-add.
#define ISA_NAMESPACE neon
#define ISA_NAME "neon"
#define VECTOR_BYTES 16
#define VECTOR_REGISTERS 32
#include "cc/cpu/kernels_inl.h"
