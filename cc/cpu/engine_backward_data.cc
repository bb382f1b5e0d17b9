// Backward, data: from the last layer to the first, each task a direction and a share of the rows
// backward through its steps; then the gradient of the layer's input for all steps in one product.
#include <algorithm>
#include <memory>

#include "cc/cpu/engine.h"
#include "cc/cpu/pack.h"
#include "cc/cpu/team.h"

namespace tf_cudnn_rnn::cpu {
namespace {

// Rows of a product over all steps that one call of it takes: their results stay in the cache
// between its blocks.
constexpr int64_t kProductRows = 96;

// A task's row pointers, B of each.
template <class C>
struct TaskScratch {
  C* dh_unprojected = nullptr;  // projection: [B, H]
  const C** upstream = nullptr;
  const C** carry = nullptr;
  const C** gates = nullptr;
  C** dgates = nullptr;
  const C** c = nullptr;
  const C** c_prev = nullptr;
  C** dc = nullptr;
  const C** h = nullptr;
  const C** h_prev = nullptr;
  C** dh = nullptr;
  C** h_unprojected = nullptr;
  C** unprojected = nullptr;
  const C** a = nullptr;

  void Book(const Plan& plan, Arena* arena) {
    const int64_t B = plan.B();
    if (plan.dims.projects()) dh_unprojected = arena->Take<C>(B, plan.dims.H);
    for (const C*** rows : {&upstream, &carry, &gates, &c, &c_prev, &h, &h_prev, &a}) {
      *rows = arena->Take<const C*>(B);
    }
    for (C*** rows : {&dgates, &dc, &dh, &h_unprojected, &unprojected}) *rows = arena->Take<C*>(B);
  }
};

template <class C>
class BackwardLayer {
 public:
  // out: the layer's own output; dout: its gradient.
  BackwardLayer(const Context<C>& context, const BackwardDataData<C>& data, int layer,
                StepRows<const C> out, StepRows<const C> dout, StepRows<C> din, const C* zeros)
      : context_(context),
        plan_(context.plan),
        data_(data),
        layer_(layer),
        out_(out),
        dout_(dout),
        din_(din),
        zeros_(zeros) {}

  void Book(Arena* arena) {
    const RnnDims& dims = plan_.dims;
    const int VL = context_.kernels.vector_length;
    for (int d = 0; d < dims.D; ++d) {
      recurrent_[d] = BookPanels<C>(dims.G * dims.H, dims.R, 1, false, VL, arena);
      if (dims.projects()) projection_[d] = BookPanels<C>(dims.R, dims.H, 1, false, VL, arena);
      if (dims.input_width(layer_) > 0) {
        input_[d] = BookPanels<C>(dims.G * dims.H, dims.input_width(layer_), 1, false, VL, arena);
      }
      dh_state_[d] = arena->Take<C>(plan_.B(), dims.R);
      if (plan_.is_lstm()) dc_state_[d] = arena->Take<C>(plan_.B(), dims.H);
    }
    division_ = Divide<C>(plan_, layer_);
    scratch_.resize(dims.D * division_.shares);
    for (TaskScratch<C>& scratch : scratch_) scratch.Book(plan_, arena);
    pack_rows_ = arena->Take<const C*>(2 * dims.D, dims.G * dims.H);
    projection_rows_ = arena->Take<const C*>(dims.D, dims.R);
    product_rows_ = arena->Take<const C*>(plan_.threads, kProductRows);
    product_results_ = arena->Take<C*>(plan_.threads, kProductRows);
  }

  void Run() {
    PackWeights();
    const std::vector<int> limits = ShareRows(plan_.sequences, division_.shares);
    const int D = plan_.dims.D, tasks = D * division_.shares, members = division_.members;
    std::vector<std::unique_ptr<Team>> teams(tasks);
    for (std::unique_ptr<Team>& team : teams) team.reset(new Team(members));
    context_.Run(tasks * members, D * plan_.Work(layer_), [&](int i) {
      const int task = i / members, d = task % D, share = task / D;
      teams[task]->Work(i % members, [&] {
        RunRows(d, limits[share], limits[share + 1], scratch_[task], teams[task].get());
      });
    });
    InputGradients();
  }

 private:
  int pseudo_layer(int d) const { return plan_.dims.D * layer_ + d; }
  const C* matrix(int d, int id) const {
    return data_.weights + plan_.layout.Matrix(pseudo_layer(d), id).offset;
  }
  C* dgates(int d, int t, int rank) const {
    return data_.gradients.gates[pseudo_layer(d)] +
           (plan_.sequences.offset(t) + rank) * plan_.gate_width();
  }
  // Where in a row of gates the gradients for the recurrent product begin: gru has its own n last.
  int64_t recurrent_gates() const { return plan_.is_gru() ? plan_.dims.H : 0; }

