// Times the CPU engine through its C API, without TensorFlow: one configuration a run, one line of
// JSON.
//
//   engine_benchmark --mode lstm --B 32 --T 100 --I 128 --H 128 --L 1 --D 1 [--proj P] [--lengths
//   uniform:20:200 or B numbers with commas between them]
//                    [--type float] [--threads 2] [--repeats 7] [--pass forward|training]
//   engine_benchmark --peak [--threads 2]        multiply-adds that the machine can do: GFLOP/s
//   engine_benchmark --bandwidth BYTES [--threads 2]   reading a buffer of that size again and
//   again: GB/s
//   engine_benchmark --product M --K 512 --N 2048 [--threads 1]   C [M, N] = A [M, K] · B [K, N] on
//   packed panels, without and with the packing: GFLOP/s
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "benchmarks/thread_pool.h"
#include "cc/cpu/arena.h"
#include "cc/cpu/convert.h"
#include "cc/cpu/cpu_cudnn.h"
#include "cc/cpu/kernels.h"
#include "cc/cpu/pack.h"
#include "cc/kernels/intra_op_pool.h"

namespace tf_cudnn_rnn {
namespace {

void Check(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char message[512];
  cpu::cudnnGetLastErrorString(message, sizeof(message));
  std::fprintf(stderr, "%s\n", message);
  std::exit(1);
}

double Seconds(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Median of `repeats` runs after two to warm up.
double Median(int repeats, const std::function<void()>& f) {
  f();
  f();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(Seconds(f));
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[repeats / 2];
}

class Options {
 public:
  Options(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      if (std::strncmp(words[i], "--", 2) != 0) continue;
      const bool has_value = i + 1 < count && std::strncmp(words[i + 1], "--", 2) != 0;
      values_[words[i] + 2] = has_value ? words[i + 1] : "";
    }
  }
  bool Has(const char* name) const { return values_.count(name) > 0; }
  std::string Get(const char* name, const char* otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  int Int(const char* name, int otherwise) const {
    return Has(name) ? std::atoi(Get(name, "").c_str()) : otherwise;
  }

 private:
  std::map<std::string, std::string> values_;
};

// Host memory that has been written, with small random numbers of the type in it.
class Buffer {
 public:
  Buffer(cudnnDataType_t type, int64_t elements) : bytes_(elements * cpu::ElementSize(type) + 64) {
    std::mt19937 random(static_cast<unsigned>(elements));
    std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
    for (int64_t i = 0; i < elements; ++i) {
      const float value = uniform(random);
      if (type == CUDNN_DATA_FLOAT) {
        reinterpret_cast<float*>(data())[i] = value;
      } else if (type == CUDNN_DATA_DOUBLE) {
        reinterpret_cast<double*>(data())[i] = value;
      } else {
        cpu::ConvertFromFloat(type, &value, data() + 2 * i, 1);
      }
    }
  }
  char* data() {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(bytes_.data()) + 63) / 64 * 64);
  }

