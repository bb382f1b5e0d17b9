// Backward, weights: sums over all valid steps of (gradient of the gates) ⊗ (what was multiplied),
// as products in which the steps are the inner dimension. Each task owns some rows of every matrix.
#include <algorithm>

#include "cc/cpu/engine.h"
#include "cc/cpu/pack.h"

namespace tf_cudnn_rnn::cpu {
namespace {

constexpr int64_t kSteps = 256;  // inner dimension of a block
constexpr int64_t kRows = 96;    // rows of the matrix in a block: 96 · 256 floats are 96 KB
constexpr int64_t kColumns =
    512;  // columns in a block: 512 · 256 floats are 512 KB, half of a usual L2

// dmatrix += sum over steps of left(step)ᵀ · right(step), and dbias += sum of left(step).
template <class C>
struct WeightSum {
  StepRows<const C> left;  // M wide
  StepRows<const C>
      right;          // width wide; for recurrent matrices the output of this layer, see `previous`
  int64_t width = 0;  // 0: only the bias
  // Recurrent matrices: `right` belongs to the step before, in this direction; the first one reads
  // initial(rank).
  bool previous = false;
  int direction = 0;
  const C* initial = nullptr;  // [B, width], null: zeros
  int64_t right_column = 0;    // where in a row of `right` the direction's part begins
  int64_t M = 0;               // rows of the matrices, G·H or R
  int64_t rows_per_gate = 0;   // H or R
  C* dmatrix[4] = {};          // of each gate in the order of `left`
  C* dbias[4] = {};            // null: none
};

template <class C>
struct TaskScratch {
  Panels<C> right;                 // [kSteps, kColumns]
  C* left = nullptr;               // [kRows, kSteps]
  const C** left_rows = nullptr;   // kSteps
  const C** right_rows = nullptr;  // kSteps
  C** c = nullptr;                 // kRows

  void Book(const Plan& plan, int vector_length, Arena* arena) {
    const int64_t steps = std::min(kSteps, plan.N());
    const int64_t widest = std::max({plan.dims.I, plan.output_width(), plan.dims.H});
    right = BookPanels<C>(steps, std::min(kColumns, widest), 1, false, vector_length, arena);
    left = arena->Take<C>(steps, kRows);
    left_rows = arena->Take<const C*>(steps);
    right_rows = arena->Take<const C*>(steps);
    c = arena->Take<C*>(kRows);
  }
};

template <class C>
class WeightSums {
 public:
  WeightSums(const Context<C>& context, const C* zeros)
      : context_(context), plan_(context.plan), zeros_(zeros) {}

  // Rows [begin, end) of the sum's matrix.
  void Add(const WeightSum<C>& sum, int64_t begin, int64_t end, const TaskScratch<C>& scratch) {
    for (int64_t step = 0; step < plan_.N(); step += kSteps) {
      if (context_.parallel.Cancelled()) return;
      const int64_t steps = std::min(kSteps, plan_.N() - step);
      FindRows(sum, step, steps, scratch);
      int64_t column = 0;
      do {  // at least once, for the bias
        const int64_t columns = std::min(kColumns, sum.width - column);
        Panels<C> right = scratch.right;
        if (columns > 0) PackRight(columns, steps, scratch, &right);
        for (int64_t row = begin; row < end; row += kRows) {
          const int64_t rows = std::min(kRows, end - row);
          PackLeft(sum, row, rows, steps, column == 0, scratch);
          if (columns == 0) continue;
          for (int64_t m = 0; m < rows; ++m) {
            scratch.c[m] = sum.dmatrix[(row + m) / sum.rows_per_gate] +
                           (row + m) % sum.rows_per_gate * sum.width + column;
          }
          ProductArguments<C> product;
          product.rows = rows;
          product.columns = scratch.left;
          product.column_stride = kRows;
          product.k_end = steps;
          product.panels = &right;
          product.panel_end = right.count;
          product.c = scratch.c;
          product.accumulate = true;
          context_.kernels.product(product);
        }
        for (int64_t k = 0; k < steps; ++k) scratch.right_rows[k] += std::max<int64_t>(columns, 0);
        column += columns;
      } while (column < sum.width);
    }
  }

 private:
  void FindRows(const WeightSum<C>& sum, int64_t step, int64_t steps,
                const TaskScratch<C>& scratch) const {
    const Sequences& sequences = plan_.sequences;
    int t = sequences.TimeOf(step);
    for (int64_t k = 0; k < steps; ++k) {
      while (step + k >= sequences.offset(t + 1)) ++t;
      const int rank = static_cast<int>(step + k - sequences.offset(t));
      scratch.left_rows[k] = sum.left.at(t, rank);
      if (sum.width == 0) continue;
      if (!sum.previous) {
        scratch.right_rows[k] = sum.right.at(t, rank) + sum.right_column;
        continue;
      }
      const bool is_first = sum.direction == 0 ? t == 0 : t == sequences.length(rank) - 1;
      const C* initial = sum.initial ? sum.initial + sequences.row(rank) * sum.width : zeros_;
      scratch.right_rows[k] =
          is_first ? initial
                   : sum.right.at(sum.direction == 0 ? t - 1 : t + 1, rank) + sum.right_column;
    }
  }

  void PackRight(int64_t columns, int64_t steps, const TaskScratch<C>& scratch,
                 Panels<C>* right) const {
    const int VL = context_.kernels.vector_length;
    const int64_t blocks = (columns + VL - 1) / VL;
    right->K = steps;
    right->width = columns;
    right->vectors = static_cast<int>(std::min<int64_t>(4, blocks));
    right->count = (blocks + right->vectors - 1) / right->vectors;
    PackRows(scratch.right_rows, steps, VL, 0, right->count, right);
  }