  void PackWeights() {
    const RnnDims& dims = plan_.dims;
    const int64_t K = dims.G * dims.H, width = dims.input_width(layer_);
    for (int d = 0; d < dims.D; ++d) {
      const C** recurrent = pack_rows_ + 2 * d * K;
      const C** input = recurrent + K;
      for (int g = 0; g < dims.G; ++g) {
        for (int64_t j = 0; j < dims.H; ++j) {
          recurrent[g * dims.H + j] = matrix(d, dims.G + g) + j * dims.R;
          input[g * dims.H + j] = matrix(d, plan_.canonical_gate(g)) + j * width;
        }
      }
      if (!dims.projects()) continue;
      for (int64_t j = 0; j < dims.R; ++j) {
        projection_rows_[d * dims.R + j] = matrix(d, 2 * dims.G) + j * dims.H;
      }
    }
    const double operations = 8.0 * K * (width + dims.R);
    const int parts = plan_.TasksFor(operations);
    context_.Run(dims.D * parts, dims.D * operations, [&](int task) {
      const int d = task % dims.D, part = task / dims.D;
      PackPart(pack_rows_ + 2 * d * K, part, parts, &recurrent_[d]);
      if (input_[d].count) PackPart(pack_rows_ + (2 * d + 1) * K, part, parts, &input_[d]);
      if (dims.projects()) PackPart(projection_rows_ + d * dims.R, part, parts, &projection_[d]);
    });
  }

  void PackPart(const C* const* rows, int part, int parts, Panels<C>* panels) const {
    PackRows(rows, panels->K, context_.kernels.vector_length, panels->count * part / parts,
             panels->count * (part + 1) / parts, panels);
  }

  void RunRows(int d, int begin, int end, const TaskScratch<C>& scratch, Team* team) {
    const Sequences& sequences = plan_.sequences;
    LoadFinalGradients(d, begin, end);
    const int steps = sequences.steps();
    for (int s = 0; s < steps; ++s) {
      if (context_.parallel.Cancelled()) return;
      const int t = d == 0 ? steps - 1 - s : s;
      const int alive = sequences.AliveIn(t, begin, end);
      if (alive > 0) Step(d, t, begin, alive, scratch, team);
    }
    const int64_t H = plan_.dims.H, R = plan_.dims.R;
    for (int r = begin; r < end; ++r) {
      const int64_t row = pseudo_layer(d) * plan_.B() + sequences.row(r);
      if (data_.dhx) std::copy_n(dh_state_[d] + r * R, R, data_.dhx + row * R);
      if (data_.dcx && plan_.is_lstm()) {
        std::copy_n(dc_state_[d] + r * H, H, data_.dcx + row * H);
      }
    }
  }

  void LoadFinalGradients(int d, int begin, int end) {
    const int64_t H = plan_.dims.H, R = plan_.dims.R;
    const States<C>& final_gradient = data_.final_gradient;
    for (int r = begin; r < end; ++r) {
      const int64_t row = pseudo_layer(d) * plan_.B() + plan_.sequences.row(r);
      std::copy_n(final_gradient.h ? final_gradient.h + row * R : zeros_, R, dh_state_[d] + r * R);
      if (!plan_.is_lstm()) continue;
      std::copy_n(final_gradient.c ? final_gradient.c + row * H : zeros_, H, dc_state_[d] + r * H);
    }
  }

