// The inner loops of the engine, as a table of functions: one table per instruction set and element
// type, built from one source (kernels_inl.h) by the files kernels_<isa>.cc and chosen once at run
// time (dispatch.cc).
//
// C is the type that is computed in: float (also for half and bfloat16 storage) or double. Letters:
// docs/rnn.md. Matrices are reached through arrays of row pointers, so that one kernel serves
// packed, time-major, batch-major, unsorted and reversed data without a copy.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_KERNELS_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_KERNELS_H_

#include <cstdint>

namespace tf_cudnn_rnn::cpu {

// A right-hand matrix [K, columns], repacked so that the kernels read it in order: panels of
// `vectors` vectors of VL = vector_length() columns. Panel p is [K, vectors, VL], the next follows
// it. Missing columns hold zeros.
//
// plain: vector v of panel p holds the columns (p·vectors + v)·VL … + VL−1.
// gated: the matrix is `vectors` gates of `width` columns each, and vector v of panel p holds the
// columns p·VL … + VL−1 of
//        gate v, so that all gates of a unit meet in one tile.
template <class C>
struct Panels {
  C* data = nullptr;
  int64_t K = 0;      // rows
  int64_t width = 0;  // plain: columns; gated: columns of one gate (units)
  int vectors = 1;    // 1 to 4
  bool gated = false;
  int64_t count = 0;  // panels

  int64_t panel_elements(int vector_length) const { return K * vectors * vector_length; }
};

// c[m][column] (+)= sum over k of A[m, k] · panels[k][column], for `rows` rows m. Sums run over k
// in ascending order with one accumulator per element, whatever the tiling, so results do not
// depend on how rows are divided.
template <class C>
struct ProductArguments {
  int64_t rows = 0;
  // A, either by rows: A[m, k] = a[m][k], or by columns: A[m, k] = columns[k · column_stride + m].
  const C* const* a = nullptr;
  const C* columns = nullptr;
  int64_t column_stride = 0;
  int64_t k_begin = 0;  // the rows of the panels that take part: k_begin … k_end−1
  int64_t k_end = 0;
  const Panels<C>* panels = nullptr;
  int64_t panel_begin = 0, panel_end = 0;
  bool backwards = false;  // the last panel first, see CellForwardArguments
  C* const* c = nullptr;   // [rows] pointers; gated: vector v goes to columns v·width + …
  const C* bias =
      nullptr;  // start from this (laid out as one row of c) if not accumulating; null: from zero
  bool accumulate = false;  // start from c
};

// c[m][j] += sum over k of a[m][k] · w[j · K + k] for j in [begin, end): the product with a
// row-major matrix [·, K] as it is, for so few rows that packing would take longer.
template <class C>
struct DotArguments {
  int rows = 0;  // 1 … kMostDotRows
  const C* const* a = nullptr;
  int64_t K = 0;
  const C* w = nullptr;
  int64_t begin = 0, end = 0;
  C* const* c = nullptr;
};
constexpr int kMostDotRows = 4;

// One time step of the recurrent part for `rows` rows: pre-activations (input product, biases) +
// recurrent product → activations → new state. Every pointer array has `rows` entries.
template <class C>
struct CellForwardArguments {
  int64_t rows = 0;
  int64_t H = 0;
  const Panels<C>* panels =
      nullptr;  // recurrent matrices: gated for lstm and gru, plain for rnn_*; K = R
  int64_t panel_begin = 0, panel_end = 0;
  // The last panel first. Every second time step goes this way: of weights that do not fit into the
  // cache it then finds those that the step before read last, where going the same way all the time
  // finds none.
  bool backwards = false;
  const C* const* h_prev = nullptr;  // to R elements
  // lstm: to i, f, g, o, H each; gru: to n, r, u, hn, H each (the gates of the recurrent panels: r,
  // u, hn); rnn_*: to H. In: pre-activations without the recurrent product (hn: not read). Out, if
  // `store_gates`: activations, and hn = Rn h + bRn.
  C* const* gates = nullptr;
  bool store_gates = false;
  const C* const* c_prev = nullptr;  // lstm: to H elements
  C* const* c = nullptr;             // lstm: to H elements; may be the same rows as c_prev
  C* const* h =
      nullptr;  // lstm without projection, gru, rnn_*: new state; with projection: h before it
  const C* recurrent_bias_n = nullptr;  // gru: bRn, [H]
};

// The elementwise part of one backward time step. In: dh = upstream[m] + carry[m] per row. Out:
// gradients of the pre-activations, written over or beside the activations.
template <class C>
struct CellBackwardArguments {
  int64_t rows = 0;
  int64_t H = 0;
  const C* const* upstream = nullptr;  // gradient of this step's output from above; null: none
  const C* const* carry = nullptr;     // gradient of this step's state from the later step
  const C* const* gates = nullptr;     // activations, as CellForwardArguments::gates; rnn_*: unused
  C* const* dgates = nullptr;   // gradients in the same order; may be the same rows as gates.
                                // gru: n and r, u of the input side, hn: n of the recurrent side
  const C* const* c = nullptr;  // lstm
  const C* const* c_prev = nullptr;  // lstm
  C* const* dc = nullptr;            // lstm: carry of the cell state, replaced
  const C* const* h = nullptr;       // rnn_*: this step's output
  const C* const* h_prev = nullptr;  // gru
  C* const* dh_prev = nullptr;  // gru: receives u · dh, the direct part of the state's gradient
  C* const* h_unprojected =
      nullptr;  // lstm with projection: receives o · tanh(c); may be the same rows as c
};

template <class C>
struct Kernels {
  const char* name;   // of the instruction set
  int vector_length;  // VL, elements of C in a vector
  void (*product)(const ProductArguments<C>&);
  void (*dot)(const DotArguments<C>&);
  void (*lstm_forward)(const CellForwardArguments<C>&);
  void (*gru_forward)(const CellForwardArguments<C>&);
  void (*rnn_tanh_forward)(const CellForwardArguments<C>&);
  void (*rnn_relu_forward)(const CellForwardArguments<C>&);
  void (*lstm_backward)(const CellBackwardArguments<C>&);
  void (*gru_backward)(const CellBackwardArguments<C>&);
  void (*rnn_tanh_backward)(const CellBackwardArguments<C>&);
  void (*rnn_relu_backward)(const CellBackwardArguments<C>&);
  // y[i] = f(x[i]), the activations as the cells use them; for tests of their accuracy.
  void (*sigmoid)(const C* x, C* y, int64_t n);
  void (*tanh)(const C* x, C* y, int64_t n);
};

// The table of this machine's best instruction set, or of the lesser one named by TF_CUDNN_RNN_ISA.
template <class C>
const Kernels<C>& BestKernels();

// The table of the instruction set `name`, or null where it is not built or the machine lacks it.
template <class C>
const Kernels<C>* KernelsNamed(const char* name);

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_KERNELS_H_
