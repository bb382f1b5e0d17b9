// The matrix product on panels. Included by kernels_<isa>.cc only, after vector_inl.h.
//
// Work goes tile by tile: some rows × one panel. The sums of a tile start in a buffer in L1, are
// accumulated in registers and return to the buffer; what fills and what empties the buffer
// (Product below, the cells in cells_inl.h) is then compiled once, not once per tile height, for
// about 3 % of a tile's time at K = 128.

// Rows of a tile: as many as keep rows · vectors sums, a panel row and a broadcast in registers.
constexpr int kTileRows[] = {0, 8, VECTOR_REGISTERS == 32 ? 12 : 6, VECTOR_REGISTERS == 32 ? 8 : 4,
                             VECTOR_REGISTERS == 32 ? 6 : 3};
constexpr int kMostTileRows = 12;

// The sums of a tile, [rows, vectors, VL].
template <class C>
struct alignas(64) TileSums {
  C values[kMostTileRows * 4 * kVectorLength<C>];

  C* at(int row, int vectors, int v) { return values + (row * vectors + v) * kVectorLength<C>; }
};

// The left-hand rows of a tile, from column k_begin on.
template <class C>
struct TileRows {
  const C* const* rows;  // row m begins at rows[m]; or null, and
  const C* columns;      // element k of row m is columns[k * column_stride + m]
  int64_t column_stride;
  int64_t k_begin;
};

// sums[m][v] += A[m, k] · panel[k][v] for k in [0, K), in this order. With `fetch`, fetches K cache
// lines from `next` on into L2 on the way: with panels that come from L3, the following one then
// arrives while this one is computed (17 % of the time of a step with H = 512 and 32 rows). Where
// it does not, a fetch is one more load among ten: up to 13 % where loads are what is short.
template <class C, int rows, int vectors, bool by_columns, bool fetch>
void MultiplyTile(const TileRows<C>& a, int64_t K, const C* panel, const C* next, C* sums) {
  constexpr int VL = kVectorLength<C>;
  const C* row[rows];
  Vector<C> sum[rows][vectors];
  UNROLL
  for (int m = 0; m < rows; ++m) {
    row[m] = by_columns ? a.columns : a.rows[m] + a.k_begin;
    UNROLL
    for (int v = 0; v < vectors; ++v) sum[m][v] = Load(sums + (m * vectors + v) * VL);
  }
  const C* column = a.columns + a.k_begin * a.column_stride;
  for (int64_t k = 0; k < K; ++k) {
    if (fetch) __builtin_prefetch(next + k * (64 / sizeof(C)), 0, 2);
    Vector<C> b[vectors];
    UNROLL
    for (int v = 0; v < vectors; ++v) b[v] = Load(panel + v * VL);
    UNROLL
    for (int m = 0; m < rows; ++m) {
      const Vector<C> x = Broadcast(by_columns ? column[m] : row[m][k]);
      UNROLL
      for (int v = 0; v < vectors; ++v) sum[m][v] += x * b[v];
    }
    panel += vectors * VL;
    if (by_columns) column += a.column_stride;
  }
  UNROLL
  for (int m = 0; m < rows; ++m) {
    UNROLL
    for (int v = 0; v < vectors; ++v) Store(sums + (m * vectors + v) * VL, sum[m][v]);
  }
}

// MultiplyTile for `height` rows, 1 … kTileRows[vectors], known only at run time.
template <class C, int vectors, bool by_columns, bool fetch, int rows = kTileRows[vectors]>
INLINE void MultiplyRows(int height, const TileRows<C>& a, int64_t K, const C* panel, const C* next,
                         C* sums) {
  if constexpr (rows > 1) {
    if (height < rows) {
      return MultiplyRows<C, vectors, by_columns, fetch, rows - 1>(height, a, K, panel, next, sums);
    }
  }
  MultiplyTile<C, rows, vectors, by_columns, fetch>(a, K, panel, next, sums);
}

// Panels of that many bytes stay in L2 from one time step to the next.
constexpr int64_t kPanelBytesInL2 = 1 << 18;

