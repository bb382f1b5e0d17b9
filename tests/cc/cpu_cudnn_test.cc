// The CPU engine's C functions: what they accept, what they refuse, and what they leave alone.
#include "cc/cpu/cpu_cudnn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <functional>
#include <new>

#include "cc/kernels/intra_op_pool.h"
#include "tests/cc/engine_call.h"

// Allocations of this program: counted, and made to fail where a test says so.
namespace {
std::atomic<int64_t> live_allocations{0};
thread_local int64_t allocations_until_failure = -1;  // negative: none fails
thread_local bool has_failed = false;

void* Allocate(size_t size, size_t alignment) {
  if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) {
    has_failed = true;
    return nullptr;
  }
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory) ++live_allocations;
  return memory;
}
void* AllocateOrThrow(size_t size, size_t alignment) {
  void* memory = Allocate(std::max<size_t>(size, 1), alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void Free(void* memory) {
  if (memory) --live_allocations;
  std::free(memory);
}
}  // namespace

void* operator new(size_t size) { return AllocateOrThrow(size, 16); }
void* operator new[](size_t size) { return AllocateOrThrow(size, 16); }
void* operator new(size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 16); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }

namespace tf_cudnn_rnn {
namespace {

constexpr cudnnStatus_t kSuccess = CUDNN_STATUS_SUCCESS, kBadParam = CUDNN_STATUS_BAD_PARAM,
                        kNotSupported = CUDNN_STATUS_NOT_SUPPORTED;

// ---- the Set functions ----

// Arguments of cudnnSetRNNDescriptor_v8.
struct RnnArguments {
  cudnnRNNAlgo_t algo = CUDNN_RNN_ALGO_STANDARD;
  cudnnRNNMode_t mode = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  cudnnRNNInputMode_t input = CUDNN_LINEAR_INPUT;
  cudnnDataType_t type = CUDNN_DATA_FLOAT, math = CUDNN_DATA_FLOAT;
  int32_t I = 3, H = 4, R = 4, L = 2;
  uint32_t flags = CUDNN_RNN_PADDED_IO_ENABLED;
};

cudnnStatus_t Verdict(const RnnArguments& a) {
  RnnDescriptor rnn(cpu::Api());
  DropoutDescriptor dropout(cpu::Api());
  EXPECT_EQ(rnn.Create(), kSuccess);
  EXPECT_EQ(dropout.Create(), kSuccess);
  return cpu::cudnnSetRNNDescriptor_v8(rnn.get(), a.algo, a.mode, a.bias, a.direction, a.input,
                                       a.type, a.math, CUDNN_DEFAULT_MATH, a.I, a.H, a.R, a.L,
                                       dropout.get(), a.flags);
}
cudnnStatus_t Verdict(const std::function<void(RnnArguments*)>& change) {
  RnnArguments arguments;
  change(&arguments);
  return Verdict(arguments);
}

TEST(SetRnnDescriptor, Types) {
  const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                   CUDNN_DATA_BFLOAT16, static_cast<cudnnDataType_t>(3)};
  const std::vector<std::pair<cudnnDataType_t, cudnnDataType_t>> accepted = {
      {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE},
      {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_HALF, CUDNN_DATA_HALF},
      {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT}};
  for (cudnnDataType_t type : types) {
    for (cudnnDataType_t math : types) {
      const bool ok = std::count(accepted.begin(), accepted.end(), std::pair(type, math)) > 0;
      EXPECT_EQ(Verdict([&](RnnArguments* a) { a->type = type, a->math = math; }),
                ok ? kSuccess : kNotSupported)
          << type << " " << math;
    }
  }
}

TEST(SetRnnDescriptor, Sizes) {
  for (int32_t bad : {0, -1, INT_MIN}) {
    EXPECT_EQ(Verdict([&](RnnArguments* a) { a->I = bad; }), kBadParam);
    EXPECT_EQ(Verdict([&](RnnArguments* a) { a->H = bad; }), kBadParam);
    EXPECT_EQ(Verdict([&](RnnArguments* a) { a->R = bad; }), kBadParam);
    EXPECT_EQ(Verdict([&](RnnArguments* a) { a->L = bad; }), kBadParam);
  }
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->I = a->H = a->R = a->L = 1; }), kSuccess);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->I = a->H = a->R = a->L = INT_MAX; }), kSuccess);
}

TEST(SetRnnDescriptor, Projections) {
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->R = 3; }), kSuccess);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->R = 5; }), kNotSupported);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->R = 3, a->algo = CUDNN_RNN_ALGO_PERSIST_STATIC; }),
            kNotSupported);
  for (cudnnRNNMode_t mode : {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_GRU}) {
    EXPECT_EQ(Verdict([&](RnnArguments* a) { a->R = 3, a->mode = mode; }), kNotSupported);
    EXPECT_EQ(Verdict([&](RnnArguments* a) { a->mode = mode; }), kSuccess);
  }
}

TEST(SetRnnDescriptor, Enumerations) {
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->mode = static_cast<cudnnRNNMode_t>(4); }), kBadParam);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->direction = static_cast<cudnnDirectionMode_t>(2); }),
            kBadParam);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->input = static_cast<cudnnRNNInputMode_t>(2); }),
            kBadParam);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->flags = 2; }), kBadParam);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->bias = CUDNN_RNN_NO_BIAS; }), kNotSupported);
  // Whether the widths allow it is for the call to say.
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->input = CUDNN_SKIP_INPUT; }), kSuccess);
  EXPECT_EQ(cpu::cudnnSetRNNDescriptor_v8(nullptr, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM,
                                          CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
                                          CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                          CUDNN_DEFAULT_MATH, 1, 1, 1, 1, nullptr, 0),
            kBadParam);
}