 private:
  std::vector<char> bytes_;
};

int RunRnn(const Options& options, const cpu::Parallel& parallel) {
  const std::string mode = options.Get("mode", "lstm"), type_name = options.Get("type", "float");
  const int B = options.Int("B", 32), T = options.Int("T", 100), I = options.Int("I", 128);
  const int H = options.Int("H", 128), L = options.Int("L", 1), D = options.Int("D", 1);
  const int R = options.Int("proj", H);
  const bool training = options.Get("pass", "forward") == "training";
  const cudnnRNNMode_t cell = mode == "lstm"       ? CUDNN_LSTM
                              : mode == "gru"      ? CUDNN_GRU
                              : mode == "rnn_relu" ? CUDNN_RNN_RELU
                                                   : CUDNN_RNN_TANH;
  const cudnnDataType_t type = type_name == "double"     ? CUDNN_DATA_DOUBLE
                               : type_name == "half"     ? CUDNN_DATA_HALF
                               : type_name == "bfloat16" ? CUDNN_DATA_BFLOAT16
                                                         : CUDNN_DATA_FLOAT;
  std::vector<int> lengths(B, T);
  int low = 0, high = 0;
  if (std::sscanf(options.Get("lengths", "").c_str(), "uniform:%d:%d", &low, &high) == 2) {
    std::mt19937 random(1);
    for (int& length : lengths) length = std::uniform_int_distribution<int>(low, high)(random);
    lengths[0] = T;
  } else if (options.Has("lengths")) {
    std::istringstream list(options.Get("lengths", ""));
    std::string number;
    lengths.clear();
    while (std::getline(list, number, ',')) lengths.push_back(std::atoi(number.c_str()));
    if (static_cast<int>(lengths.size()) != B) {
      std::fprintf(stderr, "--lengths must be uniform:LOW:HIGH or %d numbers, has %zu\n", B,
                   lengths.size());
      return 1;
    }
  }
  double valid = 0;
  for (int length : lengths) valid += length;

  const CudnnApi& api = cpu::Api();
  cudnnHandle_t handle;
  cudnnRNNDescriptor_t rnn;
  cudnnRNNDataDescriptor_t x_desc, y_desc;
  Check(api.cudnnCreate(&handle));
  Check(cpu::SetParallel(handle, &parallel));
  Check(cpu::SetReserveReadOnly(handle, true));
  Check(api.cudnnCreateRNNDescriptor(&rnn));
  Check(api.cudnnCreateRNNDataDescriptor(&x_desc));
  Check(api.cudnnCreateRNNDataDescriptor(&y_desc));
  const cudnnDataType_t math = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  Check(api.cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, cell, CUDNN_RNN_DOUBLE_BIAS,
                                     D == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                                     CUDNN_LINEAR_INPUT, type, math, CUDNN_DEFAULT_MATH, I, H, R, L,
                                     nullptr, CUDNN_RNN_PADDED_IO_ENABLED));
  for (auto [desc, width] : {std::pair(x_desc, I), std::pair(y_desc, D * R)}) {
    Check(api.cudnnSetRNNDataDescriptor(desc, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, T, B,
                                        width, lengths.data(), nullptr));
  }
  size_t weight_bytes = 0, work_bytes = 0, reserve_bytes = 0;
  Check(api.cudnnGetRNNWeightSpaceSize(handle, rnn, &weight_bytes));
  const cudnnForwardMode_t forward_mode =
      training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  Check(api.cudnnGetRNNTempSpaceSizes(handle, rnn, forward_mode, x_desc, &work_bytes,
                                      &reserve_bytes));
  const int64_t steps = int64_t{T} * B, states = int64_t{L} * D * B;
  const int64_t weights = weight_bytes / cpu::ElementSize(type);
  Buffer x(type, steps * I), y(type, steps * D * R), w(type, weights), dw(type, weights);
  Buffer h(type, states * R), c(type, states * H), hy(type, states * R), cy(type, states * H);
  Buffer dx(type, steps * I), dy(type, steps * D * R), dh(type, states * R), dc(type, states * H);
  Buffer work(CUDNN_DATA_FLOAT, work_bytes / 4 + 1),
      reserve(CUDNN_DATA_FLOAT, reserve_bytes / 4 + 1);

  const double seconds = Median(options.Int("repeats", 7), [&] {
    Check(api.cudnnRNNForward(handle, rnn, forward_mode, nullptr, x_desc, x.data(), y_desc,
                              y.data(), nullptr, h.data(), hy.data(), nullptr, c.data(), cy.data(),
                              weight_bytes, w.data(), work_bytes, work.data(), reserve_bytes,
                              training ? reserve.data() : nullptr));
    if (!training) return;
    Check(api.cudnnRNNBackwardData_v8(handle, rnn, nullptr, y_desc, y.data(), dy.data(), x_desc,
                                      dx.data(), nullptr, h.data(), hy.data(), dh.data(), nullptr,
                                      c.data(), cy.data(), dc.data(), weight_bytes, w.data(),
                                      work_bytes, work.data(), reserve_bytes, reserve.data()));
    std::memset(dw.data(), 0, weight_bytes);
    Check(api.cudnnRNNBackwardWeights_v8(
        handle, rnn, CUDNN_WGRAD_MODE_ADD, nullptr, x_desc, x.data(), nullptr, h.data(), y_desc,
        y.data(), weight_bytes, dw.data(), work_bytes, work.data(), reserve_bytes, reserve.data()));
  });
  // Multiply-adds of the matrix products, twice each; backward has two products for each of
  // forward's.
  const double gates = cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1;
  double operations = 0;
  for (int l = 0; l < L; ++l) {
    const double width = l == 0 ? I : D * R;
    operations += 2 * valid * D * (gates * H * (width + R) + (R < H ? R * H : 0));
  }
  if (training) operations *= 3;
  std::printf(
      "{\"seconds\": %.9f, \"gflops\": %.3f, \"reserve_bytes\": %zu, \"work_bytes\": %zu, "
      "\"instruction_set\": \"%s\"}\n",
      seconds, operations / seconds / 1e9, reserve_bytes, work_bytes, cpu::InstructionSet());
  Check(api.cudnnDestroyRNNDataDescriptor(y_desc));
  Check(api.cudnnDestroyRNNDataDescriptor(x_desc));
  Check(api.cudnnDestroyRNNDescriptor(rnn));
  Check(api.cudnnDestroy(handle));
  return 0;
}

int RunPeak(const Options& options, const cpu::Parallel& parallel) {
  constexpr int64_t kRepeats = 2000000;
  double operations = 0;
  const double seconds = Median(options.Int("repeats", 7), [&] {
    parallel.Run(parallel.num_threads(), [&](int thread) {
      const double done = MultiplyAdd(cpu::InstructionSet(), kRepeats);
      if (thread == 0) operations = done;
    });
  });
  std::printf("{\"peak_gflops\": %.3f, \"threads\": %d}\n",
              operations * parallel.num_threads() / seconds / 1e9, parallel.num_threads());
  return 0;
}