// Calls f(p, following) for the panels of a kernel's arguments. `following` is the panel to be
// fetched meanwhile: the one after p, or p itself where there is none that would not be in L2.
template <class C, class Arguments, class F>
INLINE void ForEachPanel(const Arguments& args, F f) {
  const Panels<C>& panels = *args.panels;
  const int64_t count = args.panel_end - args.panel_begin, last = count - 1;
  const bool in_l2 = count * panels.K * panels.vectors * VECTOR_BYTES <= kPanelBytesInL2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t following = in_l2 || i == last ? i : i + 1;
    if (args.backwards) {
      f(args.panel_begin + last - i, args.panel_begin + last - following);
    } else {
      f(args.panel_begin + i, args.panel_begin + following);
    }
  }
}

// MultiplyRows for `vectors`, 1 … 4, known only at run time.
template <class C, bool by_columns, bool fetch>
void MultiplyPanel(int vectors, int height, const TileRows<C>& a, int64_t K, const C* panel,
                   const C* next, C* sums) {
  switch (vectors) {
    case 1:
      return MultiplyRows<C, 1, by_columns, fetch>(height, a, K, panel, next, sums);
    case 2:
      return MultiplyRows<C, 2, by_columns, fetch>(height, a, K, panel, next, sums);
    case 3:
      return MultiplyRows<C, 3, by_columns, fetch>(height, a, K, panel, next, sums);
    default:
      return MultiplyRows<C, 4, by_columns, fetch>(height, a, K, panel, next, sums);
  }
}

// Adds the tile's rows × rows a.k_begin … k_end−1 of panel p to the sums. The first tiles of a
// panel fetch panel `following`, `tile` being their number; not with a left-hand side by columns:
// that is of sums over all steps, whose panels are in L2.
template <class C, bool by_columns = false>
void Multiply(const Panels<C>& panels, int64_t p, int64_t following, int64_t k_end, int rows,
              int64_t tile, const TileRows<C>& a, TileSums<C>* sums) {
  const int64_t width = panels.vectors * kVectorLength<C>, K = k_end - a.k_begin;
  const C* panel = panels.data + (p * panels.K + a.k_begin) * width;
  if constexpr (!by_columns) {
    if (following != p && tile < panels.vectors) {
      const C* next =
          panels.data + (following * panels.K + a.k_begin) * width + tile * K * (64 / sizeof(C));
      return MultiplyPanel<C, false, true>(panels.vectors, rows, a, K, panel, next, sums->values);
    }
  }
  MultiplyPanel<C, by_columns, false>(panels.vectors, rows, a, K, panel, nullptr, sums->values);
}

// Divides `rows` into tiles of nearly equal height, at most `most`: 16 = 6 + 5 + 5 keeps the units
// busier than 6 + 6 + 4, and what a tile computes does not depend on its height.
template <class F>
INLINE void ForEachTile(int64_t rows, int64_t most, F f) {
  const int64_t tiles = (rows + most - 1) / most;
  int64_t row = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t end = rows * (i + 1) / tiles;
    f(row, static_cast<int>(end - row), i);
    row = end;
  }
}

// Where vector v of panel p lies in a row of the result, and how many of its elements exist.
struct Span {
  int64_t column;
  int64_t elements;
};
template <class C>
INLINE Span SpanOf(const Panels<C>& panels, int64_t p, int v) {
  constexpr int VL = kVectorLength<C>;
  if (panels.gated) {
    const int64_t unit = p * VL;
    return {v * panels.width + unit, panels.width - unit};
  }
  const int64_t column = (p * panels.vectors + v) * VL;
  return {column, panels.width - column};
}

// Fills the sums of a tile from rows of the same layout; with step 0 every row from the same one.
template <class C>
INLINE void LoadSums(const Panels<C>& panels, int64_t p, int rows, const C* const* from, int step,
                     TileSums<C>* sums) {
  for (int v = 0; v < panels.vectors; ++v) {
    const Span span = SpanOf(panels, p, v);
    for (int m = 0; m < rows; ++m) {
      Store<C>(
          sums->at(m, panels.vectors, v),
          span.elements > 0 ? Load<C>(from[m * step] + span.column, span.elements) : Vector<C>{});
    }
  }
}