TEST(SetRnnDataDescriptor, Verdicts) {
  RnnDataDescriptor desc(cpu::Api());
  ASSERT_EQ(desc.Create(), kSuccess);
  const auto verdict = [&](int T, int B, int width, std::vector<int> lengths,
                           cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) {
    lengths.resize(std::max<size_t>(1, lengths.size()));
    return cpu::cudnnSetRNNDataDescriptor(desc.get(), CUDNN_DATA_FLOAT, layout, T, B, width,
                                          lengths.data(), nullptr);
  };
  EXPECT_EQ(verdict(4, 3, 2, {1, 4, 0}), kSuccess);
  EXPECT_EQ(verdict(4, 3, 2, {0, 0, 0}), kSuccess);
  EXPECT_EQ(verdict(4, 3, 2, {1, 5, 0}), kBadParam);
  EXPECT_EQ(verdict(4, 3, 2, {1, 4, -1}), kBadParam);
  EXPECT_EQ(verdict(0, 1, 2, {0}), kBadParam);
  EXPECT_EQ(verdict(4, 0, 2, {}), kBadParam);
  EXPECT_EQ(verdict(4, 1, 0, {4}), kBadParam);
  EXPECT_EQ(verdict(4, 1, -2, {4}), kBadParam);
  const auto packed = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  EXPECT_EQ(verdict(4, 3, 2, {4, 4, 1}, packed), kSuccess);
  EXPECT_EQ(verdict(4, 3, 2, {1, 4, 1}, packed), kBadParam);
  EXPECT_EQ(verdict(4, 3, 2, {4, 1, 0}, packed), kBadParam);
  EXPECT_EQ(verdict(4, 1, 2, {4}, static_cast<cudnnRNNDataLayout_t>(3)), kBadParam);
  EXPECT_EQ(verdict(4, 2, 2, {3, 4}), kSuccess);

  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int T, B, width, lengths[5] = {-7, -7, -7, -7, -7};
  EXPECT_EQ(cpu::cudnnGetRNNDataDescriptor(desc.get(), &type, &layout, &T, &B, &width, 5, lengths,
                                           nullptr),
            kSuccess);
  EXPECT_EQ(std::vector<int>({T, B, width}), std::vector<int>({4, 2, 2}));
  EXPECT_EQ(std::vector<int>(lengths, lengths + 5), std::vector<int>({3, 4, -7, -7, -7}));
}

// One element of the data type is read, 8 bytes for double and no more than 2 for half.
TEST(SetRnnDataDescriptor, PaddingFill) {
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF}) {
    EngineCase c;
    c.type = type, c.lengths = {1, 4, 0};
    EngineCall call(c);
    GuardedBytes fill(cpu::ElementSize(type));
    WriteElement(type, -2.5, fill.data(), 0);
    ASSERT_EQ(cpu::cudnnSetRNNDataDescriptor(call.y_desc.get(), type, c.layout, c.T, c.B, c.H,
                                             c.lengths.data(), fill.data()),
              kSuccess);
    ASSERT_EQ(call.Forward(), kSuccess) << LastError();
    for (int t = 0; t < c.T; ++t) {
      for (int b = 0; b < c.B; ++b) {
        for (int j = 0; j < c.H; ++j) {
          const double value = ReadElement(type, call.out.y.data(), call.Row(t, b) * c.H + j);
          EXPECT_EQ(value == -2.5, t >= c.lengths[b]) << value;
        }
      }
    }
  }
}

TEST(SetTensorNdDescriptor, Verdicts) {
  TensorDescriptor desc(cpu::Api());
  ASSERT_EQ(desc.Create(), kSuccess);
  const auto verdict = [&](std::vector<int> dims) {
    const std::vector<int> strides(9, 1);
    const int rank = static_cast<int>(dims.size());
    dims.resize(9);
    return cpu::cudnnSetTensorNdDescriptor(desc.get(), CUDNN_DATA_FLOAT, rank, dims.data(),
                                           strides.data());
  };
  EXPECT_EQ(verdict({1, 2, 3}), kSuccess);
  EXPECT_EQ(verdict({1, 0, 3}), kBadParam);
  EXPECT_EQ(verdict({1, -2, 3}), kBadParam);
  EXPECT_EQ(verdict({}), kBadParam);
  EXPECT_EQ(verdict(std::vector<int>(8, 1)), kSuccess);
  EXPECT_EQ(verdict(std::vector<int>(9, 1)), kBadParam);
}

TEST(SetDropoutDescriptor, Verdicts) {
  EngineCall call(EngineCase{});
  size_t size = 0;
  ASSERT_EQ(cpu::cudnnDropoutGetStatesSize(call.handle.get(), &size), kSuccess);
  GuardedBytes states(size + 1);
  const auto verdict = [&](float dropout, void* memory, size_t bytes) {
    return cpu::cudnnSetDropoutDescriptor(call.dropout_desc.get(), call.handle.get(), dropout,
                                          memory, bytes, 5);
  };
  EXPECT_EQ(verdict(0, nullptr, 0), kSuccess);
  EXPECT_EQ(verdict(0.5f, nullptr, size), kBadParam);
  EXPECT_EQ(verdict(0.5f, states.data(), size - 1), kBadParam);
  EXPECT_EQ(verdict(-0.1f, states.data(), size), kBadParam);
  EXPECT_EQ(verdict(1.1f, states.data(), size), kBadParam);
  EXPECT_EQ(verdict(std::nanf(""), states.data(), size), kBadParam);
  EXPECT_EQ(verdict(0.5f, states.data(), size), kSuccess);
  EXPECT_EQ(verdict(0.5f, states.data() + 1, size), kSuccess);  // need not be aligned
  EXPECT_TRUE(states.GuardsAreIntact());
}

// ---- weights ----

