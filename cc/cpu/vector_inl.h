// Vectors of VL elements in the compiler's own vector types, which GCC and clang lower to the
// instruction set that the including file is compiled for. Included by kernels_<isa>.cc only,
// inside its namespace; VECTOR_BYTES is the width.

template <class C>
struct VectorTypes;
template <>
struct VectorTypes<float> {
  typedef float V __attribute__((vector_size(VECTOR_BYTES)));
  typedef int32_t Bits __attribute__((vector_size(VECTOR_BYTES)));
  typedef float Unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
};
template <>
struct VectorTypes<double> {
  typedef double V __attribute__((vector_size(VECTOR_BYTES)));
  typedef int64_t Bits __attribute__((vector_size(VECTOR_BYTES)));
  typedef double Unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
};
template <class C>
using Vector = typename VectorTypes<C>::V;

template <class C>
constexpr int kVectorLength = VECTOR_BYTES / sizeof(C);

#define INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

template <class C>
INLINE Vector<C> Broadcast(C x) {
  return x - Vector<C>{};  // exact, unlike an addition (−0), so that only a broadcasting load
                           // remains of it
}

template <class C>
INLINE Vector<C> Load(const C* p) {
  return *reinterpret_cast<const typename VectorTypes<C>::Unaligned*>(p);
}

template <class C>
INLINE void Store(C* p, Vector<C> x) {
  *reinterpret_cast<typename VectorTypes<C>::Unaligned*>(p) = x;
}

// The first n elements, 0 < n ≤ VL; the others are 0.
template <class C>
INLINE Vector<C> Load(const C* p, int64_t n) {
  if (n >= kVectorLength<C>) return Load(p);
  C part[kVectorLength<C>] = {};
  __builtin_memcpy(part, p, n * sizeof(C));
  return Load(part);
}

template <class C>
INLINE void Store(C* p, Vector<C> x, int64_t n) {
  if (n >= kVectorLength<C>) return Store(p, x);
  C part[kVectorLength<C>];
  Store(part, x);
  __builtin_memcpy(p, part, n * sizeof(C));
}
