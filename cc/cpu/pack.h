// Builds the panels that the products read (kernels.h), and products in cache-sized blocks.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_PACK_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_PACK_H_

#include <cstdint>

#include "cc/cpu/arena.h"
#include "cc/cpu/kernels.h"
#include "cc/cpu/parallel.h"

namespace tf_cudnn_rnn::cpu {

// Takes the memory for panels of K rows and `width` columns; gated: `gates` gates of `width`
// columns, else 1.
template <class C>
Panels<C> BookPanels(int64_t K, int64_t width, int gates, bool gated, int vector_length,
                     Arena* arena);

// Packs the transpose of `gates` row-major matrices [width, K], of which gate g begins at
// source[g]: column j of gate g is row j of source[g]. Fills panels [panel_begin, panel_end).
template <class C>
void PackTransposed(const C* const* source, int vector_length, int64_t panel_begin,
                    int64_t panel_end, Panels<C>* panels);

// Packs rows of `width` elements as they are: row k of the panels (plain) is source[k], for k in
// [0, K).
template <class C>
void PackRows(const C* const* source, int64_t K, int vector_length, int64_t panel_begin,
              int64_t panel_end, Panels<C>* panels);

// The product over all rows of the panels, in blocks of them that stay in the cache. Sets k_begin
// and k_end.
template <class C>
void BlockedProduct(const Kernels<C>& kernels, ProductArguments<C> args);

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_PACK_H_