// The sum that the params layout documents.
int64_t ExpectedWeights(const RnnDims& d) {
  int64_t sum = 0;
  for (int l = 0; l < d.L; ++l) {
    const int64_t in = l > 0 ? d.D * d.R : d.skip_input ? 0 : d.I;
    const int64_t projection = d.R < d.H ? d.R * d.H : 0;
    sum += d.D * (d.G * d.H * in + d.G * d.H * d.R + projection + 2 * d.G * d.H);
  }
  return sum;
}

std::vector<EngineCase> WeightCases() {
  std::vector<EngineCase> cases;
  for (cudnnRNNMode_t mode : {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU}) {
    for (int L : {1, 2, 3}) {
      for (int D : {1, 2}) {
        for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF}) {
          EngineCase c;
          c.mode = mode, c.L = L, c.D = D, c.type = type, c.B = 1, c.T = 1;
          cases.push_back(c);
          c.skip_input = true, c.I = c.H;
          cases.push_back(c);
          if (mode != CUDNN_LSTM) continue;
          c.skip_input = false, c.I = 3, c.R = 2;
          cases.push_back(c);
        }
      }
    }
  }
  return cases;
}

TEST(Weights, KnownSizes) {
  const auto size = [](cudnnRNNMode_t mode, int L, int D, int I, int H) {
    EngineCase c;
    c.mode = mode, c.L = L, c.D = D, c.I = I, c.H = H, c.T = c.B = 1;
    return EngineCall(c).weights.size() / sizeof(float);
  };
  EXPECT_EQ(size(CUDNN_LSTM, 3, 2, 143, 143), 1315600u);
  EXPECT_EQ(size(CUDNN_GRU, 1, 1, 28, 128), 60672u);
  EXPECT_EQ(size(CUDNN_LSTM, 1, 1, 3, 2), 56u);
  EXPECT_EQ(size(CUDNN_RNN_RELU, 1, 1, 4, 1), 7u);
  EXPECT_EQ(size(CUDNN_GRU, 1, 1, 4, 1), 21u);
}

// The pieces lie one behind the other, matrices first, and fill the space without a gap.
TEST(Weights, PiecesAreDense) {
  for (const EngineCase& c : WeightCases()) {
    SCOPED_TRACE(testing::Message() << c);
    EngineCall call(c);
    ASSERT_EQ(call.status, kSuccess) << LastError();
    const RnnDims dims = c.dims();
    const int64_t element = cpu::ElementSize(c.type);
    ASSERT_EQ(static_cast<int64_t>(call.weights.size()), ExpectedWeights(dims) * element);
    TensorDescriptor matrix(call.api), bias(call.api);
    ASSERT_EQ(matrix.Create(), kSuccess);
    ASSERT_EQ(bias.Create(), kSuccess);
    const char* next_matrix = call.weights.data();
    std::vector<std::pair<char*, int64_t>> biases;
    for (int p = 0; p < dims.pseudo_layers(); ++p) {
      for (int id = 0; id <= 2 * dims.G; ++id) {
        void *matrix_at, *bias_at;
        ASSERT_EQ(cpu::cudnnGetRNNWeightParams(call.handle.get(), call.rnn.get(), p,
                                               call.weights.size(), call.weights.data(), id,
                                               matrix.get(), &matrix_at, bias.get(), &bias_at),
                  kSuccess);
        cudnnDataType_t type;
        int rank, extent[3], strides[3];
        ASSERT_EQ(cpu::cudnnGetTensorNdDescriptor(matrix.get(), 3, &type, &rank, extent, strides),
                  kSuccess);
        const int64_t in = p >= dims.D ? dims.D * dims.R : dims.skip_input ? 0 : dims.I;
        const bool is_projection = id == 2 * dims.G;
        const int64_t rows = is_projection ? dims.R : dims.H;
        const int64_t columns = is_projection ? (dims.R < dims.H ? dims.H : 0)
                                : id < dims.G ? in
                                              : dims.R;
        if (columns == 0) {
          EXPECT_EQ(matrix_at, nullptr);
          EXPECT_EQ(rank, 0);
        } else {
          EXPECT_EQ(matrix_at, next_matrix) << "p " << p << " id " << id;
          EXPECT_EQ(std::vector<int64_t>(extent, extent + 3),
                    std::vector<int64_t>({1, rows, columns}));
          EXPECT_EQ(std::vector<int64_t>(strides + 1, strides + 3),
                    std::vector<int64_t>({columns, 1}));
          EXPECT_EQ(type, c.type);
          next_matrix += rows * columns * element;
        }
        EXPECT_EQ(bias_at == nullptr, is_projection);
        if (bias_at) biases.emplace_back(static_cast<char*>(bias_at), dims.H * element);
      }
    }
    for (const auto& [at, bytes] : biases) {
      EXPECT_EQ(at, next_matrix);
      next_matrix += bytes;
    }
    EXPECT_EQ(next_matrix, call.weights.data() + call.weights.size());
  }
}

TEST(Weights, Refusals) {
  EngineCall call(EngineCase{});
  TensorDescriptor matrix(call.api), bias(call.api);
  ASSERT_EQ(matrix.Create(), kSuccess);
  ASSERT_EQ(bias.Create(), kSuccess);
  void *matrix_at, *bias_at;
  const auto verdict = [&](int p, int id, size_t size) {
    return cpu::cudnnGetRNNWeightParams(call.handle.get(), call.rnn.get(), p, size,
                                        call.weights.data(), id, matrix.get(), &matrix_at,
                                        bias.get(), &bias_at);
  };
  const size_t size = call.weights.size();
  EXPECT_EQ(verdict(0, 0, size), kSuccess);
  EXPECT_EQ(verdict(1, 0, size), kBadParam);
  EXPECT_EQ(verdict(-1, 0, size), kBadParam);
  EXPECT_EQ(verdict(0, 9, size), kBadParam);
  EXPECT_EQ(verdict(0, -1, size), kBadParam);
  EXPECT_EQ(verdict(0, 0, size - 1), kBadParam);
}