  void FillRows(int d, int t, int begin, int alive, const TaskScratch<C>& scratch) {
    const Sequences& sequences = plan_.sequences;
    const int64_t H = plan_.dims.H, R = plan_.dims.R, B = plan_.B();
    const int p = pseudo_layer(d), earlier = d == 0 ? t - 1 : t + 1;
    const C* c_kept = data_.reserve.c[p];
    const C* kept_gates = data_.reserve.gates[p];
    for (int m = 0; m < alive; ++m) {
      const int rank = begin + m;
      const int64_t step = sequences.offset(t) + rank, row = p * B + sequences.row(rank);
      const bool is_first = d == 0 ? t == 0 : t == sequences.length(rank) - 1;
      scratch.upstream[m] = dout_.at(t, rank) + d * R;
      scratch.dh[m] = dh_state_[d] + rank * R;
      scratch.carry[m] = scratch.dh[m];
      scratch.dgates[m] = dgates(d, t, rank);
      scratch.a[m] = scratch.dgates[m] + recurrent_gates();
      if (plan_.is_rnn()) {
        scratch.h[m] = out_.at(t, rank) + d * R;
        continue;
      }
      scratch.gates[m] = kept_gates + step * plan_.gate_width();
      if (plan_.is_gru()) {
        const C* initial = data_.initial.h ? data_.initial.h + row * R : zeros_;
        scratch.h_prev[m] = is_first ? initial : out_.at(earlier, rank) + d * R;
        continue;
      }
      const C* initial = data_.initial.c ? data_.initial.c + row * H : zeros_;
      scratch.c[m] = c_kept + step * H;
      scratch.c_prev[m] = is_first ? initial : c_kept + (sequences.offset(earlier) + rank) * H;
      scratch.dc[m] = dc_state_[d] + rank * H;
      if (plan_.dims.projects()) {
        scratch.h_unprojected[m] = data_.gradients.h_unprojected[p] + step * H;
      }
    }
  }

  void Step(int d, int t, int begin, int alive, const TaskScratch<C>& scratch, Team* team) {
    FillRows(d, t, begin, alive, scratch);
    CellBackwardArguments<C> cell;
    cell.rows = alive;
    cell.H = plan_.dims.H;
    cell.upstream = scratch.upstream;
    cell.carry = scratch.carry;
    cell.gates = scratch.gates;
    cell.dgates = scratch.dgates;
    cell.c = scratch.c;
    cell.c_prev = scratch.c_prev;
    cell.dc = scratch.dc;
    cell.h = scratch.h;
    cell.h_prev = scratch.h_prev;
    cell.dh_prev = scratch.dh;
    if (plan_.dims.projects()) Unproject(d, t, begin, alive, scratch, team, &cell);
    switch (plan_.mode) {
      case CUDNN_LSTM:
        context_.kernels.lstm_backward(cell);
        break;
      case CUDNN_GRU:
        context_.kernels.gru_backward(cell);
        break;
      case CUDNN_RNN_TANH:
        context_.kernels.rnn_tanh_backward(cell);
        break;
      case CUDNN_RNN_RELU:
        context_.kernels.rnn_relu_backward(cell);
        break;
    }
    // dh of the earlier step: gradients of the gates × R; gru adds to the direct part that the cell
    // has left there.
    ProductArguments<C> product;
    product.rows = alive;
    product.a = scratch.a;
    product.panels = &recurrent_[d];
    product.backwards = t % 2 != 0;
    product.c = scratch.dh;
    product.accumulate = plan_.is_gru();
    RunProduct(product, team);
  }

  void RunProduct(const ProductArguments<C>& product, Team* team) const {
    team->Run([&](int member) {
      ProductArguments<C> piece = product;
      DividePanels(*team, member, *product.panels, &piece);
      BlockedProduct(context_.kernels, piece);
    });
  }

  // With a projection, keeps the gradient of the projected state and gives the cell that of the
  // state before it.
  void Unproject(int d, int t, int begin, int alive, const TaskScratch<C>& scratch, Team* team,
                 CellBackwardArguments<C>* cell) {
    const int64_t H = plan_.dims.H, R = plan_.dims.R;
    C* kept = data_.gradients.dh[pseudo_layer(d)];
    for (int m = 0; m < alive; ++m) {
      C* dh = kept + (plan_.sequences.offset(t) + begin + m) * R;
      for (int64_t j = 0; j < R; ++j) dh[j] = scratch.upstream[m][j] + scratch.carry[m][j];
      scratch.carry[m] = dh;
    }
    for (int m = 0; m < alive; ++m) scratch.unprojected[m] = scratch.dh_unprojected + m * H;
    ProductArguments<C> product;
    product.rows = alive;
    product.a = scratch.carry;
    product.panels = &projection_[d];
    product.backwards = t % 2 != 0;
    product.c = scratch.unprojected;
    RunProduct(product, team);
    for (int m = 0; m < alive; ++m) scratch.carry[m] = scratch.unprojected[m];
    cell->upstream = nullptr;
    cell->h_unprojected = scratch.h_unprojected;
  }

