// Forward: layer by layer, each task a direction and a share of the rows through all time steps.
#include <algorithm>
#include <memory>

#include "cc/cpu/engine.h"
#include "cc/cpu/pack.h"
#include "cc/cpu/team.h"

namespace tf_cudnn_rnn::cpu {
namespace {

// The input product is done for some time steps at once: enough rows to use a panel well, few
// enough that the results are still in the cache when the recurrence reads them.
constexpr int64_t kChunkRows = 128;

// Everything that a task of one direction needs and that all tasks of it share.
template <class C>
struct Direction {
  Panels<C> input, recurrent, projection;
  C* bias = nullptr;                    // [gate_width]: what the pre-activations start from
  const C* recurrent_bias_n = nullptr;  // gru
  C* c_state = nullptr;                 // lstm, inference: [B, H]
};

// A task's own memory.
template <class C>
struct TaskScratch {
  int64_t chunk_rows = 0;
  C* gates = nullptr;          // inference: [chunk_rows, gate_width]
  C* h_unprojected = nullptr;  // projection: [rows, H]
  const C** a = nullptr;       // row pointers, chunk_rows of them, as the next
  C** c = nullptr;
  const C** h_prev = nullptr;  // row pointers, B of them, as the following
  const C** c_prev = nullptr;
  C** gate_rows = nullptr;
  C** c_rows = nullptr;
  C** h_rows = nullptr;
  C** out_rows = nullptr;

  void Book(const Plan& plan, Arena* arena) {
    const int64_t B = plan.B();
    chunk_rows = std::min(plan.N(), std::max(B, kChunkRows));
    if (!plan.training && !plan.is_rnn()) gates = arena->Take<C>(chunk_rows, plan.gate_width());
    if (plan.dims.projects()) h_unprojected = arena->Take<C>(B, plan.dims.H);
    a = arena->Take<const C*>(chunk_rows);
    c = arena->Take<C*>(chunk_rows);
    h_prev = arena->Take<const C*>(B);
    c_prev = arena->Take<const C*>(B);
    for (C*** rows : {&gate_rows, &c_rows, &h_rows, &out_rows}) *rows = arena->Take<C*>(B);
  }
};

// One layer of a forward call.
template <class C>
class ForwardLayer {
 public:
  ForwardLayer(const Context<C>& context, const ForwardData<C>& data, int layer,
               StepRows<const C> in, StepRows<C> out, const C* zeros)
      : context_(context),
        plan_(context.plan),
        data_(data),
        layer_(layer),
        in_(in),
        out_(out),
        zeros_(zeros) {}

  void Book(Arena* arena) {
    const RnnDims& dims = plan_.dims;
    const int VL = context_.kernels.vector_length;
    // In a short call the cells get panels without rows: the products are done before.
    const int64_t packed = plan_.is_short() ? 0 : 1, width = packed * dims.input_width(layer_);
    for (int d = 0; d < dims.D; ++d) {
      Direction<C>& direction = directions_[d];
      direction.input = BookPanels<C>(width, dims.H, dims.G, !plan_.is_rnn(), VL, arena);
      direction.recurrent =
          BookPanels<C>(packed * dims.R, dims.H, dims.G, !plan_.is_rnn(), VL, arena);
      if (dims.projects()) {
        direction.projection = BookPanels<C>(packed * dims.H, dims.R, 1, false, VL, arena);
      }
      direction.bias = arena->Take<C>(plan_.gate_width());
      if (plan_.is_lstm() && !plan_.training) direction.c_state = arena->Take<C>(plan_.B(), dims.H);
    }
    division_ = Divide<C>(plan_, layer_);
    scratch_.resize(dims.D * division_.shares);
    for (TaskScratch<C>& scratch : scratch_) scratch.Book(plan_, arena);
  }

  void Run() {
    if (plan_.is_short()) {
      for (int d = 0; d < plan_.dims.D; ++d) AddBiases(d);
    } else {
      PackWeights();
    }
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
  }