// Sizes whose products do not fit in 63 bits.
TEST(Weights, TooLarge) {
  EngineCase c;
  c.I = c.H = INT_MAX, c.L = 2, c.T = c.B = 1;
  EXPECT_EQ(EngineCall(c).status, kBadParam);
  EXPECT_NE(LastError().find("too large"), std::string::npos) << LastError();
}

// So many layers that their pseudo-layers cannot be counted in an int.
TEST(Weights, TooManyLayers) {
  EngineCall call(EngineCase{});
  ASSERT_EQ(cpu::cudnnSetRNNDescriptor_v8(
                call.rnn.get(), CUDNN_RNN_ALGO_STANDARD, CUDNN_RNN_TANH, CUDNN_RNN_DOUBLE_BIAS,
                CUDNN_BIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                CUDNN_DEFAULT_MATH, 5, 1, 1, INT_MAX, nullptr, CUDNN_RNN_PADDED_IO_ENABLED),
            kSuccess);
  size_t work, reserve, weights;
  EXPECT_EQ(cpu::cudnnGetRNNWeightSpaceSize(call.handle.get(), call.rnn.get(), &weights),
            kBadParam);
  EXPECT_EQ(
      cpu::cudnnGetRNNTempSpaceSizes(call.handle.get(), call.rnn.get(), CUDNN_FWD_MODE_TRAINING,
                                     call.x_desc.get(), &work, &reserve),
      kBadParam);
  EXPECT_EQ(call.Forward(), kBadParam);
}

// ---- spaces ----