int RunProduct(const Options& options, const cpu::Parallel& parallel) {
  const int64_t M = options.Int("product", 64), K = options.Int("K", 512),
                N = options.Int("N", 512);
  const cpu::Kernels<float>& kernels = cpu::BestKernels<float>();
  const int VL = kernels.vector_length, threads = parallel.num_threads();
  Buffer a(CUDNN_DATA_FLOAT, M * K), b(CUDNN_DATA_FLOAT, N * K), c(CUDNN_DATA_FLOAT, M * N);
  cpu::Arena measure(nullptr);
  cpu::BookPanels<float>(K, N, 1, false, VL, &measure);
  Buffer space(CUDNN_DATA_FLOAT, measure.size() / sizeof(float) + 1);
  cpu::Arena arena(space.data());
  cpu::Panels<float> panels = cpu::BookPanels<float>(K, N, 1, false, VL, &arena);
  std::vector<const float*> a_rows(M);
  std::vector<float*> c_rows(M);
  for (int64_t m = 0; m < M; ++m) {
    a_rows[m] = reinterpret_cast<const float*>(a.data()) + m * K;
    c_rows[m] = reinterpret_cast<float*>(c.data()) + m * N;
  }
  const auto pack = [&] {
    const float* source = reinterpret_cast<const float*>(b.data());
    cpu::PackTransposed(&source, VL, 0, panels.count, &panels);
  };
  // As the engine divides it: by rows, or by panels where there are few.
  const auto multiply = [&] {
    parallel.Run(threads, [&](int thread) {
      const bool by_rows = M >= 6 * threads;
      const int64_t begin = by_rows ? M * thread / threads : 0;
      cpu::ProductArguments<float> arguments;
      arguments.rows = by_rows ? M * (thread + 1) / threads - begin : M;
      arguments.a = a_rows.data() + begin;
      arguments.c = c_rows.data() + begin;
      arguments.panels = &panels;
      arguments.panel_begin = by_rows ? 0 : panels.count * thread / threads;
      arguments.panel_end = by_rows ? panels.count : panels.count * (thread + 1) / threads;
      cpu::BlockedProduct(kernels, arguments);
    });
  };
  pack();
  const double operations = 2.0 * M * K * N;
  const int calls = static_cast<int>(std::max(1.0, 2e9 / operations));
  const int repeats = options.Int("repeats", 7);
  const double packed = Median(repeats, [&] {
    for (int i = 0; i < calls; ++i) multiply();
  });
  const double from_rows = Median(repeats, [&] {
    for (int i = 0; i < calls; ++i) pack(), multiply();
  });
  std::printf("{\"packed_gflops\": %.3f, \"gflops\": %.3f}\n", calls * operations / packed / 1e9,
              calls * operations / from_rows / 1e9);
  return 0;
}

int RunBandwidth(const Options& options, const cpu::Parallel& parallel) {
  const int64_t bytes = std::max(4096, options.Int("bandwidth", 1 << 22));
  const int threads = parallel.num_threads();
  const int64_t share = std::max<int64_t>(1024, bytes / threads / 1024 * 1024);
  const int passes = static_cast<int>(std::max<int64_t>(1, (int64_t{1} << 29) / bytes));
  std::vector<std::vector<float>> data(threads, std::vector<float>(share / 4 + 16, 1.0f));
  std::vector<float> sinks(threads);
  const double seconds = Median(options.Int("repeats", 7), [&] {
    parallel.Run(threads, [&](int thread) {
      const uintptr_t begin = reinterpret_cast<uintptr_t>(data[thread].data());
      const auto* aligned = data[thread].data() + ((begin + 63) / 64 * 64 - begin) / sizeof(float);
      for (int pass = 0; pass < passes; ++pass) {
        sinks[thread] += Read(cpu::InstructionSet(), aligned, share);
      }
    });
  });
  std::printf("{\"gbytes_per_second\": %.3f, \"bytes\": %lld, \"threads\": %d}\n",
              1.0 * share * threads * passes / seconds / 1e9, static_cast<long long>(bytes),
              threads);
  return 0;
}

}  // namespace
}  // namespace tf_cudnn_rnn

int main(int count, char** words) {
  using namespace tf_cudnn_rnn;
  const Options options(count, words);
  const int threads = std::max(1, options.Int("threads", 1));
  ThreadPool pool(threads - 1);
  const IntraOpPool<ThreadPool> parallel(&pool, threads);
  if (options.Has("peak")) return RunPeak(options, parallel);
  if (options.Has("product")) return RunProduct(options, parallel);
  if (options.Has("bandwidth")) return RunBandwidth(options, parallel);
  return RunRnn(options, parallel);
}
