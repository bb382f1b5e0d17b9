#include "cc/cpu/staging.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "cc/cpu/convert.h"
#include "cc/cpu/objects.h"

namespace tf_cudnn_rnn::cpu {
namespace {

class Serial : public Parallel {
 public:
  int num_threads() const override { return 1; }
  void Run(int count, const std::function<void(int)>& task) const override {
    for (int i = 0; i < count; ++i) task(i);
  }
};

const Parallel& ParallelOf(const CallShape& shape) {
  static const Serial serial;
  return shape.parallel ? *shape.parallel : serial;
}

// ---- the reserve space's header ----

struct ReserveHeader {
  uint64_t magic;
  uint64_t configuration;  // hash of everything that decides the content, the mask included
  uint64_t seed;           // of the dropout mask
  uint64_t call;
  uint64_t unused[4];
};
static_assert(sizeof(ReserveHeader) == Arena::kAlignment, "the slices behind it stay aligned");

constexpr uint64_t kReserveMagic = 0x3156524e4e524643;

uint64_t HashConfiguration(const CallShape& shape, uint64_t seed, uint64_t call) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over 64-bit words, with a final mix
  const auto add = [&](int64_t word) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x100000001b3;
    hash ^= hash >> 29;
  };
  const Plan& plan = *shape.plan;
  const RnnDims& dims = plan.dims;
  for (int64_t word : {int64_t{shape.type}, int64_t{plan.mode}, int64_t{dims.L}, int64_t{dims.D},
                       dims.I, dims.H, dims.R, int64_t{dims.skip_input}, int64_t{shape.max_length},
                       int64_t{plan.reserve_read_only}}) {
    add(word);
  }
  uint32_t dropout_bits;
  std::memcpy(&dropout_bits, &shape.dropout, sizeof(dropout_bits));
  add(dropout_bits);
  add(static_cast<int64_t>(seed));
  add(static_cast<int64_t>(call));
  for (int rank = 0; rank < plan.sequences.rows(); ++rank) {
    add(plan.sequences.row(rank));
    add(plan.sequences.length(rank));
  }
  return hash;
}

ReserveHeader ReadHeader(const void* reserve) {
  ReserveHeader header;
  std::memcpy(&header, reserve, sizeof(header));
  return header;
}

DropoutMask MaskOf(const CallShape& shape, const void* reserve) {
  const ReserveHeader header = ReadHeader(reserve);
  return {shape.dropout, header.seed, header.call};
}

template <class C>
Reserve<C> BookReserve(const Plan& plan, Arena* arena) {
  arena->Take<ReserveHeader>(1);
  Reserve<C> reserve;
  reserve.Book(plan, arena);
  return reserve;
}

// ---- staging ----

// Tensors of one call: converts what must be converted, with memory from the work arena. While the
// arena only measures, nothing is read or written.
template <class C>
class Stage {
 public:
  Stage(const CallShape& shape, Arena* work) : shape_(shape), plan_(*shape.plan), work_(*work) {}

  // n elements, where they are or converted; null stays null.
  const C* Import(const void* from, int64_t n) {
    if (plan_.stored_as_computed) return static_cast<const C*>(from);
    C* to = work_.template Take<C>(n);
    if (work_.measuring() || !from) return nullptr;
    Convert(n, [&](int64_t begin, int64_t count) {
      ConvertToFloat(shape_.type, Byte(from, begin), AsFloat(to) + begin, count);
    });
    return to;
  }

  // Memory for n elements that Export will convert to `to`.
  C* Buffer(void* to, int64_t n) {
    if (plan_.stored_as_computed) return static_cast<C*>(to);
    C* buffer = work_.template Take<C>(n);
    return to ? buffer : nullptr;
  }
  void Export(const C* buffer, void* to, int64_t n) {
    if (plan_.stored_as_computed || !to) return;
    Convert(n, [&](int64_t begin, int64_t count) {
      ConvertFromFloat(shape_.type, AsFloat(buffer) + begin, Byte(to, begin), count);
    });
  }