std::vector<EngineCase> CallCases() {
  std::vector<EngineCase> cases;
  for (cudnnRNNMode_t mode : {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU}) {
    for (cudnnDataType_t type :
         {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
      for (int L : {1, 3}) {
        EngineCase c;
        c.mode = mode, c.type = type, c.L = L, c.D = 2;
        c.lengths = {1, 4, 0};
        cases.push_back(c);
        c.D = 1, c.lengths = {4, 2, 1}, c.layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
        cases.push_back(c);
        c.layout = CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, c.D = 2;
        c.dropout = 0.5f;
        if (mode == CUDNN_LSTM) c.R = 2;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

// With a reserve that may and that may not be written to.
TEST(Spaces, NothingBeyondThemIsTouched) {
  for (const EngineCase& c : CallCases()) {
    SCOPED_TRACE(testing::Message() << c);
    for (bool read_only : {false, true}) {
      EngineCall call(c, nullptr, read_only);
      ASSERT_EQ(call.Run(), kSuccess) << LastError();
      EXPECT_TRUE(call.GuardsAreIntact());
      // Every element is computed: none is still the NaN that it was.
      for (const GuardedBytes* each :
           {&call.out.y, &call.out.hy, &call.out.dx, &call.out.dhx, &call.out.dweights}) {
        for (size_t i = 0; i < each->size() / cpu::ElementSize(c.type); ++i) {
          ASSERT_TRUE(std::isfinite(ReadElement(c.type, each->data(), i))) << i;
        }
      }
    }
  }
}

TEST(Spaces, LessIsRefused) {
  for (const EngineCase& c : CallCases()) {
    if (c.L > 1) continue;
    SCOPED_TRACE(testing::Message() << c);
    EngineCall call(c);
    ASSERT_EQ(call.Run(), kSuccess);
    const GuardedBytes work = call.work, reserve = call.reserve, weights = call.weights;
    const auto expect_refused = [&](const char* name) {
      EXPECT_EQ(call.Forward(), kBadParam);
      EXPECT_NE(LastError().find(name), std::string::npos) << LastError();
      EXPECT_EQ(call.BackwardData(), kBadParam);
      EXPECT_NE(LastError().find(name), std::string::npos) << LastError();
      EXPECT_TRUE(call.GuardsAreIntact());
    };
    call.work.Resize(work.size() - 1);
    expect_refused("workSpace");
    EXPECT_EQ(call.BackwardWeights(), kBadParam);
    call.work = work;
    call.reserve.Resize(reserve.size() - 1);
    expect_refused("reserveSpace");
    EXPECT_EQ(call.BackwardWeights(), kBadParam);
    call.reserve = reserve;
    call.weights.Resize(weights.size() - 1);
    expect_refused("weightSpaceSize");
    call.weights = weights;
    EXPECT_EQ(call.Forward(), kSuccess);
  }
}

// An inference needs no reserve, and less work space.
TEST(Spaces, Inference) {
  EngineCall call(EngineCase{});
  size_t work = 0, reserve = 1;
  ASSERT_EQ(
      cpu::cudnnGetRNNTempSpaceSizes(call.handle.get(), call.rnn.get(), CUDNN_FWD_MODE_INFERENCE,
                                     call.x_desc.get(), &work, &reserve),
      kSuccess);
  EXPECT_EQ(reserve, 0u);
  EXPECT_EQ(call.Forward(), kSuccess);
  const GuardedBytes trained = call.out.y;
  call.work.Resize(work);
  EXPECT_EQ(
      call.api.cudnnRNNForward(call.handle.get(), call.rnn.get(), CUDNN_FWD_MODE_INFERENCE, nullptr,
                               call.x_desc.get(), call.x.data(), call.y_desc.get(),
                               call.out.y.data(), call.h_desc.get(), call.hx.data(), nullptr,
                               call.c_desc.get(), call.cx.data(), nullptr, call.weights.size(),
                               call.weights.data(), work, call.work.data(), 0, nullptr),
      kSuccess)
      << LastError();
  EXPECT_TRUE(call.out.y == trained);
  EXPECT_TRUE(call.GuardsAreIntact());
}

// Wherever the work space begins, and from one copy of the reserve to the next.
TEST(Spaces, MayMove) {
  for (const EngineCase& c : CallCases()) {
    SCOPED_TRACE(testing::Message() << c);
    EngineCall call(c);
    ASSERT_EQ(call.Run(), kSuccess);
    const EngineResults expected = call.out;
    EngineCall moved(c);
    const size_t work_size = moved.work.size(), reserve_size = moved.reserve.size();
    GuardedBytes work(work_size + 64), reserve(reserve_size + 64);
    size_t offset = 8;
    const auto forward = [&] {
      return moved.api.cudnnRNNForward(
          moved.handle.get(), moved.rnn.get(), CUDNN_FWD_MODE_TRAINING, nullptr, moved.x_desc.get(),
          moved.x.data(), moved.y_desc.get(), moved.out.y.data(), moved.h_desc.get(),
          moved.hx.data(), moved.out.hy.data(), moved.c_desc.get(), moved.cx.data(),
          moved.out.cy.data(), moved.weights.size(), moved.weights.data(), work_size,
          work.data() + offset, reserve_size, reserve.data() + offset);
    };
    ASSERT_EQ(forward(), kSuccess) << LastError();
    std::memcpy(moved.reserve.data(), reserve.data() + offset, reserve_size);
    ASSERT_EQ(moved.BackwardData(), kSuccess);
    ASSERT_EQ(moved.BackwardWeights(), kSuccess);
    EXPECT_EQ(moved.out.DifferenceFrom(expected), "");
    offset = 4;  // not aligned for double
    EXPECT_EQ(forward(), kBadParam);
    EXPECT_NE(LastError().find("aligned"), std::string::npos) << LastError();
  }
}

// ---- the reserve space ----

void ExpectReserveRefused(EngineCall* call, const char* what) {
  EXPECT_EQ(call->BackwardData(), kBadParam) << what;
  EXPECT_NE(LastError().find("reserveSpace"), std::string::npos) << LastError();
  EXPECT_EQ(call->BackwardWeights(), kBadParam) << what;
  EXPECT_NE(LastError().find("reserveSpace"), std::string::npos) << LastError();
}

TEST(Reserve, ForeignBytes) {
  EngineCall call(EngineCase{});
  ASSERT_EQ(call.Forward(), kSuccess);
  for (char byte : {0, 1, 0x7f, -1}) {
    std::memset(call.reserve.data(), byte, call.reserve.size());
    ExpectReserveRefused(&call, "foreign");
  }
}

// Any single bit of the header: also those of the mask, which would make other gradients.
TEST(Reserve, BitFlipsInTheHeader) {
  EngineCase c;
  c.L = 2, c.dropout = 0.5f;
  EngineCall call(c);
  ASSERT_EQ(call.Forward(), kSuccess);
  for (int bit = 0; bit < 64 * 8; ++bit) {
    call.reserve.data()[bit / 8] ^= static_cast<char>(1 << bit % 8);
    ExpectReserveRefused(&call, "flipped");
    call.reserve.data()[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
  EXPECT_EQ(call.BackwardData(), kSuccess);
}

// Each differs from the first in one respect.
TEST(Reserve, OfAnotherCall) {
  EngineCase c;
  c.lengths = {4, 2, 4}, c.I = c.H = 6, c.L = 2;
  std::vector<std::pair<const char*, EngineCase>> others;
  const auto add = [&](const char* what, const std::function<void(EngineCase*)>& change) {
    EngineCase other = c;
    change(&other);
    others.emplace_back(what, other);
  };
  add("lengths", [](EngineCase* o) { o->lengths = {2, 4, 4}; });
  add("one length", [](EngineCase* o) { o->lengths = {4, 3, 4}; });
  add("T", [](EngineCase* o) { o->T = 5; });
  add("B", [](EngineCase* o) { o->B = 2, o->lengths = {4, 4}; });
  add("mode", [](EngineCase* o) { o->mode = CUDNN_GRU; });
  add("type", [](EngineCase* o) { o->type = CUDNN_DATA_DOUBLE; });
  add("half", [](EngineCase* o) { o->type = CUDNN_DATA_HALF; });
  add("layers", [](EngineCase* o) { o->L = 3; });
  add("direction", [](EngineCase* o) { o->D = 2; });
  add("input size", [](EngineCase* o) { o->I = 7; });
  add("units", [](EngineCase* o) { o->H = 7; });
  add("projection", [](EngineCase* o) { o->R = 3; });
  add("skip_input", [](EngineCase* o) { o->skip_input = true; });
  add("dropout", [](EngineCase* o) { o->dropout = 0.5f; });
  EngineCall first(c);
  ASSERT_EQ(first.Forward(), kSuccess);
  for (auto& [what, other] : others) {
    EngineCall call(other);
    ASSERT_EQ(call.Forward(), kSuccess) << what;
    const size_t n = std::min(call.reserve.size(), first.reserve.size());
    std::memcpy(call.reserve.data(), first.reserve.data(), n);
    ExpectReserveRefused(&call, what);
  }
  // Nor with the other way of passing gradients on.
  ASSERT_EQ(cpu::SetReserveReadOnly(first.handle.get(), true), kSuccess);
  first.work.Resize(first.work.size() + (1 << 16));
  ExpectReserveRefused(&first, "read-only");
}

// ---- pointers and descriptors ----

TEST(Calls, NullPointers) {
  EngineCall call(EngineCase{});
  ASSERT_EQ(call.Run(), kSuccess);
  const CudnnApi& api = call.api;
  const auto forward = [&](cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                           cudnnRNNDataDescriptor_t x_desc, const void* x,
                           cudnnRNNDataDescriptor_t y_desc, void* y, const void* weights) {
    return api.cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_TRAINING, nullptr, x_desc, x, y_desc, y,
                               nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                               call.weights.size(), weights, call.work.size(), call.work.data(),
                               call.reserve.size(), call.reserve.data());
  };
  cudnnHandle_t handle = call.handle.get();
  cudnnRNNDescriptor_t rnn = call.rnn.get();
  cudnnRNNDataDescriptor_t x_desc = call.x_desc.get(), y_desc = call.y_desc.get();
  const void *x = call.x.data(), *weights = call.weights.data();
  void* y = call.out.y.data();
  EXPECT_EQ(forward(handle, rnn, x_desc, x, y_desc, y, weights), kSuccess);
  EXPECT_EQ(forward(nullptr, rnn, x_desc, x, y_desc, y, weights), kBadParam);
  EXPECT_EQ(forward(handle, nullptr, x_desc, x, y_desc, y, weights), kBadParam);
  EXPECT_EQ(forward(handle, rnn, nullptr, x, y_desc, y, weights), kBadParam);
  EXPECT_EQ(forward(handle, rnn, x_desc, nullptr, y_desc, y, weights), kBadParam);
  EXPECT_EQ(forward(handle, rnn, x_desc, x, nullptr, y, weights), kBadParam);
  EXPECT_EQ(forward(handle, rnn, x_desc, x, y_desc, nullptr, weights), kBadParam);
  EXPECT_EQ(forward(handle, rnn, x_desc, x, y_desc, y, nullptr), kBadParam);
  // Made but never set.
  RnnDescriptor unset_rnn(api);
  RnnDataDescriptor unset_data(api);
  ASSERT_EQ(unset_rnn.Create(), kSuccess);
  ASSERT_EQ(unset_data.Create(), kSuccess);
  EXPECT_EQ(forward(handle, unset_rnn.get(), x_desc, x, y_desc, y, weights), kBadParam);
  EXPECT_EQ(forward(handle, rnn, unset_data.get(), x, y_desc, y, weights), kBadParam);
  EXPECT_EQ(forward(handle, rnn, x_desc, x, unset_data.get(), y, weights), kBadParam);

  EXPECT_EQ(api.cudnnCreate(nullptr), kBadParam);
  EXPECT_EQ(api.cudnnDestroy(nullptr), kSuccess);
  EXPECT_EQ(api.cudnnGetRNNWeightSpaceSize(handle, rnn, nullptr), kBadParam);
  EXPECT_EQ(
      api.cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x_desc, nullptr, nullptr),
      kSuccess);
  EXPECT_EQ(api.cudnnSetStream(nullptr, nullptr), kBadParam);
  EXPECT_EQ(cpu::SetParallel(nullptr, nullptr), kBadParam);
  EXPECT_EQ(cpu::SetReserveReadOnly(nullptr, true), kBadParam);
}

TEST(Calls, MisalignedPointers) {
  EngineCall call(EngineCase{});
  ASSERT_EQ(call.Run(), kSuccess);
  const GuardedBytes wide(call.x.size() + 64);
  const char* x = wide.data() + 2;
  EXPECT_EQ(call.api.cudnnRNNForward(
                call.handle.get(), call.rnn.get(), CUDNN_FWD_MODE_TRAINING, nullptr,
                call.x_desc.get(), x, call.y_desc.get(), call.out.y.data(), nullptr, nullptr,
                nullptr, nullptr, nullptr, nullptr, call.weights.size(), call.weights.data(),
                call.work.size(), call.work.data(), call.reserve.size(), call.reserve.data()),
            kBadParam);
  EXPECT_NE(LastError().find("AreAligned"), std::string::npos) << LastError();
}

// Without initial states they are zeros; states and gradients that nobody wants are not computed.
TEST(Calls, OptionalPointers) {
  for (const EngineCase& c : CallCases()) {
    SCOPED_TRACE(testing::Message() << c);
    EngineCall zeros(c), nulls(c);
    for (GuardedBytes* each : {&zeros.hx, &zeros.cx, &zeros.dhy, &zeros.dcy}) {
      std::memset(each->data(), 0, each->size());
    }
    ASSERT_EQ(zeros.Run(), kSuccess);
    EngineCall& n = nulls;
    ASSERT_EQ(n.api.cudnnRNNForward(n.handle.get(), n.rnn.get(), CUDNN_FWD_MODE_TRAINING, nullptr,
                                    n.x_desc.get(), n.x.data(), n.y_desc.get(), n.out.y.data(),
                                    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    n.weights.size(), n.weights.data(), n.work.size(),
                                    n.work.data(), n.reserve.size(), n.reserve.data()),
              kSuccess)
        << LastError();
    ASSERT_EQ(n.api.cudnnRNNBackwardData_v8(
                  n.handle.get(), n.rnn.get(), nullptr, n.y_desc.get(), n.out.y.data(), n.dy.data(),
                  n.x_desc.get(), n.out.dx.data(), nullptr, nullptr, nullptr, nullptr, nullptr,
                  nullptr, nullptr, nullptr, n.weights.size(), n.weights.data(), n.work.size(),
                  n.work.data(), n.reserve.size(), n.reserve.data()),
              kSuccess)
        << LastError();
    ASSERT_EQ(n.api.cudnnRNNBackwardWeights_v8(
                  n.handle.get(), n.rnn.get(), CUDNN_WGRAD_MODE_SET, nullptr, n.x_desc.get(),
                  n.x.data(), nullptr, nullptr, n.y_desc.get(), n.out.y.data(), n.weights.size(),
                  n.out.dweights.data(), n.work.size(), n.work.data(), n.reserve.size(),
                  n.reserve.data()),
              kSuccess)
        << LastError();
    EXPECT_TRUE(n.out.y == zeros.out.y);
    EXPECT_TRUE(n.out.dx == zeros.out.dx);
    EXPECT_TRUE(n.out.dweights == zeros.out.dweights);
    EXPECT_TRUE(n.GuardsAreIntact());
  }
}

// Descriptors that do not fit together.
TEST(Calls, Descriptors) {
  EngineCase c;
  c.lengths = {4, 2, 4};
  const auto refused = [&](const std::function<cudnnStatus_t(EngineCall*)>& change) {
    EngineCall call(c);
    EXPECT_EQ(call.Forward(), kSuccess);
    EXPECT_EQ(change(&call), kSuccess);
    return call.Forward() == kBadParam && call.BackwardData() == kBadParam;
  };
  const auto set_data = [&](cudnnRNNDataDescriptor_t desc, int T, int width, std::vector<int> l,
                            cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return cpu::cudnnSetRNNDataDescriptor(desc, type, c.layout, T, static_cast<int>(l.size()),
                                          width, l.data(), nullptr);
  };
  const auto set_state = [&](cudnnTensorDescriptor_t desc, std::vector<int> dims,
                             cudnnDataType_t type = CUDNN_DATA_FLOAT, int inner_stride = 1) {
    std::vector<int> strides(dims.size(), inner_stride);
    for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
    return cpu::cudnnSetTensorNdDescriptor(desc, type, static_cast<int>(dims.size()), dims.data(),
                                           strides.data());
  };
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_data(k->x_desc.get(), 4, 4, c.lengths); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_data(k->y_desc.get(), 4, 7, c.lengths); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_data(k->y_desc.get(), 4, 6, {4, 2, 3}); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_data(k->y_desc.get(), 5, 6, c.lengths); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_data(k->y_desc.get(), 4, 6, {4, 2}); }));
  EXPECT_TRUE(refused(
      [&](EngineCall* k) { return set_data(k->x_desc.get(), 4, 5, c.lengths, CUDNN_DATA_HALF); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_state(k->h_desc.get(), {1, 3, 5}); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_state(k->h_desc.get(), {2, 3, 6}); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_state(k->h_desc.get(), {1, 2, 6}); }));
  EXPECT_TRUE(refused([&](EngineCall* k) { return set_state(k->c_desc.get(), {3, 6}); }));
  EXPECT_TRUE(refused(
      [&](EngineCall* k) { return set_state(k->h_desc.get(), {1, 3, 6}, CUDNN_DATA_HALF); }));
  EXPECT_TRUE(refused(
      [&](EngineCall* k) { return set_state(k->c_desc.get(), {1, 3, 6}, CUDNN_DATA_FLOAT, 2); }));
}

TEST(Calls, SkipInputOfAnotherWidth) {
  EngineCase c;
  c.skip_input = true;  // I = 5, H = 6
  EngineCall call(c);
  ASSERT_EQ(call.status, kSuccess);
  EXPECT_EQ(call.Forward(), kBadParam);
}

TEST(Calls, PaddingNeedsTheFlag) {
  for (const std::vector<int>& lengths : {std::vector<int>{4, 4, 4}, {4, 3, 4}}) {
    EngineCase c;
    c.lengths = lengths;
    EngineCall call(c);
    ASSERT_EQ(cpu::cudnnSetRNNDescriptor_v8(
                  call.rnn.get(), CUDNN_RNN_ALGO_STANDARD, c.mode, CUDNN_RNN_DOUBLE_BIAS,
                  CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, c.type, c.type, CUDNN_DEFAULT_MATH, c.I,
                  c.H, c.H, c.L, nullptr, CUDNN_RNN_PADDED_IO_DISABLED),
              kSuccess);
    EXPECT_EQ(call.Forward(), lengths[1] == 4 ? kSuccess : kBadParam);
  }
}

// BackwardWeights adds to what is there, unless told to set.
TEST(Calls, WeightGradientsAreAdded) {
  for (cudnnDataType_t type : {CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF}) {
    EngineCase c;
    c.type = type;
    EngineCall call(c);
    ASSERT_EQ(call.Run(), kSuccess);
    const GuardedBytes once = call.out.dweights;
    ASSERT_EQ(call.BackwardWeights(), kSuccess);
    for (size_t i = 0; i < once.size() / cpu::ElementSize(type); ++i) {
      const double first = ReadElement(type, once.data(), i);
      EXPECT_NEAR(ReadElement(type, call.out.dweights.data(), i), 2 * first,
                  std::abs(first) * (type == CUDNN_DATA_DOUBLE ? 1e-14 : 2e-3) + 1e-6);
    }
    ASSERT_EQ(call.BackwardWeights(CUDNN_WGRAD_MODE_SET), kSuccess);
    EXPECT_TRUE(call.out.dweights == once);
  }
}

// ---- memory ----

struct AbsentPool {
  void Schedule(const std::function<void()>&) {}
};

// Fails the first allocation of `call`, then only the second, and so on until none is left; each
// failure must be a status, unless the call can do without, and must leave as much memory allocated
// as before.
template <class F>
void FailEachAllocation(const char* what, F call) {
  for (int64_t n = 0;; ++n) {
    ASSERT_LT(n, 1000) << what;
    const int64_t before = live_allocations;
    allocations_until_failure = n;
    has_failed = false;
    const cudnnStatus_t status = call();
    allocations_until_failure = -1;
    if (status == kSuccess) {
      if (has_failed) continue;
      return;
    }
    ASSERT_TRUE(has_failed) << what << " " << LastError();
    ASSERT_EQ(status, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) << what << " " << n;
    ASSERT_EQ(live_allocations, before) << what << " " << n;
    ASSERT_NE(LastError().find("out of memory"), std::string::npos) << what << " " << n;
  }
}

TEST(Memory, EachFailureIsAStatus) {
  AbsentPool pool;
  const IntraOpPool<AbsentPool> parallel(&pool, 8);
  for (EngineCase c : CallCases()) {
    if (c.type != (c.L > 1 ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF)) continue;
    if (c.L > 1) c.L = 2, c.H = c.R > 0 ? 70 : 150, c.T = 4;  // enough work to be divided
    SCOPED_TRACE(testing::Message() << c);
    EngineCall expected(c), call(c, &parallel, true);
    ASSERT_EQ(call.status, kSuccess);
    ASSERT_EQ(expected.Run(), kSuccess);
    size_t work, reserve;
    FailEachAllocation("sizes", [&] {
      return call.api.cudnnGetRNNTempSpaceSizes(call.handle.get(), call.rnn.get(),
                                                CUDNN_FWD_MODE_TRAINING, call.x_desc.get(), &work,
                                                &reserve);
    });
    FailEachAllocation("forward", [&] { return call.Forward(); });
    // Of the failed calls none, or some, have drawn a mask: begin anew.
    ASSERT_EQ(cpu::cudnnSetDropoutDescriptor(call.dropout_desc.get(), call.handle.get(), c.dropout,
                                             call.dropout_states.data(), call.dropout_states.size(),
                                             c.seed),
              kSuccess);
    ASSERT_EQ(call.Forward(), kSuccess);
    FailEachAllocation("backward data", [&] { return call.BackwardData(); });
    FailEachAllocation("backward weights",
                       [&] { return call.BackwardWeights(CUDNN_WGRAD_MODE_SET); });
    EXPECT_TRUE(call.GuardsAreIntact());
    EXPECT_EQ(call.out.DifferenceFrom(expected.out), "");
  }
}

TEST(Memory, FailuresOfObjects) {
  const CudnnApi& api = cpu::Api();
  const int64_t before = live_allocations;
  cudnnHandle_t handle = nullptr;
  FailEachAllocation("handle", [&] { return api.cudnnCreate(&handle); });
  cudnnRNNDescriptor_t rnn = nullptr;
  FailEachAllocation("rnn", [&] { return api.cudnnCreateRNNDescriptor(&rnn); });
  cudnnRNNDataDescriptor_t data = nullptr;
  FailEachAllocation("data", [&] { return api.cudnnCreateRNNDataDescriptor(&data); });
  std::vector<int> lengths(1000, 3);
  FailEachAllocation("lengths", [&] {
    return api.cudnnSetRNNDataDescriptor(data, CUDNN_DATA_FLOAT,
                                         CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 3, 1000, 2,
                                         lengths.data(), nullptr);
  });
  EXPECT_EQ(api.cudnnDestroy(handle), kSuccess);
  EXPECT_EQ(api.cudnnDestroyRNNDescriptor(rnn), kSuccess);
  EXPECT_EQ(api.cudnnDestroyRNNDataDescriptor(data), kSuccess);
  EXPECT_EQ(live_allocations, before + 1);  // `lengths`
}

// Also where the padding flag is not set and lengths must be compared.
TEST(Memory, FailuresWithoutPaddedIo) {
  EngineCase c;
  EngineCall call(c);
  ASSERT_EQ(cpu::cudnnSetRNNDescriptor_v8(
                call.rnn.get(), CUDNN_RNN_ALGO_STANDARD, c.mode, CUDNN_RNN_DOUBLE_BIAS,
                CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, c.type, c.type, CUDNN_DEFAULT_MATH, c.I,
                c.H, c.H, c.L, nullptr, CUDNN_RNN_PADDED_IO_DISABLED),
            kSuccess);
  FailEachAllocation("forward", [&] { return call.Forward(); });
}

// Tasks run on threads that could not pass an exception on, so they must not allocate.
TEST(Memory, TasksAllocateNothing) {
  class Watch : public cpu::Parallel {
   public:
    int num_threads() const override { return 4; }
    double least_task() const override { return 1e5; }
    void Run(int count, const std::function<void(int)>& task) const override {
      const int64_t before = allocations_until_failure;
      for (int i = 0; i < count; ++i) {
        allocations_until_failure = 1000000;
        task(i);
        used += 1000000 - allocations_until_failure;
        allocations_until_failure = before;
      }
    }
    mutable int64_t used = 0;
  };
  for (EngineCase c : CallCases()) {
    c.H = c.R > 0 ? 40 : 90;
    const Watch watch;
    EngineCall call(c, &watch);
    ASSERT_EQ(call.Run(), kSuccess);
    EXPECT_EQ(watch.used, 0) << c;
  }
}

// ---- the rest of the table ----

TEST(Table, IsComplete) {
  const CudnnApi& api = cpu::Api();
#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments) EXPECT_NE(api.name, nullptr);
#include "cc/cudnn/cudnn_functions.inc"
  EXPECT_GE(api.cudnnGetVersion(), 90000u);
}

TEST(Table, Errors) {
  EXPECT_STREQ(cpu::cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM), "CUDNN_STATUS_BAD_PARAM");
  EXPECT_STREQ(cpu::cudnnGetErrorString(static_cast<cudnnStatus_t>(-1)), "CUDNN_UNKNOWN_STATUS");
  char message[8] = "before";
  cpu::cudnnGetLastErrorString(message, 0);
  EXPECT_STREQ(message, "before");
  cpu::cudnnGetLastErrorString(nullptr, 8);
  EXPECT_EQ(Verdict([](RnnArguments* a) { a->I = 0; }), kBadParam);
  cpu::cudnnGetLastErrorString(message, sizeof(message));
  EXPECT_STREQ(message, "cudnnSe");
}

}  // namespace
}  // namespace tf_cudnn_rnn