 private:
  int pseudo_layer(int d) const { return plan_.dims.D * layer_ + d; }
  const C* matrix(int d, int id) const {
    return data_.weights + plan_.layout.Matrix(pseudo_layer(d), id).offset;
  }
  const C* bias(int d, int id) const {
    return data_.weights + plan_.layout.Bias(pseudo_layer(d), id).offset;
  }

  void PackWeights() {
    const int G = plan_.dims.G, D = plan_.dims.D;
    // One task per direction and share of the panels.
    const double operations =
        plan_.dims.G * plan_.dims.H * 8.0 * (plan_.dims.input_width(layer_) + plan_.dims.R);
    const int parts = plan_.TasksFor(operations);
    context_.Run(D * parts, D * operations, [&](int task) {
      const int d = task % D, part = task / D;
      Direction<C>& direction = directions_[d];
      const C* inputs[4];
      const C* recurrents[4];
      for (int g = 0; g < G; ++g) {
        inputs[g] = matrix(d, plan_.canonical_gate(g));
        recurrents[g] = matrix(d, G + g);
      }
      if (direction.input.K) PackPart(inputs, part, parts, &direction.input);
      PackPart(recurrents, part, parts, &direction.recurrent);
      if (plan_.dims.projects()) {
        const C* projection = matrix(d, 2 * G);
        PackPart(&projection, part, parts, &direction.projection);
      }
      if (part == 0) AddBiases(d);
    });
  }

  void PackPart(const C* const* source, int part, int parts, Panels<C>* panels) const {
    PackTransposed(source, context_.kernels.vector_length, panels->count * part / parts,
                   panels->count * (part + 1) / parts, panels);
  }

  void AddBiases(int d) {
    const int G = plan_.dims.G;
    const int64_t H = plan_.dims.H;
    Direction<C>& direction = directions_[d];
    for (int g = 0; g < G; ++g) {
      const int id = plan_.canonical_gate(g);
      const C* input = bias(d, id);
      const C* recurrent = bias(d, G + id);
      // gru: bRn stays apart, inside the product with r.
      const bool apart = plan_.is_gru() && id == 2;
      for (int64_t j = 0; j < H; ++j) {
        direction.bias[g * H + j] = apart ? input[j] : input[j] + recurrent[j];
      }
      if (apart) direction.recurrent_bias_n = recurrent;
    }
  }

  // The valid step that direction d reaches as its s-th.
  int Time(int d, int s) const { return d == 0 ? s : plan_.sequences.steps() - 1 - s; }

  void RunRows(int d, int begin, int end, const TaskScratch<C>& scratch, Team* team) {
    const Sequences& sequences = plan_.sequences;
    const int64_t H = plan_.dims.H;
    if (directions_[d].c_state) {
      for (int r = begin; r < end; ++r) {
        std::copy_n(InitialC(d, r), H, directions_[d].c_state + r * H);
      }
    }
    const int steps = sequences.steps();
    for (int s = 0; s < steps;) {
      int64_t rows = 0;
      int chunk_end = s;
      for (; chunk_end < steps; ++chunk_end) {
        const int alive = sequences.AliveIn(Time(d, chunk_end), begin, end);
        if (rows > 0 && rows + alive > scratch.chunk_rows) break;
        rows += alive;
      }
      InputProduct(d, begin, end, s, chunk_end, scratch, team);
      int64_t first = 0;
      for (; s < chunk_end; ++s) {
        if (context_.parallel.Cancelled()) return;
        const int alive = sequences.AliveIn(Time(d, s), begin, end);
        if (alive > 0) Step(d, Time(d, s), begin, alive, first, scratch, team);
        first += alive;
      }
    }
    WriteFinalStates(d, begin, end);
  }

  // Where the gates of a row of the current chunk lie, rnn_*: in the output itself.
  C* GateRow(int d, int t, int rank, int64_t row_in_chunk, const TaskScratch<C>& scratch) const {
    const int64_t width = plan_.gate_width();
    if (plan_.is_rnn()) return out_.at(t, rank) + d * plan_.dims.R;
    if (scratch.gates) return scratch.gates + row_in_chunk * width;
    return data_.reserve.gates[pseudo_layer(d)] + (plan_.sequences.offset(t) + rank) * width;
  }

