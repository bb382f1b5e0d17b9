#include "cc/cpu/pack.h"

#include <algorithm>

namespace tf_cudnn_rnn::cpu {

template <class C>
Panels<C> BookPanels(int64_t K, int64_t width, int gates, bool gated, int vector_length,
                     Arena* arena) {
  Panels<C> panels;
  panels.K = K;
  panels.width = width;
  panels.gated = gated;
  const int64_t blocks = (width + vector_length - 1) / vector_length;
  panels.vectors = gated ? gates : static_cast<int>(std::min<int64_t>(4, blocks));
  panels.count = gated ? blocks : (blocks + panels.vectors - 1) / panels.vectors;
  panels.data = arena->Take<C>(panels.count, panels.vectors * vector_length, K);
  return panels;
}

template <class C>
void PackTransposed(const C* const* source, int vector_length, int64_t panel_begin,
                    int64_t panel_end, Panels<C>* panels) {
  const int64_t K = panels->K, VL = vector_length, vectors = panels->vectors;
  for (int64_t p = panel_begin; p < panel_end; ++p) {
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t column = (panels->gated ? p : p * vectors + v) * VL;
      const C* from = source[panels->gated ? v : 0] + column * K;
      C* to = panels->data + p * panels->panel_elements(vector_length) + v * VL;
      const int64_t present = std::max<int64_t>(0, std::min(VL, panels->width - column));
      // 16 elements of a row at a time: one cache line of each of the VL rows, whose targets then
      // share lines too.
      for (int64_t k = 0; k < K; k += 16) {
        const int64_t end = std::min(K, k + 16);
        for (int64_t j = 0; j < present; ++j) {
          for (int64_t i = k; i < end; ++i) to[i * vectors * VL + j] = from[j * K + i];
        }
        for (int64_t i = k; i < end; ++i) {
          std::fill(to + i * vectors * VL + present, to + i * vectors * VL + VL, C(0));
        }
      }
    }
  }
}

template <class C>
void PackRows(const C* const* source, int64_t K, int vector_length, int64_t panel_begin,
              int64_t panel_end, Panels<C>* panels) {
  const int64_t width = static_cast<int64_t>(panels->vectors) * vector_length;
  for (int64_t p = panel_begin; p < panel_end; ++p) {
    const int64_t column = p * width;
    const int64_t present = std::min(width, panels->width - column);
    C* to = panels->data + p * panels->panel_elements(vector_length);
    for (int64_t k = 0; k < K; ++k, to += width) {
      std::copy_n(source[k] + column, present, to);
      std::fill(to + present, to + width, C(0));
    }
  }
}

// At least this many rows make a tile in all kernels.
constexpr int64_t kMostUnblockedRows = 3;

template <class C>
void BlockedProduct(const Kernels<C>& kernels, ProductArguments<C> args) {
  // 1024 rows of 4 vectors of 64 bytes: 256 KB, which stay in L2 while the rows of `a` pass; with
  // fewer, sums are loaded and stored more often (of 256 rows, 4 % of a product with K = 1024). Of
  // so few rows of `a` that they pass at once, a block would only break up the order of the panels.
  const int64_t block = args.rows <= kMostUnblockedRows ? args.panels->K : 1024;
  for (int64_t k = 0; k < args.panels->K; k += block) {
    args.k_begin = k;
    args.k_end = std::min(args.panels->K, k + block);
    kernels.product(args);
    args.accumulate = true;
  }
}

#define INSTANTIATE(C)                                                                 \
  template Panels<C> BookPanels(int64_t, int64_t, int, bool, int, Arena*);             \
  template void PackTransposed(const C* const*, int, int64_t, int64_t, Panels<C>*);    \
  template void PackRows(const C* const*, int64_t, int, int64_t, int64_t, Panels<C>*); \
  template void BlockedProduct(const Kernels<C>&, ProductArguments<C>);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tf_cudnn_rnn::cpu
