// The layouts of the spaces that outlive a call, and the division of rows.
#include <algorithm>

#include "cc/cpu/engine.h"

namespace tf_cudnn_rnn::cpu {

template <class C>
void Reserve<C>::Book(const Plan& plan, Arena* arena) {
  const int P = plan.dims.pseudo_layers();
  const int64_t N = plan.N();
  const bool receives_gradients = !plan.reserve_read_only;
  gates.assign(P, nullptr);
  c.assign(P, nullptr);
  dh.assign(P, nullptr);
  outputs.assign(plan.dims.L, nullptr);
  for (int p = 0; p < P; ++p) {
    if (!plan.is_rnn() || receives_gradients) gates[p] = arena->Take<C>(N, plan.gate_width());
    if (plan.is_lstm()) c[p] = arena->Take<C>(N, plan.dims.H);
    if (plan.dims.projects() && receives_gradients) dh[p] = arena->Take<C>(N, plan.dims.R);
  }
  for (int l = 0; l < plan.dims.L; ++l) {
    if (plan.BuffersOutput(l)) outputs[l] = arena->Take<C>(N, plan.output_width());
  }
}

template <class C>
void Gradients<C>::Book(const Plan& plan, const Reserve<C>& reserve, Arena* work) {
  if (!plan.reserve_read_only) {
    gates = reserve.gates;
    dh = reserve.dh;
    // Going backward in time, a cell state is needed for the last time just where o · tanh(c)
    // appears.
    h_unprojected = reserve.c;
    return;
  }
  const int P = plan.dims.pseudo_layers();
  gates.assign(P, nullptr);
  dh.assign(P, nullptr);
  h_unprojected.assign(P, nullptr);
  for (int p = 0; p < P; ++p) {
    gates[p] = work->Take<C>(plan.N(), plan.gate_width());
    if (!plan.dims.projects()) continue;
    dh[p] = work->Take<C>(plan.N(), plan.dims.R);
    h_unprojected[p] = work->Take<C>(plan.N(), plan.dims.H);
  }
}

template <class C>
Division Divide(const Plan& plan, int layer) {
  const RnnDims& dims = plan.dims;
  const int threads = plan.TasksFor(dims.D * plan.Work(layer)) / dims.D;
  const int rows = static_cast<int>(std::max<int64_t>(1, plan.B()));
  if (threads < 2) return {};
  // Every share reads all recurrent weights in every step. Where those do not stay in the core's
  // own cache, a share wants rows enough to be worth it.
  const double weights = 1.0 * dims.G * dims.H * dims.R;
  const int least_rows = weights * sizeof(C) > (1 << 18) ? 6 : 1;
  Division division;
  division.shares = std::clamp(rows / least_rows, 1, threads);
  division.members = threads / division.shares;
  // Meeting after every step costs about a microsecond; reading 512 KB of weights takes 40.
  if (2 * weights * rows / division.shares < 4e5 && weights * sizeof(C) < (1 << 19)) {
    return {std::min(rows, threads), 1};
  }
  // Panels of 4 vectors of 16 elements are the largest pieces that cannot be divided.
  division.members = static_cast<int>(std::clamp<int64_t>(dims.R / 64, 1, division.members));
  return division;
}
template Division Divide<float>(const Plan&, int);
template Division Divide<double>(const Plan&, int);

std::vector<int> ShareRows(const Sequences& sequences, int shares) {
  const int B = sequences.rows();
  std::vector<int> limits(shares + 1, B);
  limits[0] = 0;
  const int64_t total = sequences.valid_steps();
  int64_t sum = 0;
  int share = 1;
  for (int rank = 0; rank < B && share < shares; ++rank) {
    // A row goes to the share in which its middle falls.
    const int64_t length = sequences.length(rank);
    while (share < shares && (2 * sum + length) * shares >= 2 * total * share) {
      limits[share++] = rank;
    }
    sum += length;
  }
  return limits;
}

template <class C>
void DropSteps(const Context<C>& context, int layer, const C* from, C* to) {
  const Sequences& sequences = context.plan.sequences;
  const int64_t width = context.plan.output_width(), B = context.plan.B();
  const int tasks = context.plan.TasksFor(20.0 * context.plan.N() * width);
  context.parallel.Run(tasks, [&](int task) {
    for (int t = task; t < sequences.steps(); t += tasks) {
      for (int rank = 0; rank < sequences.alive(t); ++rank) {
        // Elements are numbered in the caller's order, so that padding and sorting do not change
        // the masks.
        const int64_t step = sequences.offset(t) + rank, element = t * B + sequences.row(rank);
        ApplyDropout(context.mask, layer, element * width, from + step * width, to + step * width,
                     width);
      }
    }
  });
}
template void DropSteps(const Context<float>&, int, const float*, float*);
template void DropSteps(const Context<double>&, int, const double*, double*);

template struct Reserve<float>;
template struct Reserve<double>;
template struct Gradients<float>;
template struct Gradients<double>;

}  // namespace tf_cudnn_rnn::cpu