  void InputProduct(int d, int begin, int end, int first_step, int end_step,
                    const TaskScratch<C>& scratch, Team* team) {
    int64_t rows = 0;
    for (int s = first_step; s < end_step; ++s) {
      const int t = Time(d, s), alive = plan_.sequences.AliveIn(t, begin, end);
      for (int r = begin; r < begin + alive; ++r, ++rows) {
        scratch.a[rows] = in_.at(t, r);
        scratch.c[rows] = GateRow(d, t, r, rows, scratch);
      }
    }
    const Direction<C>& direction = directions_[d];
    if (plan_.dims.input_width(layer_) == 0) return SkipInput(d, rows, scratch);
    if (plan_.is_short()) {
      for (int64_t m = 0; m < rows; ++m) {
        std::copy_n(direction.bias, plan_.dims.G * plan_.dims.H, scratch.c[m]);
      }
      for (int g = 0; g < plan_.dims.G; ++g) {
        AddDots(matrix(d, plan_.canonical_gate(g)), plan_.dims.H, plan_.dims.input_width(layer_),
                rows, scratch.a, scratch.c, g * plan_.dims.H, team);
      }
      return;
    }
    ProductArguments<C> args;
    args.rows = rows;
    args.a = scratch.a;
    args.panels = &direction.input;
    args.c = scratch.c;
    args.bias = direction.bias;
    team->Run([&](int member) {
      ProductArguments<C> piece = args;
      DividePanels(*team, member, *args.panels, &piece);
      BlockedProduct(context_.kernels, piece);
    });
  }

  // skip_input: every gate sees x itself (I = H).
  void SkipInput(int d, int64_t rows, const TaskScratch<C>& scratch) {
    const int64_t H = plan_.dims.H;
    const C* bias = directions_[d].bias;
    for (int64_t m = 0; m < rows; ++m) {
      for (int g = 0; g < plan_.dims.G; ++g) {
        for (int64_t j = 0; j < H; ++j) {
          scratch.c[m][g * H + j] = scratch.a[m][j] + bias[g * H + j];
        }
      }
    }
  }

  const C* InitialH(int d, int rank) const {
    const int64_t row = pseudo_layer(d) * plan_.B() + plan_.sequences.row(rank);
    return data_.initial.h ? data_.initial.h + row * plan_.dims.R : zeros_;
  }
  const C* InitialC(int d, int rank) const {
    const int64_t row = pseudo_layer(d) * plan_.B() + plan_.sequences.row(rank);
    return data_.initial.c ? data_.initial.c + row * plan_.dims.H : zeros_;
  }
  bool IsFirstStep(int d, int t, int rank) const {
    return d == 0 ? t == 0 : t == plan_.sequences.length(rank) - 1;
  }