  // din = gradients of the gates × W, summed over directions, for all steps.
  void InputGradients() {
    if (!din_) return;
    const int64_t width = plan_.dims.input_width(layer_);
    const int64_t N = plan_.N();
    const int tasks = plan_.TasksFor(2.0 * plan_.dims.D * N * plan_.dims.G * plan_.dims.H *
                                     std::max<int64_t>(1, width));
    context_.parallel.Run(tasks, [&](int task) {
      const C** a = product_rows_ + task * kProductRows;
      C** c = product_results_ + task * kProductRows;
      int64_t step = N * task / tasks;
      const int64_t end = N * (task + 1) / tasks;
      int t = plan_.sequences.TimeOf(step);
      while (step < end && !context_.parallel.Cancelled()) {
        const int64_t rows = std::min(kProductRows, end - step);
        for (int64_t m = 0; m < rows; ++m) {
          while (step + m >= plan_.sequences.offset(t + 1)) ++t;
          c[m] = din_.at(t, static_cast<int>(step + m - plan_.sequences.offset(t)));
        }
        for (int d = 0; d < plan_.dims.D; ++d) {
          const C* gates = data_.gradients.gates[pseudo_layer(d)] + step * plan_.gate_width();
          for (int64_t m = 0; m < rows; ++m) a[m] = gates + m * plan_.gate_width();
          AddInputGradients(d, rows, a, c);
        }
        step += rows;
      }
    });
  }

  void AddInputGradients(int d, int64_t rows, const C** a, C** c) {
    if (input_[d].count == 0) {  // skip_input: every gate saw x itself
      const int64_t H = plan_.dims.H;
      for (int64_t m = 0; m < rows; ++m) {
        for (int64_t j = 0; j < H; ++j) {
          C sum = d > 0 ? c[m][j] : C(0);
          for (int g = 0; g < plan_.dims.G; ++g) sum += a[m][g * H + j];
          c[m][j] = sum;
        }
      }
      return;
    }
    ProductArguments<C> product;
    product.rows = rows;
    product.a = a;
    product.panels = &input_[d];
    product.panel_end = input_[d].count;
    product.c = c;
    product.accumulate = d > 0;
    BlockedProduct(context_.kernels, product);
  }

  const Context<C>& context_;
  const Plan& plan_;
  const BackwardDataData<C>& data_;
  const int layer_;
  const StepRows<const C> out_, dout_;
  const StepRows<C> din_;
  const C* zeros_;
  Panels<C> input_[2], recurrent_[2], projection_[2];
  C* dh_state_[2] = {};  // [B, R], by rank: gradient of the state carried from step to step
  C* dc_state_[2] = {};  // [B, H]
  Division division_;
  std::vector<TaskScratch<C>> scratch_;
  const C** pack_rows_ = nullptr;  // [D, 2, G·H]: rows of the recurrent and of the input matrices
  const C** projection_rows_ = nullptr;  // [D, R]
  const C** product_rows_ = nullptr;
  C** product_results_ = nullptr;
};

}  // namespace

template <class C>
void BackwardData(const Context<C>& context, const BackwardDataData<C>& data, Arena* work) {
  const Plan& plan = context.plan;
  const int64_t width = plan.output_width(), zero_count = std::max(plan.dims.H, plan.dims.R);
  C* zeros = work->Take<C>(zero_count);
  if (!work->measuring()) std::fill_n(zeros, zero_count, C(0));
  // The gradients of the layers' outputs take turns in two buffers.
  C* turns[2] = {};
  for (int l = std::max(1, plan.dims.L - 2); l < plan.dims.L; ++l) {
    turns[l % 2] = work->Take<C>(plan.N(), width);
  }

  StepRows<const C> dout = data.dy;
  for (int l = plan.dims.L - 1; l >= 0; --l) {
    const StepRows<const C> out =
        plan.BuffersOutput(l) ? StepRows<const C>(data.reserve.outputs[l], width, plan.sequences)
                              : data.y;
    C* buffer = l > 0 ? turns[l % 2] : nullptr;
    const StepRows<C> din = l > 0 ? StepRows<C>(buffer, width, plan.sequences) : data.dx;
    const size_t mark = work->Mark();
    BackwardLayer<C> layer(context, data, l, out, dout, din, zeros);
    layer.Book(work);
    if (!work->measuring()) {
      layer.Run();
      if (plan.dropout && l > 0) DropSteps(context, l, buffer, buffer);
    }
    work->Return(mark);
    dout = StepRows<const C>(buffer, width, plan.sequences);
  }
}

template void BackwardData(const Context<float>&, const BackwardDataData<float>&, Arena*);
template void BackwardData(const Context<double>&, const BackwardDataData<double>&, Arena*);

}  // namespace tf_cudnn_rnn::cpu
