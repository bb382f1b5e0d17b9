// Outputs, states and gradients are the same, bit for bit, whatever threads there are.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>

#include "benchmarks/thread_pool.h"
#include "cc/kernels/intra_op_pool.h"
#include "tests/cc/engine_call.h"

namespace tf_cudnn_rnn {
namespace {

// So little that small calls are divided too.
constexpr double kLeastTask = 1e5;

template <class Pool>
class EagerPool final : public IntraOpPool<Pool> {
 public:
  using IntraOpPool<Pool>::IntraOpPool;
  double least_task() const override { return kLeastTask; }
};

// A pool whose threads never come.
struct AbsentPool {
  void Schedule(const std::function<void()>&) {}
};

// Every task on the caller's thread, the last one first.
class Backwards : public cpu::Parallel {
 public:
  explicit Backwards(int threads) : threads_(threads) {}
  int num_threads() const override { return threads_; }
  double least_task() const override { return kLeastTask; }
  void Run(int count, const std::function<void(int)>& task) const override {
    for (int i = count - 1; i >= 0; --i) task(i);
  }

 private:
  const int threads_;
};

// All the threads that the tests use, made once. They outnumber the cores of a small machine, so
// that members of a team also wait for one that does not run.
struct Threads {
  AbsentPool absent_pool;
  ThreadPool pool_of_3{2}, pool_of_8{7};
  const EagerPool<ThreadPool> one{&pool_of_3, 1}, two{&pool_of_3, 2}, three{&pool_of_3, 3},
      eight{&pool_of_8, 8};
  const EagerPool<AbsentPool> alone_of_2{&absent_pool, 2}, alone_of_8{&absent_pool, 8};
  const Backwards backwards_2{2}, backwards_3{3}, backwards_8{8};