  // Time t of direction d for the ranks begin … begin + alive − 1; their gates begin at row `first`
  // of the chunk.
  void Step(int d, int t, int begin, int alive, int64_t first, const TaskScratch<C>& scratch,
            Team* team) {
    const Sequences& sequences = plan_.sequences;
    const int64_t H = plan_.dims.H, R = plan_.dims.R;
    const Direction<C>& direction = directions_[d];
    const int earlier = d == 0 ? t - 1 : t + 1;
    C* const c_kept = data_.reserve.c.empty() ? nullptr : data_.reserve.c[pseudo_layer(d)];
    for (int m = 0; m < alive; ++m) {
      const int rank = begin + m;
      const bool is_first = IsFirstStep(d, t, rank);
      scratch.h_prev[m] = is_first ? InitialH(d, rank) : out_.at(earlier, rank) + d * R;
      scratch.out_rows[m] = out_.at(t, rank) + d * R;
      scratch.h_rows[m] =
          plan_.dims.projects() ? scratch.h_unprojected + m * H : scratch.out_rows[m];
      scratch.gate_rows[m] = GateRow(d, t, rank, first + m, scratch);
      if (!plan_.is_lstm()) continue;
      if (c_kept) {
        scratch.c_rows[m] = c_kept + (sequences.offset(t) + rank) * H;
        scratch.c_prev[m] =
            is_first ? InitialC(d, rank) : c_kept + (sequences.offset(earlier) + rank) * H;
      } else {
        scratch.c_rows[m] = direction.c_state + rank * H;
        scratch.c_prev[m] = scratch.c_rows[m];
      }
    }
    CellForwardArguments<C> cell;
    cell.rows = alive;
    cell.H = H;
    cell.panels = &direction.recurrent;
    cell.backwards = t % 2 != 0;
    cell.h_prev = scratch.h_prev;
    cell.gates = scratch.gate_rows;
    cell.store_gates = plan_.training;
    cell.c_prev = scratch.c_prev;
    cell.c = scratch.c_rows;
    cell.h = scratch.h_rows;
    cell.recurrent_bias_n = direction.recurrent_bias_n;
    if (plan_.is_short()) return ShortStep(d, alive, cell, scratch, team);
    team->Run([&](int member) {
      CellForwardArguments<C> piece = cell;
      DividePanels(*team, member, *cell.panels, &piece);
      RunCell(piece);
    });
    if (!plan_.dims.projects()) return;
    ProductArguments<C> project;
    project.rows = alive;
    project.a = scratch.h_rows;
    project.k_end = direction.projection.K;
    project.panels = &direction.projection;
    project.backwards = t % 2 != 0;
    project.c = scratch.out_rows;
    team->Run([&](int member) {
      ProductArguments<C> piece = project;
      DividePanels(*team, member, *project.panels, &piece);
      context_.kernels.product(piece);
    });
  }

  // c[m][column + j] += a[m] · (row j of the row-major matrix w [rows_of_w, K]).
  void AddDots(const C* w, int64_t rows_of_w, int64_t K, int64_t rows, const C* const* a,
               C* const* c, int64_t column, Team* team) const {
    team->Run([&](int member) {
      for (int64_t m = 0; m < rows; m += kMostDotRows) {
        DotArguments<C> args;
        args.rows = static_cast<int>(std::min<int64_t>(kMostDotRows, rows - m));
        args.a = a + m;
        args.K = K;
        args.w = w;
        args.begin = rows_of_w * member / team->members();
        args.end = rows_of_w * (member + 1) / team->members();
        C* shifted[kMostDotRows];
        for (int i = 0; i < args.rows; ++i) shifted[i] = c[m + i] + column;
        args.c = shifted;
        context_.kernels.dot(args);
      }
    });
  }

  // A step whose products read the weights as they are; then the cell on complete pre-activations.
  void ShortStep(int d, int alive, CellForwardArguments<C> cell, const TaskScratch<C>& scratch,
                 Team* team) {
    const int64_t H = plan_.dims.H, R = plan_.dims.R;
    const int G = plan_.dims.G;
    if (plan_.is_gru()) {
      for (int m = 0; m < alive; ++m) {
        std::copy_n(cell.recurrent_bias_n, H, scratch.gate_rows[m] + 3 * H);
      }
    }
    for (int g = 0; g < G; ++g) {
      AddDots(matrix(d, G + g), H, R, alive, cell.h_prev, scratch.gate_rows,
              (plan_.is_gru() ? g + 1 : g) * H, team);
    }
    if (plan_.is_gru()) {  // hn takes the place of its bias, so the rows go one by one
      for (int m = 0; m < alive; ++m) {
        CellForwardArguments<C> row = cell;
        row.rows = 1;
        row.h_prev += m;
        row.gates += m;
        row.h += m;
        row.recurrent_bias_n = scratch.gate_rows[m] + 3 * H;
        row.panel_end = cell.panels->count;
        RunCell(row);
      }
      return;
    }
    cell.panel_end = cell.panels->count;
    RunCell(cell);
    if (!plan_.dims.projects()) return;
    for (int m = 0; m < alive; ++m) std::fill_n(scratch.out_rows[m], R, C(0));
    AddDots(matrix(d, 2 * G), R, H, alive, scratch.h_rows, scratch.out_rows, 0, team);
  }