  // The rows of a sequence tensor of the caller's, as they lie there.
  template <class E>
  StepRows<E> Rows(E* base, int64_t width) const {
    const int64_t B = plan_.B();
    switch (shape_.layout) {
      case CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED:
        return StepRows<E>(base, width, plan_.sequences);
      case CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED:
        return StepRows<E>(base, width, shape_.max_length * width, plan_.sequences);
      case CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED:
        break;
    }
    return StepRows<E>(base, B * width, width, plan_.sequences);
  }

  // Valid rows where they are, or converted and packed.
  StepRows<const C> ImportRows(const void* from, int64_t width) {
    if (plan_.stored_as_computed) return Rows(static_cast<const C*>(from), width);
    C* packed = work_.template Take<C>(plan_.N(), width);
    if (!work_.measuring()) {
      const auto rows = Rows(static_cast<const uint16_t*>(from), width);
      ForEachStep([&](int t, int rank, int64_t step) {
        ConvertToFloat(shape_.type, rows.at(t, rank), AsFloat(packed) + step * width, width);
      });
    }
    return StepRows<const C>(packed, width, plan_.sequences);
  }
  StepRows<C> BufferRows(void* to, int64_t width) {
    if (plan_.stored_as_computed) return Rows(static_cast<C*>(to), width);
    return StepRows<C>(work_.template Take<C>(plan_.N(), width), width, plan_.sequences);
  }
  void ExportRows(const StepRows<C>& buffer, void* to, int64_t width) {
    if (plan_.stored_as_computed) return;
    const auto rows = Rows(static_cast<uint16_t*>(to), width);
    ForEachStep([&](int t, int rank, int64_t) {
      ConvertFromFloat(shape_.type, AsFloat(buffer.at(t, rank)), rows.at(t, rank), width);
    });
  }

  // Sets every element of the invalid steps; `fill` is one element, null: zero.
  void FillPadding(void* to, int64_t width, const void* fill) const {
    if (shape_.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) return;
    const int64_t T = shape_.max_length, size = ElementSize(shape_.type);
    if (plan_.N() == plan_.B() * T) return;
    const char zero[8] = {};
    const bool is_zero = !fill || std::memcmp(fill, zero, size) == 0;
    const auto rows = Rows(static_cast<char*>(to), width * size);
    for (int rank = 0; rank < plan_.sequences.rows(); ++rank) {
      for (int t = plan_.sequences.length(rank); t < T; ++t) {
        char* row = rows.at(t, rank);
        std::memset(row, 0, width * size);
        for (int64_t j = 0; j < width && !is_zero; ++j) std::memcpy(row + j * size, fill, size);
      }
    }
  }

 private:
  // Only float is ever converted to or from.
  static float* AsFloat(C* p) { return reinterpret_cast<float*>(p); }
  static const float* AsFloat(const C* p) { return reinterpret_cast<const float*>(p); }
  template <class E>
  E* Byte(E* p, int64_t element) const {
    using Bytes = std::conditional_t<std::is_const_v<E>, const char, char>;
    return static_cast<Bytes*>(p) + element * ElementSize(shape_.type);
  }

  template <class F>
  void Convert(int64_t n, F f) const {
    const int tasks = plan_.TasksFor(4.0 * n);
    ParallelOf(shape_).Run(tasks, [&](int task) {
      const int64_t begin = n * task / tasks;
      f(begin, n * (task + 1) / tasks - begin);
    });
  }

  // f(t, rank, number) for every valid step.
  template <class F>
  void ForEachStep(F f) const {
    const Sequences& sequences = plan_.sequences;
    const int tasks = plan_.TasksFor(1000.0 * plan_.N());
    ParallelOf(shape_).Run(tasks, [&](int task) {
      for (int t = task; t < sequences.steps(); t += tasks) {
        for (int rank = 0; rank < sequences.alive(t); ++rank) {
          f(t, rank, sequences.offset(t) + rank);
        }
      }
    });
  }

