// Where each weight matrix and bias vector lies in an RNN's weight space ("params"): all matrices
// of all pseudo-layers, then all biases of all pseudo-layers, dense, in cuDNN's canonical order.
// docs/params_layout.md has the picture. Both the CPU engine and cc/rnn take their offsets from
// here.
#ifndef TF_CUDNN_RNN_OPS_CC_CUDNN_WEIGHT_LAYOUT_H_
#define TF_CUDNN_RNN_OPS_CC_CUDNN_WEIGHT_LAYOUT_H_

#include <cstdint>

namespace tf_cudnn_rnn {

// What decides the layout. The letters are those of docs/rnn.md.
struct RnnDims {
  int G = 0;      // gates: 1 rnn_relu, rnn_tanh; 3 gru; 4 lstm
  int L = 0;      // layers
  int D = 0;      // directions
  int64_t I = 0;  // width of the input
  int64_t H = 0;  // width of the cell state
  int64_t R = 0;  // width of the output and recurrent state; less than H with a projection, else H
  bool skip_input = false;  // layer 0 has no input matrices

  int pseudo_layers() const { return L * D; }
  bool projects() const { return R < H; }
  // Matrices of a pseudo-layer: G input, G recurrent, and the projection where there is one. It has
  // 2 G biases.
  int matrices() const { return 2 * G + (projects() ? 1 : 0); }
  // W_in: columns of the input matrices of layer l.
  int64_t input_width(int l) const { return l > 0 ? D * R : skip_input ? 0 : I; }
};

// A part of the weight space: `rows` x `columns` elements, row-major, from element `offset` on.
struct WeightPiece {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

class WeightLayout {
 public:
  // All of G, L, D, I, H, R at least 1 and R ≤ H; then Overflows() tells whether the offsets fit in
  // int64 and the number of pseudo-layers in int.
  explicit WeightLayout(const RnnDims& dims) : dims_(dims) {
    const __int128 H = dims.H, R = dims.R, G = dims.G;
    const __int128 common = G * H * R + (dims.projects() ? R * H : 0);
    const __int128 first = G * H * dims.input_width(0) + common;
    const __int128 later = G * H * R * dims.D + common;
    const __int128 limit = INT64_MAX;
    if (int64_t{dims.L} * dims.D > INT32_MAX) return;
    // Products of three factors below 2^31 fit in 128 bits; checking the parts first keeps the sums
    // in range too.
    if (first > limit || later > limit) return;
    const __int128 weights = dims.D * (first + (dims.L - 1) * later);
    const __int128 total = weights + __int128{2} * dims.L * dims.D * G * H;
    if (weights > limit || total > limit) return;
    overflows_ = false;
    first_ = static_cast<int64_t>(first);
    later_ = static_cast<int64_t>(later);
    biases_ = static_cast<int64_t>(weights);
    size_ = static_cast<int64_t>(total);
  }

  const RnnDims& dims() const { return dims_; }
  bool Overflows() const { return overflows_; }

  // Elements of the whole space.
  int64_t size() const { return size_; }

  // Matrix `id` of pseudo-layer p = D·layer + direction: ids 0 … G−1 input, G … 2G−1 recurrent, 2G
  // projection (0 ≤ id < matrices()). Shapes [H, W_in], [H, R], [R, H]. Columns are 0 for the
  // absent input matrices of skip_input.
  WeightPiece Matrix(int p, int id) const {
    const int64_t layer = p / dims_.D, G = dims_.G;
    const int64_t width = dims_.input_width(static_cast<int>(layer));
    const int64_t base = layer == 0 ? p * first_ : dims_.D * first_ + (p - dims_.D) * later_;
    if (id < G) return {base + id * dims_.H * width, dims_.H, width};
    const int64_t recurrent = base + G * dims_.H * width;
    if (id < 2 * G) return {recurrent + (id - G) * dims_.H * dims_.R, dims_.H, dims_.R};
    return {recurrent + G * dims_.H * dims_.R, dims_.R, dims_.H};
  }

  // Bias `id` of pseudo-layer p, [H]: ids 0 … G−1 with the input matrices, G … 2G−1 with the
  // recurrent ones.
  WeightPiece Bias(int p, int id) const {
    return {biases_ + (int64_t{2} * p * dims_.G + id) * dims_.H, dims_.H, 1};
  }

 private:
  RnnDims dims_;
  bool overflows_ = true;
  int64_t first_ = 0,
          later_ = 0;   // elements of the matrices of one pseudo-layer in layer 0, in later layers
  int64_t biases_ = 0;  // where the biases begin
  int64_t size_ = 0;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_CUDNN_WEIGHT_LAYOUT_H_
