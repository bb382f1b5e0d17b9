// The cells: recurrent product and activations of one time step (forward), elementwise gradients
// (backward). Formulas and names: docs/rnn.md. Included by kernels_<isa>.cc only, after
// product_inl.h and activations_inl.h.

// ---- forward: tile by tile; a cell reads its sums while they are in L1 ----

template <class C>
void LstmForward(const CellForwardArguments<C>& args) {
  const Panels<C>& panels = *args.panels;
  const int64_t H = args.H;
  ForEachPanel<C>(args, [&](int64_t p, int64_t following) {
    const int64_t unit = p * kVectorLength<C>, n = H - unit;
    ForEachTile(args.rows, kTileRows[4], [&](int64_t row, int rows, int64_t tile) {
      TileSums<C> sums;
      LoadSums<C>(panels, p, rows, args.gates + row, 1, &sums);
      Multiply<C>(panels, p, following, panels.K, rows, tile, {args.h_prev + row, nullptr, 0, 0},
                  &sums);
      for (int m = 0; m < rows; ++m) {
        const Vector<C> i = Sigmoid<C>(Load(sums.at(m, 4, 0)));
        const Vector<C> f = Sigmoid<C>(Load(sums.at(m, 4, 1)));
        const Vector<C> g = Tanh<C>(Load(sums.at(m, 4, 2)));
        const Vector<C> o = Sigmoid<C>(Load(sums.at(m, 4, 3)));
        const Vector<C> c = f * Load<C>(args.c_prev[row + m] + unit, n) + i * g;
        Store<C>(args.c[row + m] + unit, c, n);
        Store<C>(args.h[row + m] + unit, o * Tanh<C>(c), n);
        if (args.store_gates) {
          C* gates = args.gates[row + m] + unit;
          Store<C>(gates, i, n);
          Store<C>(gates + H, f, n);
          Store<C>(gates + 2 * H, g, n);
          Store<C>(gates + 3 * H, o, n);
        }
      }
    });
  });
}

template <class C>
void GruForward(const CellForwardArguments<C>& args) {
  const Panels<C>& panels = *args.panels;
  const int64_t H = args.H;
  ForEachPanel<C>(args, [&](int64_t p, int64_t following) {
    const int64_t unit = p * kVectorLength<C>, n = H - unit;
    const Vector<C> bias = Load<C>(args.recurrent_bias_n + unit, n);
    ForEachTile(args.rows, kTileRows[3], [&](int64_t row, int rows, int64_t tile) {
      TileSums<C> sums;  // r, u, hn
      for (int m = 0; m < rows; ++m) {
        const C* gates = args.gates[row + m] + unit;
        Store<C>(sums.at(m, 3, 0), Load<C>(gates + H, n));
        Store<C>(sums.at(m, 3, 1), Load<C>(gates + 2 * H, n));
        Store<C>(sums.at(m, 3, 2), bias);
      }
      Multiply<C>(panels, p, following, panels.K, rows, tile, {args.h_prev + row, nullptr, 0, 0},
                  &sums);
      for (int m = 0; m < rows; ++m) {
        C* gates = args.gates[row + m] + unit;
        const Vector<C> r = Sigmoid<C>(Load(sums.at(m, 3, 0)));
        const Vector<C> u = Sigmoid<C>(Load(sums.at(m, 3, 1)));
        const Vector<C> hn = Load(sums.at(m, 3, 2));
        const Vector<C> candidate = Tanh<C>(Load<C>(gates, n) + r * hn);
        const Vector<C> h_prev = Load<C>(args.h_prev[row + m] + unit, n);
        Store<C>(args.h[row + m] + unit, (h_prev - candidate) * u + candidate, n);
        if (args.store_gates) {
          Store<C>(gates, candidate, n);
          Store<C>(gates + H, r, n);
          Store<C>(gates + 2 * H, u, n);
          Store<C>(gates + 3 * H, hn, n);
        }
      }
    });
  });
}

// F: one of the activations below.
template <class C, class F>
void RnnForward(const CellForwardArguments<C>& args) {
  const Panels<C>& panels = *args.panels;
  ForEachPanel<C>(args, [&](int64_t p, int64_t following) {
    ForEachTile(args.rows, kTileRows[panels.vectors], [&](int64_t row, int rows, int64_t tile) {
      TileSums<C> sums;
      LoadSums<C>(panels, p, rows, args.gates + row, 1, &sums);
      Multiply<C>(panels, p, following, panels.K, rows, tile, {args.h_prev + row, nullptr, 0, 0},
                  &sums);
      for (int v = 0; v < panels.vectors; ++v) {
        const Span span = SpanOf(panels, p, v);
        if (span.elements <= 0) continue;
        for (int m = 0; m < rows; ++m) {
          Store<C>(args.h[row + m] + span.column, F::Apply(Load(sums.at(m, panels.vectors, v))),
                   span.elements);
        }
      }
    });
  });
}