  const CallShape& shape_;
  const Plan& plan_;
  Arena& work_;
};

template <class C>
Context<C> ContextOf(const CallShape& shape, const DropoutMask& mask) {
  return {*shape.plan, BestKernels<C>(), ParallelOf(shape), mask};
}

int64_t StateElements(const Plan& plan, int64_t width) {
  return plan.dims.pseudo_layers() * plan.B() * width;
}

// ---- the three calls; with measuring arenas they only book ----

template <class C>
void RunForward(const CallShape& shape, const ForwardTensors& tensors, const DropoutMask& mask,
                Arena* work, Arena* reserve) {
  const Plan& plan = *shape.plan;
  const RnnDims& dims = plan.dims;
  Stage<C> stage(shape, work);
  const int64_t h = StateElements(plan, dims.R),
                c = plan.is_lstm() ? StateElements(plan, dims.H) : 0;
  ForwardData<C> data;
  data.weights = stage.Import(tensors.weights, plan.layout.size());
  data.x = stage.ImportRows(tensors.x, dims.I);
  if (plan.stored_as_computed) {
    data.y = stage.Rows(static_cast<C*>(tensors.y), plan.output_width());
  }
  data.initial = {stage.Import(tensors.hx, h), stage.Import(tensors.cx, c)};
  data.hy = stage.Buffer(tensors.hy, h);
  data.cy = stage.Buffer(tensors.cy, c);
  if (plan.training) data.reserve = BookReserve<C>(plan, reserve);
  const StepRows<C> out = Forward(ContextOf<C>(shape, mask), data, work);
  if (work->measuring()) return;
  stage.ExportRows(out, tensors.y, plan.output_width());
  stage.FillPadding(tensors.y, plan.output_width(), tensors.padding_fill);
  stage.Export(data.hy, tensors.hy, h);
  stage.Export(data.cy, tensors.cy, c);
}

template <class C>
void RunBackwardData(const CallShape& shape, const BackwardDataTensors& tensors,
                     const DropoutMask& mask, Arena* work, Arena* reserve) {
  const Plan& plan = *shape.plan;
  const RnnDims& dims = plan.dims;
  BackwardDataData<C> data;
  data.reserve = BookReserve<C>(plan, reserve);
  data.gradients.Book(plan, data.reserve,
                      work);  // first: BackwardWeights finds them at the same place
  Stage<C> stage(shape, work);
  const int64_t h = StateElements(plan, dims.R),
                c = plan.is_lstm() ? StateElements(plan, dims.H) : 0;
  data.weights = stage.Import(tensors.weights, plan.layout.size());
  if (plan.stored_as_computed) {
    data.y = stage.Rows(static_cast<const C*>(tensors.y), plan.output_width());
  }
  data.dy = stage.ImportRows(tensors.dy, plan.output_width());
  data.dx = stage.BufferRows(tensors.dx, dims.I);
  data.initial = {stage.Import(tensors.hx, h), stage.Import(tensors.cx, c)};
  data.final_gradient = {stage.Import(tensors.dhy, h), stage.Import(tensors.dcy, c)};
  data.dhx = stage.Buffer(tensors.dhx, h);
  data.dcx = stage.Buffer(tensors.dcx, c);
  BackwardData(ContextOf<C>(shape, mask), data, work);
  if (work->measuring()) return;
  stage.ExportRows(data.dx, tensors.dx, dims.I);
  stage.FillPadding(tensors.dx, dims.I, nullptr);
  stage.Export(data.dhx, tensors.dhx, h);
  stage.Export(data.dcx, tensors.dcx, c);
}

