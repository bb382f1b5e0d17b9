// exp-based activations on vectors. Included by kernels_<isa>.cc only, after vector_inl.h.
//
// Both reduce to expm1: y = n ln 2 + r with |r| ≤ ln 2 / 2, expm1(y) = 2^n p(r) + (2^n − 1) with
// p(r) = expm1(r) = r + r² q(r). q is an interpolation at Chebyshev nodes; the relative error of p
// is 2.5e-8 for float and 4.2e-17 for double. Both functions stay within 3 ULP in both types,
// except that a sigmoid below 1.7e-38 (1e-307) comes out as that value at most. Measured over every
// 1009th float and a grid of doubles: 2.5 ULP (tests/cc/activations_test.cc). NaN gives NaN,
// ±infinity the limits.

template <class C>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float kLog2E = 1.44269504f;
  static constexpr float kLn2High = 0.693359375f;  // 10 bits, so n · kLn2High is exact
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kRound = 12582912.f;  // 1.5 · 2^23: adding it rounds to an integer
  static constexpr int kMantissaBits = 23;
  static constexpr int kExponentBias = 127;
  static constexpr float kSigmoidLimit = 87.f;  // exp stays finite and normal
  static constexpr float kTanhLimit = 10.f;     // beyond it tanh rounds to ±1
  static constexpr int kDegree = 4;
  static constexpr float kQ[] = {0.5f, 0.16666576305560638f, 0.041666553762567638f,
                                 0.0083632927530306023f, 0.00139263256181334621f};
};
template <>
struct ExpConstants<double> {
  static constexpr double kLog2E = 1.4426950408889634;
  static constexpr double kLn2High = 0.693147180369123816490;  // 32 bits
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kRound = 6755399441055744.;  // 1.5 · 2^52
  static constexpr int kMantissaBits = 52;
  static constexpr int kExponentBias = 1023;
  static constexpr double kSigmoidLimit = 707.;
  static constexpr double kTanhLimit = 20.;
  static constexpr int kDegree = 9;
  static constexpr double kQ[] = {0.50000000000000010417,   0.16666666666666667468,
                                  0.041666666666623476764,  0.0083333333333300117609,
                                  0.0013888888917538295848, 0.00019841269863303223296,
                                  2.4801520792572692843e-5, 2.7557268072890098263e-6,
                                  2.762032742826823816e-7,  2.5100569275813682631e-8};
};

// x within ±limit; NaN stays NaN.
template <class C>
INLINE Vector<C> Clamp(Vector<C> x, C limit) {
  const Vector<C> high = Broadcast(limit), low = -high;
  x = x > high ? high : x;
  return x < low ? low : x;
}

// Splits exp(y) into scale = 2^n and p = expm1(r). |y| must not exceed kSigmoidLimit.
template <class C>
INLINE void ExpParts(Vector<C> y, Vector<C>* scale, Vector<C>* p) {
  using K = ExpConstants<C>;
  using Bits = typename VectorTypes<C>::Bits;
  const Vector<C> shifted = y * K::kLog2E + K::kRound;
  const Vector<C> n = shifted - K::kRound;
  // The low bits of `shifted` are n itself.
  *scale = reinterpret_cast<Vector<C>>((reinterpret_cast<Bits>(shifted) + K::kExponentBias)
                                       << K::kMantissaBits);
  const Vector<C> r = (y - n * K::kLn2High) - n * K::kLn2Low;
  Vector<C> q = Broadcast(K::kQ[K::kDegree]);
  UNROLL
  for (int i = K::kDegree - 1; i >= 0; --i) q = q * r + K::kQ[i];
  *p = r * r * q + r;
}

// 1 / (1 + exp(−x))
template <class C>
INLINE Vector<C> Sigmoid(Vector<C> x) {
  Vector<C> scale, p;
  ExpParts<C>(Clamp<C>(-x, ExpConstants<C>::kSigmoidLimit), &scale, &p);
  return C(1) / ((scale * p + scale) + C(1));
}

// e / (e + 2) with e = expm1(2x), which keeps the relative error small near 0.
template <class C>
INLINE Vector<C> Tanh(Vector<C> x) {
  Vector<C> scale, p;
  ExpParts<C>(Clamp<C>(x, ExpConstants<C>::kTanhLimit) * C(2), &scale, &p);
  const Vector<C> e = scale * p + (scale - C(1));
  return e / (e + C(2));
}

template <class C>
INLINE Vector<C> Relu(Vector<C> x) {
  return x < Vector<C>{} ? Vector<C>{} : x;  // NaN stays NaN
}
