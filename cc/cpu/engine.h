// The engine: recurrent networks of any depth on host memory, in float or double.
//
// A call runs plan → grid → product → cell. The Plan holds everything that follows from shapes and
// lengths; the grid walks layers, directions and time; products and cells are the kernels of
// kernels.h. Formulas: docs/rnn.md.
//
// Division of work. Rows never meet in the recurrence, so a task takes a direction of a layer for a
// share of the rows through all time steps without waiting for anybody. Sums run in an order that
// does not depend on the division, so results are the same, bit for bit, for every number of
// threads.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_ENGINE_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_ENGINE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "cc/cpu/arena.h"
#include "cc/cpu/dropout.h"
#include "cc/cpu/kernels.h"
#include "cc/cpu/parallel.h"
#include "cc/cpu/sequences.h"
#include "cc/cudnn/cudnn_rnn_api.h"
#include "cc/cudnn/weight_layout.h"

namespace tf_cudnn_rnn::cpu {

struct Plan {
  Plan(cudnnRNNMode_t mode, const RnnDims& dims, const std::vector<int>& lengths)
      : mode(mode), dims(dims), layout(dims), sequences(lengths) {}

  cudnnRNNMode_t mode;
  RnnDims dims;
  WeightLayout layout;
  Sequences sequences;
  bool training = false;
  // Whether tensors are stored in the type that is computed in. If not, the last layer's output
  // needs a buffer too.
  bool stored_as_computed = true;
  bool reserve_read_only = false;
  bool dropout = false;  // between layers, in this call
  int threads = 1;
  double least_task = 1;  // see Parallel

  int64_t B() const { return sequences.rows(); }
  int64_t N() const { return sequences.valid_steps(); }
  bool is_rnn() const { return mode == CUDNN_RNN_RELU || mode == CUDNN_RNN_TANH; }
  bool is_lstm() const { return mode == CUDNN_LSTM; }
  bool is_gru() const { return mode == CUDNN_GRU; }
  // Width of a row of gates: lstm i, f, g, o; gru n, r, u, hn; rnn_* the one gate; H each.
  int64_t gate_width() const { return (is_rnn() ? 1 : 4) * dims.H; }
  int64_t output_width() const { return dims.D * dims.R; }
  // The layer's output lies in a buffer of the engine, not in the caller's y.
  bool BuffersOutput(int layer) const { return layer < dims.L - 1 || !stored_as_computed; }
  // The matrix of internal gate g among the canonical ones: gru keeps n first, so that the gates
  // which the input product (n, r, u) and the recurrent product (r, u, hn) need lie side by side.
  int canonical_gate(int g) const { return is_gru() ? (g + 2) % 3 : g; }
  // So few steps that the weights are read as they are: packing them reads and writes them more
  // often than the steps do.
  bool is_short() const { return sequences.steps() <= 2 && B() <= kMostDotRows; }
  // Floating-point operations of the products of one direction of a layer, forward.
  double Work(int layer) const {
    return 2.0 * N() * dims.G * dims.H * (dims.input_width(layer) + dims.R);
  }
  // Into how many tasks that many operations are worth dividing.
  int TasksFor(double operations) const {
    const double worth = operations / least_task;
    return worth < 2 ? 1 : worth < threads ? static_cast<int>(worth) : threads;
  }
};

// What a training forward keeps for the backward calls. Packed by valid step; one entry of a vector
// per pseudo-layer, or per layer for the outputs.
template <class C>
struct Reserve {
  std::vector<C*>
      gates;  // [N, gate_width] activations; not for rnn_*, unless it must receive gradients
  std::vector<C*> c;        // lstm: [N, H]
  std::vector<C*> dh;       // lstm with projection, if gradients go here: [N, R], see Gradients
  std::vector<C*> outputs;  // [N, D·R]; null for the last layer if y serves

  void Book(const Plan& plan, Arena* arena);
};

// What BackwardData leaves for BackwardWeights. In the reserve space the gradients take the place
// of the activations; where that must stay as it is, they lie in the work space.
template <class C>
struct Gradients {
  std::vector<C*> gates;          // [N, gate_width]: of the pre-activations
  std::vector<C*> dh;             // lstm with projection: [N, R], of the projected state
  std::vector<C*> h_unprojected;  // lstm with projection: [N, H], o · tanh(c)

  void Book(const Plan& plan, const Reserve<C>& reserve, Arena* work);
};

// The caller's tensors, already in type C. Row pointers may be null where cuDNN allows it.
template <class C>
struct States {
  const C* h = nullptr;  // [L·D, B, R]; null: zeros
  const C* c = nullptr;  // [L·D, B, H]; null: zeros
};

template <class C>
struct Context {
  const Plan& plan;
  const Kernels<C>& kernels;
  const Parallel& parallel;
  DropoutMask mask;

  // The tasks 0 … count − 1; on the caller's thread if they do not have operations enough for two.
  void Run(int count, double operations, const std::function<void(int)>& task) const {
    if (plan.TasksFor(operations) > 1) return parallel.Run(count, task);
    for (int i = 0; i < count; ++i) task(i);
  }
};

template <class C>
struct ForwardData {
  StepRows<const C> x;
  StepRows<C> y;  // only where !plan.BuffersOutput(L − 1)
  States<C> initial;
  C* hy = nullptr;  // [L·D, B, R] or null
  C* cy = nullptr;  // [L·D, B, H] or null
  const C* weights = nullptr;
  Reserve<C> reserve;  // booked, if plan.training
};

template <class C>
struct BackwardDataData {
  StepRows<const C> y;  // only where !plan.BuffersOutput(L − 1)
  StepRows<const C> dy;
  StepRows<C> dx;
  States<C> initial;
  States<C> final_gradient;  // dhy, dcy
  C* dhx = nullptr;          // [L·D, B, R] or null
  C* dcx = nullptr;          // [L·D, B, H] or null
  const C* weights = nullptr;
  Reserve<C> reserve;
  Gradients<C> gradients;
};

template <class C>
struct BackwardWeightsData {
  StepRows<const C> x;
  StepRows<const C> y;  // only where !plan.BuffersOutput(L − 1)
  States<C> initial;    // h only
  Reserve<C> reserve;
  Gradients<C> gradients;
  C* dweights = nullptr;  // added to
};

// Each takes its scratch from `work`; with a null-based arena it only books it and computes
// nothing. Forward returns where the last layer's output rows are, which the caller converts if
// they are not y itself.
template <class C>
StepRows<C> Forward(const Context<C>& context, const ForwardData<C>& data, Arena* work);
template <class C>
void BackwardData(const Context<C>& context, const BackwardDataData<C>& data, Arena* work);
template <class C>
void BackwardWeights(const Context<C>& context, const BackwardWeightsData<C>& data, Arena* work);

// to = from · the dropout mask of layer `layer`'s input, for all valid steps; both [N, D·R],
// packed, and may be the same.
template <class C>
void DropSteps(const Context<C>& context, int layer, const C* from, C* to);

// How a direction of a layer is divided among threads: its rows into shares, and the units of a
// share among the members of a team (team.h).
struct Division {
  int shares = 1;
  int members = 1;
};
template <class C>
Division Divide(const Plan& plan, int layer);

// Shares of the ranks [0, B), contiguous and with nearly the same number of valid steps each:
// `shares` + 1 limits.
std::vector<int> ShareRows(const Sequences& sequences, int shares);

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_ENGINE_H_