  // Gathers columns [row, row + rows) of the left rows, and adds their sums to the bias.
  void PackLeft(const WeightSum<C>& sum, int64_t row, int64_t rows, int64_t steps, bool add_bias,
                const TaskScratch<C>& scratch) const {
    for (int64_t k = 0; k < steps; ++k) {
      std::copy_n(scratch.left_rows[k] + row, rows, scratch.left + k * kRows);
    }
    if (!add_bias || !sum.dbias[0]) return;
    C totals[kRows] = {};
    for (int64_t k = 0; k < steps; ++k) {
      for (int64_t m = 0; m < rows; ++m) totals[m] += scratch.left[k * kRows + m];
    }
    for (int64_t m = 0; m < rows; ++m) {
      sum.dbias[(row + m) / sum.rows_per_gate][(row + m) % sum.rows_per_gate] += totals[m];
    }
  }

  const Context<C>& context_;
  const Plan& plan_;
  const C* zeros_;
};

// The sums of pseudo-layer p: input, recurrent and, with a projection, that.
template <class C>
void AppendSums(const Plan& plan, const BackwardWeightsData<C>& data, int p, StepRows<const C> in,
                StepRows<const C> out, std::vector<WeightSum<C>>* all) {
  const RnnDims& dims = plan.dims;
  const int l = p / dims.D, d = p % dims.D, G = dims.G;
  WeightSum<C> sums[3];
  const C* gates = data.gradients.gates[p];
  for (int i = 0; i < 2; ++i) {
    sums[i].M = G * dims.H;
    sums[i].rows_per_gate = dims.H;
    for (int g = 0; g < G; ++g) {
      const int id = i == 0 ? plan.canonical_gate(g) : G + g;
      sums[i].dmatrix[g] = data.dweights + plan.layout.Matrix(p, id).offset;
      sums[i].dbias[g] = data.dweights + plan.layout.Bias(p, id).offset;
    }
  }
  sums[0].left = StepRows<const C>(gates, plan.gate_width(), plan.sequences);
  sums[0].right = in;
  sums[0].width = dims.input_width(l);
  // gru: r, u and its own n lie one gate further on.
  sums[1].left =
      StepRows<const C>(gates + (plan.is_gru() ? dims.H : 0), plan.gate_width(), plan.sequences);
  sums[1].right = out;
  sums[1].width = dims.R;
  sums[1].previous = true;
  sums[1].direction = d;
  sums[1].right_column = d * dims.R;
  sums[1].initial = data.initial.h ? data.initial.h + p * plan.B() * dims.R : nullptr;
  if (dims.projects()) {
    sums[2].left = StepRows<const C>(data.gradients.dh[p], dims.R, plan.sequences);
    sums[2].right = StepRows<const C>(data.gradients.h_unprojected[p], dims.H, plan.sequences);
    sums[2].width = dims.H;
    sums[2].M = dims.R;
    sums[2].rows_per_gate = dims.R;
    sums[2].dmatrix[0] = data.dweights + plan.layout.Matrix(p, 2 * G).offset;
  }
  all->insert(all->end(), sums, sums + (dims.projects() ? 3 : 2));
}

}  // namespace

template <class C>
void BackwardWeights(const Context<C>& context, const BackwardWeightsData<C>& data, Arena* work) {
  const Plan& plan = context.plan;
  const RnnDims& dims = plan.dims;
  const int64_t width = plan.output_width(), zero_count = std::max(dims.H, dims.R);
  C* zeros = work->Take<C>(zero_count);
  C* dropped = plan.dropout ? work->Take<C>(plan.N(), width) : nullptr;
  double operations = 0;
  for (int l = 0; l < dims.L; ++l) operations += dims.D * plan.Work(l) / dims.L;
  const int tasks = plan.TasksFor(operations);
  std::vector<TaskScratch<C>> scratch(tasks);
  for (TaskScratch<C>& task : scratch) task.Book(plan, context.kernels.vector_length, work);
  if (work->measuring()) return;

  std::fill_n(zeros, zero_count, C(0));
  WeightSums<C> add(context, zeros);
  for (int l = 0; l < dims.L; ++l) {
    StepRows<const C> in = data.x;
    if (l > 0) {
      const C* below = data.reserve.outputs[l - 1];
      if (plan.dropout) DropSteps(context, l, below, dropped);
      in = StepRows<const C>(plan.dropout ? dropped : below, width, plan.sequences);
    }
    const StepRows<const C> out =
        plan.BuffersOutput(l) ? StepRows<const C>(data.reserve.outputs[l], width, plan.sequences)
                              : data.y;
    std::vector<WeightSum<C>> sums;
    for (int d = 0; d < dims.D; ++d) AppendSums(plan, data, dims.D * l + d, in, out, &sums);
    context.parallel.Run(tasks, [&](int task) {
      for (const WeightSum<C>& sum : sums) {
        add.Add(sum, sum.M * task / tasks, sum.M * (task + 1) / tasks, scratch[task]);
      }
    });
  }
}

template void BackwardWeights(const Context<float>&, const BackwardWeightsData<float>&, Arena*);
template void BackwardWeights(const Context<double>&, const BackwardWeightsData<double>&, Arena*);

}  // namespace tf_cudnn_rnn::cpu