// Fetches into L1, for writing, what the tile of the rows from `row` on is about to load: lines far
// apart, which the hardware does not foresee.
template <class C>
INLINE void FetchSums(const ProductArguments<C>& args, int64_t p, int64_t row, int rows) {
  const int64_t end = row + rows < args.rows ? row + rows : args.rows;
  for (int v = 0; v < args.panels->vectors; ++v) {
    const int64_t column = SpanOf(*args.panels, p, v).column;
    for (int64_t m = row; m < end; ++m) __builtin_prefetch(args.c[m] + column, 1, 3);
  }
}

template <class C>
void Product(const ProductArguments<C>& args) {
  const Panels<C>& panels = *args.panels;
  ForEachPanel<C>(args, [&](int64_t p, int64_t following) {
    ForEachTile(args.rows, kTileRows[panels.vectors], [&](int64_t row, int rows, int64_t tile) {
      TileSums<C> sums;
      if (args.accumulate) {
        LoadSums(panels, p, rows, args.c + row, 1, &sums);
        FetchSums(args, p, row + rows, rows);
      } else if (args.bias) {
        LoadSums(panels, p, rows, &args.bias, 0, &sums);
      } else {
        __builtin_memset(sums.values, 0, sizeof(C) * rows * panels.vectors * kVectorLength<C>);
      }
      if (args.columns) {
        Multiply<C, true>(panels, p, following, args.k_end, rows, tile,
                          {nullptr, args.columns + row, args.column_stride, args.k_begin}, &sums);
      } else {
        Multiply<C>(panels, p, following, args.k_end, rows, tile,
                    {args.a + row, nullptr, 0, args.k_begin}, &sums);
      }
      for (int v = 0; v < panels.vectors; ++v) {
        const Span span = SpanOf(panels, p, v);
        if (span.elements <= 0) continue;
        for (int m = 0; m < rows; ++m) {
          Store<C>(args.c[row + m] + span.column, Load(sums.at(m, panels.vectors, v)),
                   span.elements);
        }
      }
    });
  });
}

template <class C>
INLINE C SumOf(Vector<C> x) {
  C part[kVectorLength<C>];
  Store(part, x);
  UNROLL
  for (int half = kVectorLength<C> / 2; half > 0; half /= 2) {
    UNROLL
    for (int i = 0; i < half; ++i) part[i] += part[i + half];
  }
  return part[0];
}

template <class C, int rows>
void DotTile(const DotArguments<C>& args) {
  constexpr int VL = kVectorLength<C>, kColumns = 4;
  for (int64_t j = args.begin; j < args.end; j += kColumns) {
    const C* w[kColumns];
    // A column beyond the end repeats the last one.
    for (int i = 0; i < kColumns; ++i) {
      w[i] = args.w + (j + i < args.end ? j + i : args.end - 1) * args.K;
    }
    Vector<C> sum[rows][kColumns] = {};
    for (int64_t k = 0; k < args.K; k += VL) {
      const int64_t n = args.K - k;
      UNROLL
      for (int i = 0; i < kColumns; ++i) {
        const Vector<C> column = Load<C>(w[i] + k, n);
        UNROLL
        for (int m = 0; m < rows; ++m) sum[m][i] += Load<C>(args.a[m] + k, n) * column;
      }
    }
    UNROLL
    for (int m = 0; m < rows; ++m) {
      UNROLL
      for (int i = 0; i < kColumns; ++i) {
        if (j + i < args.end) args.c[m][j + i] += SumOf<C>(sum[m][i]);
      }
    }
  }
}

template <class C>
void Dot(const DotArguments<C>& args) {
  switch (args.rows) {
    case 1:
      return DotTile<C, 1>(args);
    case 2:
      return DotTile<C, 2>(args);
    case 3:
      return DotTile<C, 3>(args);
    default:
      return DotTile<C, 4>(args);
  }
}