  void RunCell(const CellForwardArguments<C>& cell) const {
    switch (plan_.mode) {
      case CUDNN_LSTM:
        return context_.kernels.lstm_forward(cell);
      case CUDNN_GRU:
        return context_.kernels.gru_forward(cell);
      case CUDNN_RNN_TANH:
        return context_.kernels.rnn_tanh_forward(cell);
      case CUDNN_RNN_RELU:
        return context_.kernels.rnn_relu_forward(cell);
    }
  }

  void WriteFinalStates(int d, int begin, int end) {
    const Sequences& sequences = plan_.sequences;
    const int64_t H = plan_.dims.H, R = plan_.dims.R;
    const C* c_kept = data_.reserve.c.empty() ? nullptr : data_.reserve.c[pseudo_layer(d)];
    for (int r = begin; r < end; ++r) {
      const int64_t row = pseudo_layer(d) * plan_.B() + sequences.row(r);
      const int length = sequences.length(r), t = d == 0 ? length - 1 : 0;
      if (data_.hy) {
        std::copy_n(length ? out_.at(t, r) + d * R : InitialH(d, r), R, data_.hy + row * R);
      }
      if (data_.cy && plan_.is_lstm()) {
        const C* c = length == 0 ? InitialC(d, r)
                     : c_kept    ? c_kept + (sequences.offset(t) + r) * H
                                 : directions_[d].c_state + r * H;
        std::copy_n(c, H, data_.cy + row * H);
      }
    }
  }

  const Context<C>& context_;
  const Plan& plan_;
  const ForwardData<C>& data_;
  const int layer_;
  const StepRows<const C> in_;
  const StepRows<C> out_;
  const C* zeros_;
  Direction<C> directions_[2];
  Division division_;
  std::vector<TaskScratch<C>> scratch_;
};

}  // namespace

template <class C>
StepRows<C> Forward(const Context<C>& context, const ForwardData<C>& data, Arena* work) {
  const Plan& plan = context.plan;
  const bool measuring = work->measuring();
  const int64_t width = plan.output_width(), zero_count = std::max(plan.dims.H, plan.dims.R);
  C* zeros = work->Take<C>(zero_count);
  if (!measuring) std::fill_n(zeros, zero_count, C(0));
  // In inference two buffers take turns as the layers' outputs.
  C* turns[2] = {};
  for (int l = 0; l < 2 && l < plan.dims.L; ++l) {
    if (!plan.training && plan.BuffersOutput(l)) turns[l] = work->Take<C>(plan.N(), width);
  }
  C* dropped = plan.dropout ? work->Take<C>(plan.N(), width) : nullptr;

  StepRows<const C> in = data.x;
  StepRows<C> out;
  for (int l = 0; l < plan.dims.L; ++l) {
    C* buffer = !plan.BuffersOutput(l) ? nullptr
                : plan.training        ? data.reserve.outputs[l]
                                       : turns[l % 2];
    out = plan.BuffersOutput(l) ? StepRows<C>(buffer, width, plan.sequences) : data.y;
    const size_t mark = work->Mark();
    ForwardLayer<C> layer(context, data, l, in, out, zeros);
    layer.Book(work);
    if (!measuring) layer.Run();
    work->Return(mark);
    if (plan.dropout && l + 1 < plan.dims.L) {
      if (!measuring) DropSteps(context, l + 1, buffer, dropped);
      buffer = dropped;
    }
    in = StepRows<const C>(buffer, width, plan.sequences);
  }
  return out;
}

template StepRows<float> Forward(const Context<float>&, const ForwardData<float>&, Arena*);
template StepRows<double> Forward(const Context<double>&, const ForwardData<double>&, Arena*);

}  // namespace tf_cudnn_rnn::cpu