// The activations of the plain cells, and their derivatives by the output y.
template <class C>
struct TanhActivation {
  static INLINE Vector<C> Apply(Vector<C> x) { return Tanh<C>(x); }
  static INLINE Vector<C> Gradient(Vector<C> y, Vector<C> dy) { return dy * (C(1) - y * y); }
};
template <class C>
struct ReluActivation {
  static INLINE Vector<C> Apply(Vector<C> x) { return Relu<C>(x); }
  static INLINE Vector<C> Gradient(Vector<C> y, Vector<C> dy) {
    return y > Vector<C>{} ? dy : Vector<C>{};
  }
};

// ---- backward ----

// dh of row m at `unit`: what comes from above plus what comes from the later step.
template <class C>
INLINE Vector<C> OutputGradient(const CellBackwardArguments<C>& args, int64_t m, int64_t unit,
                                int64_t n) {
  const Vector<C> carry = Load<C>(args.carry[m] + unit, n);
  return args.upstream ? carry + Load<C>(args.upstream[m] + unit, n) : carry;
}

template <class C>
void LstmBackward(const CellBackwardArguments<C>& args) {
  const int64_t H = args.H;
  for (int64_t m = 0; m < args.rows; ++m) {
    for (int64_t unit = 0; unit < H; unit += kVectorLength<C>) {
      const int64_t n = H - unit;
      const C* gates = args.gates[m] + unit;
      const Vector<C> i = Load<C>(gates, n), f = Load<C>(gates + H, n);
      const Vector<C> g = Load<C>(gates + 2 * H, n), o = Load<C>(gates + 3 * H, n);
      const Vector<C> tanh_c = Tanh<C>(Load<C>(args.c[m] + unit, n));
      const Vector<C> dh = OutputGradient(args, m, unit, n);
      const Vector<C> dc = dh * o * (C(1) - tanh_c * tanh_c) + Load<C>(args.dc[m] + unit, n);
      const Vector<C> di = dc * g * i * (C(1) - i);
      const Vector<C> df = dc * Load<C>(args.c_prev[m] + unit, n) * f * (C(1) - f);
      const Vector<C> dg = dc * i * (C(1) - g * g);
      const Vector<C> d_o = dh * tanh_c * o * (C(1) - o);
      Store<C>(args.dc[m] + unit, dc * f, n);
      C* dgates = args.dgates[m] + unit;
      Store<C>(dgates, di, n);
      Store<C>(dgates + H, df, n);
      Store<C>(dgates + 2 * H, dg, n);
      Store<C>(dgates + 3 * H, d_o, n);
      if (args.h_unprojected) Store<C>(args.h_unprojected[m] + unit, o * tanh_c, n);
    }
  }
}

template <class C>
void GruBackward(const CellBackwardArguments<C>& args) {
  const int64_t H = args.H;
  for (int64_t m = 0; m < args.rows; ++m) {
    for (int64_t unit = 0; unit < H; unit += kVectorLength<C>) {
      const int64_t n = H - unit;
      const C* gates = args.gates[m] + unit;
      const Vector<C> candidate = Load<C>(gates, n), r = Load<C>(gates + H, n);
      const Vector<C> u = Load<C>(gates + 2 * H, n), hn = Load<C>(gates + 3 * H, n);
      const Vector<C> dh = OutputGradient(args, m, unit, n);
      const Vector<C> h_prev = Load<C>(args.h_prev[m] + unit, n);
      const Vector<C> dn = dh * (C(1) - u) * (C(1) - candidate * candidate);
      const Vector<C> du = dh * (h_prev - candidate) * u * (C(1) - u);
      const Vector<C> dr = dn * hn * r * (C(1) - r);
      Store<C>(args.dh_prev[m] + unit, dh * u, n);
      C* dgates = args.dgates[m] + unit;
      Store<C>(dgates, dn, n);
      Store<C>(dgates + H, dr, n);
      Store<C>(dgates + 2 * H, du, n);
      Store<C>(dgates + 3 * H, dn * r, n);
    }
  }
}

template <class C, class F>
void RnnBackward(const CellBackwardArguments<C>& args) {
  for (int64_t m = 0; m < args.rows; ++m) {
    for (int64_t unit = 0; unit < args.H; unit += kVectorLength<C>) {
      const int64_t n = args.H - unit;
      const Vector<C> h = Load<C>(args.h[m] + unit, n);
      Store<C>(args.dgates[m] + unit, F::Gradient(h, OutputGradient(args, m, unit, n)), n);
    }
  }
}