  std::map<std::string, const cpu::Parallel*> all() const {
    return {{"1", &one},
            {"2", &two},
            {"3", &three},
            {"8", &eight},
            {"alone of 2", &alone_of_2},
            {"alone of 8", &alone_of_8},
            {"backwards, 2", &backwards_2},
            {"backwards, 3", &backwards_3},
            {"backwards, 8", &backwards_8}};
  }
};
const Threads& AllThreads() {
  static const Threads threads;
  return threads;
}

EngineResults Train(const EngineCase& c, const cpu::Parallel* parallel, bool reserve_read_only) {
  EngineCall call(c, parallel, reserve_read_only);
  EXPECT_EQ(call.status, CUDNN_STATUS_SUCCESS) << LastError();
  EXPECT_EQ(call.Forward(), CUDNN_STATUS_SUCCESS) << LastError();
  const GuardedBytes reserve = call.reserve;
  EXPECT_EQ(call.BackwardData(), CUDNN_STATUS_SUCCESS) << LastError();
  EXPECT_EQ(call.BackwardWeights(), CUDNN_STATUS_SUCCESS) << LastError();
  EXPECT_TRUE(!reserve_read_only || call.reserve == reserve) << "the reserve was written to";
  EXPECT_TRUE(call.GuardsAreIntact());
  return call.out;
}

EngineResults Infer(const EngineCase& c, const cpu::Parallel* parallel) {
  EngineCall call(c, parallel);
  EXPECT_EQ(call.Infer(), CUDNN_STATUS_SUCCESS) << LastError();
  EXPECT_TRUE(call.GuardsAreIntact());
  return call.out;
}

void ExpectSameForAllThreads(const EngineCase& c) {
  SCOPED_TRACE(testing::Message() << c);
  const EngineResults expected = Train(c, nullptr, false);
  const EngineResults inferred = Infer(c, nullptr);
  EXPECT_EQ(expected.DifferenceFrom(Train(c, nullptr, true)), "") << "read-only reserve, serial";
  bool read_only = false;
  for (const auto& [name, parallel] : AllThreads().all()) {
    read_only = !read_only;
    EXPECT_EQ(expected.DifferenceFrom(Train(c, parallel, read_only)), "")
        << name << (read_only ? ", read-only reserve" : "");
    EXPECT_EQ(inferred.DifferenceFrom(Infer(c, parallel)), "") << name << ", inference";
  }
}

// Lengths from 0 to T, unsorted, T among them.
std::vector<int> MixedLengths(int T, int B) {
  std::vector<int> lengths(B);
  for (int b = 0; b < B; ++b) lengths[b] = (b * 7 + 3) % (T + 1);
  lengths[B / 2] = T;
  return lengths;
}

const cudnnRNNMode_t kModes[] = {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU};

class EngineThreads : public testing::TestWithParam<cudnnRNNMode_t> {};

// Large enough to be divided: a task has at least kLeastTask operations.
TEST_P(EngineThreads, LayersAndDirections) {
  for (int L : {1, 2}) {
    for (int D : {1, 2}) {
      EngineCase c;
      c.mode = GetParam(), c.L = L, c.D = D;
      c.T = 9, c.B = 12, c.I = 17, c.H = c.mode == CUDNN_LSTM ? 41 : 61;
      ExpectSameForAllThreads(c);
      c.lengths = MixedLengths(c.T, c.B);
      c.layout = CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;
      ExpectSameForAllThreads(c);
    }
  }
}

TEST_P(EngineThreads, Types) {
  for (cudnnDataType_t type :
       {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    EngineCase c;
    c.mode = GetParam(), c.type = type, c.L = 2, c.D = 2;
    c.T = 7, c.B = 10, c.I = 11, c.H = 48;
    c.lengths = MixedLengths(c.T, c.B);
    ExpectSameForAllThreads(c);
  }
}

// Of many rows each thread gets some; and one row more or less changes the shares.
TEST_P(EngineThreads, BatchSizes) {
  for (int B : {1, 2, 3, 5, 13, 39, 40}) {
    EngineCase c;
    c.mode = GetParam(), c.B = B, c.D = 1 + B % 2;
    c.T = 6, c.I = 20, c.H = 70;
    c.lengths = MixedLengths(c.T, c.B);
    ExpectSameForAllThreads(c);
  }
}

// Few rows and large matrices: threads share the units of a step instead (cc/cpu/team.h).
TEST_P(EngineThreads, Teams) {
  for (int B : {1, 3}) {
    EngineCase c;
    c.mode = GetParam(), c.B = B;
    c.T = 4, c.I = 33, c.H = c.mode == CUDNN_LSTM || c.mode == CUDNN_GRU ? 260 : 455;
    ExpectSameForAllThreads(c);
    c.D = 2, c.lengths = MixedLengths(c.T, c.B);
    ExpectSameForAllThreads(c);
  }
}

TEST_P(EngineThreads, TeamsInDouble) {
  EngineCase c;
  c.mode = GetParam(), c.type = CUDNN_DATA_DOUBLE, c.B = 3, c.T = 4, c.I = 10;
  c.H = c.mode == CUDNN_LSTM || c.mode == CUDNN_GRU ? 256 : 448;
  ExpectSameForAllThreads(c);
}

// So few steps that the weights are not packed.
TEST_P(EngineThreads, ShortCalls) {
  for (int T : {1, 2}) {
    EngineCase c;
    c.mode = GetParam(), c.D = T, c.B = T == 1 ? 1 : 3, c.T = T, c.I = 33, c.H = 290;
    ExpectSameForAllThreads(c);
  }
}

// No step at all; one row of all has steps; one step.
TEST_P(EngineThreads, FewSteps) {
  EngineCase c;
  c.mode = GetParam(), c.L = 2, c.D = 2, c.T = 8, c.B = 6, c.I = 9, c.H = 90;
  for (const std::vector<int>& lengths :
       {std::vector<int>{0, 0, 0, 0, 0, 0}, {0, 0, 8, 0, 0, 0}, {0, 1, 0, 0, 0, 0}}) {
    c.lengths = lengths;
    ExpectSameForAllThreads(c);
  }
}

TEST_P(EngineThreads, SkipInputAndDropout) {
  EngineCase c;
  c.mode = GetParam(), c.L = 3, c.D = 2, c.T = 6, c.B = 9, c.I = c.H = 50;
  c.skip_input = true, c.dropout = 0.4f;
  c.lengths = MixedLengths(c.T, c.B);
  ExpectSameForAllThreads(c);
}

TEST_P(EngineThreads, Packed) {
  EngineCase c;
  c.mode = GetParam(), c.D = 2, c.T = 9, c.B = 6, c.I = 19, c.H = 80;
  c.layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  c.lengths = {9, 9, 7, 4, 4, 1};
  ExpectSameForAllThreads(c);
}

TEST(EngineThreadsOnce, Projection) {
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}) {
    EngineCase c;
    c.type = type, c.L = 2, c.D = 2, c.B = 14, c.T = 5, c.I = 12, c.H = 64, c.R = 24;
    c.lengths = MixedLengths(c.T, c.B);
    ExpectSameForAllThreads(c);
  }
}

TEST(EngineThreadsOnce, ProjectionInATeam) {
  EngineCase c;
  c.B = 1, c.I = 12, c.H = 300, c.R = 200;
  for (int T : {1, 4}) {
    c.T = T;
    ExpectSameForAllThreads(c);
  }
}

// Calls at the same time, each with threads of its own from one pool.
TEST(EngineThreadsOnce, CallsAtOnce) {
  EngineCase small, large;
  small.mode = CUDNN_GRU, small.T = 9, small.B = 12, small.I = 17, small.H = 50;
  large.T = 5, large.B = 1, large.I = 33, large.H = 260;
  const EngineResults expected_small = Train(small, nullptr, true);
  const EngineResults expected_large = Train(large, nullptr, true);
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        const bool is_small = (i + round) % 2 == 0;
        EXPECT_EQ((is_small ? expected_small : expected_large)
                      .DifferenceFrom(Train(is_small ? small : large, &AllThreads().eight, true)),
                  "");
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Inside tasks of the same pool, all of whose threads may be busy.
TEST(EngineThreadsOnce, CallsInsideThePool) {
  EngineCase c;
  c.T = 5, c.B = 3, c.I = 33, c.H = 260;
  const EngineResults expected = Train(c, nullptr, true);
  AllThreads().three.Run(
      6, [&](int) { EXPECT_EQ(expected.DifferenceFrom(Train(c, &AllThreads().three, true)), ""); });
}

// One thread that lets a call be asked `asks` times before it is cancelled.
class CancelledAfter : public cpu::Parallel {
 public:
  explicit CancelledAfter(int asks) : asks_(asks) {}
  int num_threads() const override { return 1; }
  void Run(int count, const std::function<void(int)>& task) const override {
    for (int i = 0; i < count; ++i) task(i);
  }
  bool Cancelled() const override { return asked_++ >= asks_; }
  int asked() const { return asked_; }

 private:
  const int asks_;
  mutable std::atomic<int> asked_{0};
};

// Wherever a call is, it ends within a time step of being cancelled, and the next one is right.
TEST(EngineThreadsOnce, Cancelled) {
  EngineCase c;
  c.L = 2, c.D = 2, c.T = 300, c.B = 3, c.I = 4, c.H = 5;
  const EngineResults expected = Train(c, nullptr, true);
  for (int asks : {0, 1, 299, 300, 301, 700, 1199}) {
    const CancelledAfter cancelled(asks);
    EngineCall call(c, &cancelled, true);
    EXPECT_EQ(call.Forward(), CUDNN_STATUS_EXECUTION_FAILED) << asks;
    EXPECT_NE(LastError().find("cancelled"), std::string::npos) << LastError();
    // Once for each layer and direction that remains, and at the end.
    EXPECT_LE(cancelled.asked(), asks + 1 + 4) << asks;
  }
  for (int asks : {0, 1, 299, 300, 301, 700, 1199}) {
    EngineCall call(c, nullptr, true);
    EXPECT_EQ(call.Forward(), CUDNN_STATUS_SUCCESS);
    const CancelledAfter cancelled(asks);
    EXPECT_EQ(cpu::SetParallel(call.handle.get(), &cancelled), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(call.BackwardData(), CUDNN_STATUS_EXECUTION_FAILED) << asks;
    EXPECT_LE(cancelled.asked(), asks + 1 + 6) << asks;
    EXPECT_EQ(call.BackwardWeights(), CUDNN_STATUS_EXECUTION_FAILED) << asks;
  }
  EXPECT_EQ(expected.DifferenceFrom(Train(c, nullptr, true)), "");
}

std::string NameOf(const testing::TestParamInfo<cudnnRNNMode_t>& info) {
  static const char* const kNames[] = {"relu", "tanh", "lstm", "gru"};
  return kNames[info.param];
}
INSTANTIATE_TEST_SUITE_P(Mode, EngineThreads, testing::ValuesIn(kModes), NameOf);

}  // namespace
}  // namespace tf_cudnn_rnn