template <class C>
void RunBackwardWeights(const CallShape& shape, const BackwardWeightsTensors& tensors,
                        const DropoutMask& mask, Arena* work, Arena* reserve) {
  const Plan& plan = *shape.plan;
  BackwardWeightsData<C> data;
  data.reserve = BookReserve<C>(plan, reserve);
  data.gradients.Book(plan, data.reserve, work);
  Stage<C> stage(shape, work);
  data.x = stage.ImportRows(tensors.x, plan.dims.I);
  if (plan.stored_as_computed) {
    data.y = stage.Rows(static_cast<const C*>(tensors.y), plan.output_width());
  }
  data.initial.h = stage.Import(tensors.hx, StateElements(plan, plan.dims.R));
  // The sum that is there already takes part, so it is imported too.
  data.dweights = const_cast<C*>(stage.Import(tensors.dweights, plan.layout.size()));
  BackwardWeights(ContextOf<C>(shape, mask), data, work);
  if (!work->measuring()) stage.Export(data.dweights, tensors.dweights, plan.layout.size());
}

}  // namespace

template <class C>
SpaceSizes MeasureSpaces(const CallShape& shape) {
  Arena reserve(nullptr, Arena::kRelative), forward, data, weights;
  RunForward<C>(shape, {}, {}, &forward, &reserve);
  if (!shape.plan->training) return {forward.Overflows() ? SIZE_MAX : forward.size(), 0};
  Arena again_data, again_weights;
  RunBackwardData<C>(shape, {}, {}, &data, &again_data);
  RunBackwardWeights<C>(shape, {}, {}, &weights, &again_weights);
  const bool overflows =
      reserve.Overflows() || forward.Overflows() || data.Overflows() || weights.Overflows();
  if (overflows) return {SIZE_MAX, SIZE_MAX};
  return {std::max({forward.size(), data.size(), weights.size()}), reserve.size()};
}

template <class C>
void StagedForward(const CallShape& shape, const ForwardTensors& tensors, const DropoutMask& mask,
                   void* work, void* reserve) {
  Arena work_arena(work), reserve_arena(reserve, Arena::kRelative);
  RunForward<C>(shape, tensors, mask, &work_arena, &reserve_arena);
  if (!shape.plan->training) return;
  const ReserveHeader header = {
      kReserveMagic, HashConfiguration(shape, mask.seed, mask.call), mask.seed, mask.call, {}};
  std::memcpy(reserve, &header, sizeof(header));
}

template <class C>
void StagedBackwardData(const CallShape& shape, const BackwardDataTensors& tensors, void* work,
                        void* reserve) {
  Arena work_arena(work), reserve_arena(reserve, Arena::kRelative);
  RunBackwardData<C>(shape, tensors, MaskOf(shape, reserve), &work_arena, &reserve_arena);
}

template <class C>
void StagedBackwardWeights(const CallShape& shape, const BackwardWeightsTensors& tensors,
                           void* work, void* reserve) {
  Arena work_arena(work), reserve_arena(reserve, Arena::kRelative);
  RunBackwardWeights<C>(shape, tensors, MaskOf(shape, reserve), &work_arena, &reserve_arena);
}

cudnnStatus_t CheckReserve(const char* function, const CallShape& shape, const void* reserve) {
  const ReserveHeader header = ReadHeader(reserve);
  const bool rest_is_zero = std::all_of(std::begin(header.unused), std::end(header.unused),
                                        [](uint64_t word) { return word == 0; });
  if (header.magic != kReserveMagic || !rest_is_zero) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function,
                  "reserveSpace was not made by a forward call of the CPU engine");
  }
  if (header.configuration != HashConfiguration(shape, header.seed, header.call)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function,
                  "reserveSpace was made by a forward call of another configuration, shape or "
                  "sequence lengths");
  }
  return CUDNN_STATUS_SUCCESS;
}

#define INSTANTIATE(C)                                                                             \
  template SpaceSizes MeasureSpaces<C>(const CallShape&);                                          \
  template void StagedForward<C>(const CallShape&, const ForwardTensors&, const DropoutMask&,      \
                                 void*, void*);                                                    \
  template void StagedBackwardData<C>(const CallShape&, const BackwardDataTensors&, void*, void*); \
  template void StagedBackwardWeights<C>(const CallShape&, const BackwardWeightsTensors&, void*,   \
                                         void*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tf_cudnn_rnn::cpu
