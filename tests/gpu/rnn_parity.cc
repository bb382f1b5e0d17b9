// Runs the case table through cc/rnn with the CPU engine and with the real cuDNN on a GPU, and
// compares. No TensorFlow, no CUDA toolkit: the driver and cuDNN are opened at run time.
//
//   rnn_parity [--cudnn FOLDER]... [--host LIBRARY] [--json FILE] [--filter TEXT] [--no-timing]
//   rnn_parity --list
//
// --cudnn   a folder where libcudnn.so.9 may lie, besides the linker's path
// --host    a library with cuDNN's names on host memory in the place of cuDNN and a GPU
// --filter  only cases whose id has TEXT in it
//
// Prints a table and "N passed, N failed"; exit status 0 if none failed, 1 if some, 2 if it could
// not run. README.md beside this file has more.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cc/rnn/rnn_setup.h"
#include "tests/gpu/bare_cudnn.h"
#include "tests/gpu/parity_run.h"

namespace tf_cudnn_rnn {
namespace {

struct Options {
  std::vector<std::string> cudnn_folders;
  std::string host_library, json, filter;
  bool timing = true;
};

// Largest error over the largest expected value. NaN where NaN is not expected counts as infinite.
double MaxError(const std::vector<double>& actual, const std::vector<double>& expected) {
  double error = 0, scale = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(actual[i] - expected[i]);
    error = std::isnan(difference) ? HUGE_VAL : std::max(error, difference);
    scale = std::max(scale, std::fabs(expected[i]));
  }
  return scale > 0 ? error / scale : error;
}

// The same of the root mean square.
double RmsError(const std::vector<double>& actual, const std::vector<double>& expected) {
  double error = 0, scale = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(actual[i] - expected[i], 2);
    scale += std::pow(expected[i], 2);
  }
  error = std::isnan(error) ? HUGE_VAL : error;
  return scale > 0 ? std::sqrt(error / scale) : std::sqrt(error);
}

// A gradient of relu jumps where a sum is as good as 0; with short types both sides round such sums
// to different signs, so single values tell nothing there.
bool Jumps(const ParityCase& c) {
  return c.rnn_mode == CUDNN_RNN_RELU &&
         (c.data_type == CUDNN_DATA_HALF || c.data_type == CUDNN_DATA_BFLOAT16);
}

double Tolerance(const ParityCase& c) {
  if (Jumps(c)) return 0.1;
  switch (c.data_type) {
    case CUDNN_DATA_DOUBLE:
      return 1e-11;
    case CUDNN_DATA_FLOAT:
      return 5e-5;
    case CUDNN_DATA_HALF:
      return 5e-3;
    case CUDNN_DATA_BFLOAT16:
      break;
  }
  return 4e-2;
}

struct CaseReport {
  std::string id, problem, layout;  // no problem: passed
  double worst = 0;
};

CaseReport Compare(const ParityCase& c, Backend* cpu, Backend* gpu) {
  CaseReport report;
  report.id = c.id();
  ParityRun expected(c, cpu), actual(c, gpu);
  // Twice backward: the first must leave the reserve space as it was.
  for (ParityRun* run : {&expected, &actual}) {
    Status status = run->Forward();
    for (int i = 0; i < 2 && status.ok(); ++i) status = run->Backward();
    if (!status.ok()) {
      report.problem = (run == &expected ? "CPU engine: " : "") + status.message();
      return report;
    }
  }
  report.layout = actual.WeightLayoutDifference();
  const Values expected_values = expected.Results(), actual_values = actual.Results();
  for (const auto& [name, values] : expected_values) {
    const double error = Jumps(c) ? RmsError(actual_values.at(name), values)
                                  : MaxError(actual_values.at(name), values);
    report.worst = std::max(report.worst, error);
    if (!(error <= Tolerance(c))) {
      report.problem +=
          Concatenate(report.problem.empty() ? "" : "; ", name, " differs by ", error);
    }
  }
  return report;
}

// Dropout: the same seed gives the same values, the next call others, and backward works.
CaseReport CheckDropout(cudnnRNNMode_t mode, Backend* gpu) {
  ParityCase c;
  c.rnn_mode = mode;
  c.L = 3;
  c.direction = CUDNN_BIDIRECTIONAL;
  c.T = 6, c.B = 4, c.I = 5, c.H = 16;
  CaseReport report;
  report.id = Concatenate("dropout-", c.id());
  std::vector<std::vector<double>> outputs;
  for (int i = 0; i < 2; ++i) {
    DropoutStates states(0.5, 42);
    RnnSetupCache setups;
    ParityRun run(c, gpu, &setups, 0.5, &states);
    for (int call = 0; call < 2; ++call) {
      Status status = run.Forward();
      if (status.ok()) status = run.Backward();
      if (!status.ok()) {
        report.problem = status.message();
        return report;
      }
      const Values values = run.Results();
      outputs.push_back(values.at("output"));
      for (const auto& [name, numbers] : values) {
        for (double number : numbers) {
          if (!std::isfinite(number)) report.problem = name + " is not finite";
        }
      }
    }
  }
  if (outputs[0] != outputs[2] || outputs[1] != outputs[3]) {
    report.problem = "the same seed gave other values";
  }
  if (outputs[0] == outputs[1]) report.problem = "two calls dropped the same values";
  return report;
}

// The environment variable RNN_PARITY_CALLS makes a rehearsal on a CPU short.
int TimedCalls() {
  const char* calls = std::getenv("RNN_PARITY_CALLS");
  return calls ? std::max(1, std::atoi(calls)) : 15;
}

// Median time in microseconds of a call, the device's work included.
double Microseconds(Backend* backend, const std::function<void()>& call) {
  const int calls = TimedCalls(), warm_up = calls > 1 ? 3 : 0;
  std::vector<double> times;
  for (int i = 0; i < warm_up + calls; ++i) {
    backend->Synchronize();
    const auto start = std::chrono::steady_clock::now();
    call();
    backend->Synchronize();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (i >= warm_up) times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[calls / 2];
}

struct TimeReport {
  std::string id, problem;
  double forward = 0, backward = 0, bare_forward = 0, bare_backward = 0;  // microseconds
};

TimeReport Time(const ParityCase& c, Backend* gpu) {
  TimeReport report;
  report.id = c.id();
  RnnSetupCache setups;
  ParityRun run(c, gpu, &setups);
  BareCudnn bare(run.plan(), gpu);
  Status status = run.Forward();
  if (status.ok()) status = run.Backward();
  if (status.ok()) status = bare.Prepare(run.forward_buffers());
  if (status.ok()) status = bare.Forward();
  if (status.ok()) status = bare.Backward(run.backward_buffers());
  report.problem = status.message();
  if (!status.ok()) return report;
  const auto ignore = [](const Status&) {};
  report.forward = Microseconds(gpu, [&] { ignore(run.Forward()); });
  report.backward = Microseconds(gpu, [&] { ignore(run.Backward()); });
  report.bare_forward = Microseconds(gpu, [&] { ignore(bare.Forward()); });
  // A bare backward pass spoils the reserve space for the next one, but takes as long.
  report.bare_backward = Microseconds(gpu, [&] { ignore(bare.Backward(run.backward_buffers())); });
  return report;
}

std::vector<ParityCase> TimedCases() {
  constexpr cudnnDirectionMode_t uni = CUDNN_UNIDIRECTIONAL, bi = CUDNN_BIDIRECTIONAL;
  return {
      // mode, L, direction, T, B, I, H
      {CUDNN_LSTM, 1, uni, 100, 1, 64, 64},
      {CUDNN_LSTM, 1, uni, 100, 32, 128, 128},
      {CUDNN_LSTM, 1, uni, 50, 64, 512, 512},
      {CUDNN_LSTM, 2, bi, 100, 32, 256, 256},
      {CUDNN_GRU, 1, uni, 100, 32, 256, 256},
      {CUDNN_LSTM, 1, bi, 200, 64, 40, 256, 0, InputMode::kLinear, "varied"},
  };
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + "\"";
}

// JSON has no infinity.
double Finite(double value) { return std::isfinite(value) ? value : 1e308; }

bool WriteJson(const std::string& path, Backend* cpu, Backend* gpu,
               const std::vector<CaseReport>& cases, const std::vector<TimeReport>& times) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return false;
  std::fprintf(file, "{\"expected\": %s,\n\"actual\": %s,\n\"cases\": [\n",
               Quoted(cpu->name()).c_str(), Quoted(gpu->name()).c_str());
  for (size_t i = 0; i < cases.size(); ++i) {
    const CaseReport& c = cases[i];
    std::fprintf(file, "{\"id\": %s, \"passed\": %s, \"worst\": %.3g", Quoted(c.id).c_str(),
                 c.problem.empty() ? "true" : "false", Finite(c.worst));
    if (!c.problem.empty()) std::fprintf(file, ", \"problem\": %s", Quoted(c.problem).c_str());
    if (!c.layout.empty()) std::fprintf(file, ", \"layout\": %s", Quoted(c.layout).c_str());
    std::fprintf(file, "}%s\n", i + 1 < cases.size() ? "," : "");
  }
  std::fprintf(file, "],\n\"microseconds\": [\n");
  for (size_t i = 0; i < times.size(); ++i) {
    const TimeReport& t = times[i];
    std::fprintf(file,
                 "{\"id\": %s, \"problem\": %s, \"forward\": %.1f, \"backward\": %.1f, "
                 "\"bare_forward\": %.1f, \"bare_backward\": %.1f}%s\n",
                 Quoted(t.id).c_str(), Quoted(t.problem).c_str(), t.forward, t.backward,
                 t.bare_forward, t.bare_backward, i + 1 < times.size() ? "," : "");
  }
  std::fprintf(file, "]}\n");
  return std::fclose(file) == 0;
}

void PrintTables(const std::vector<ParityCase>& table, const std::vector<CaseReport>& cases,
                 const std::vector<TimeReport>& times) {
  struct Row {
    int passed = 0, failed = 0, other_layout = 0;
    double worst = 0;
  };
  std::map<std::string, Row> rows;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string key = i < table.size() ? Concatenate(RnnModeName(table[i].rnn_mode), " | ",
                                                           DataTypeName(table[i].data_type))
                                             : "dropout | float";
    Row& row = rows[key];
    ++(cases[i].problem.empty() ? row.passed : row.failed);
    row.other_layout += !cases[i].layout.empty();
    row.worst = std::max(row.worst, cases[i].worst);
  }
  std::printf(
      "\n| mode | type | passed | failed | other weight layout | largest error |\n"
      "|---|---|---|---|---|---|\n");
  for (const auto& [key, row] : rows) {
    std::printf("| %s | %d | %d | %d | %.2g |\n", key.c_str(), row.passed, row.failed,
                row.other_layout, row.worst);
  }
  if (times.empty()) return;
  std::printf(
      "\n| microseconds per call | forward | bare cuDNN | backward | bare cuDNN |\n"
      "|---|---|---|---|---|\n");
  for (const TimeReport& t : times) {
    std::printf("| %s | %.0f | %.0f | %.0f | %.0f |%s\n", t.id.c_str(), t.forward, t.bare_forward,
                t.backward, t.bare_backward, t.problem.c_str());
  }
}

int Run(const Options& options) {
  std::string error;
  const std::unique_ptr<Backend> cpu = CpuBackend();
  const std::unique_ptr<Backend> gpu = options.host_library.empty()
                                           ? GpuBackend(options.cudnn_folders, &error)
                                           : HostLibraryBackend(options.host_library, &error);
  if (!gpu) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 2;
  }
  std::printf("expected: %s\nactual:   %s\n", cpu->name().c_str(), gpu->name().c_str());

  std::vector<ParityCase> table;
  for (const ParityCase& c : ParityCases()) {
    if (c.id().find(options.filter) != std::string::npos) table.push_back(c);
  }
  std::vector<CaseReport> cases;
  for (const ParityCase& c : table) cases.push_back(Compare(c, cpu.get(), gpu.get()));
  for (cudnnRNNMode_t mode : {CUDNN_LSTM, CUDNN_GRU}) {
    cases.push_back(CheckDropout(mode, gpu.get()));
  }
  std::vector<TimeReport> times;
  if (options.timing) {
    for (const ParityCase& c : TimedCases()) times.push_back(Time(c, gpu.get()));
  }

  int failed = 0;
  for (const CaseReport& report : cases) {
    if (report.problem.empty()) continue;
    ++failed;
    std::printf("FAILED %s: %s\n", report.id.c_str(), report.problem.c_str());
  }
  PrintTables(table, cases, times);
  if (!options.json.empty() && !WriteJson(options.json, cpu.get(), gpu.get(), cases, times)) {
    std::fprintf(stderr, "%s cannot be written\n", options.json.c_str());
    return 2;
  }
  std::printf("\n%zu passed, %d failed\n", cases.size() - failed, failed);
  return failed > 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--list") {
      for (const ParityCase& c : ParityCases()) std::puts(c.id().c_str());
      return 0;
    } else if (name == "--no-timing") {
      options.timing = false;
    } else if (name == "--cudnn" && has_value) {
      options.cudnn_folders.push_back(argv[++i]);
    } else if (name == "--host" && has_value) {
      options.host_library = argv[++i];
    } else if (name == "--json" && has_value) {
      options.json = argv[++i];
    } else if (name == "--filter" && has_value) {
      options.filter = argv[++i];
    } else {
      std::fprintf(stderr, "not understood: %s\n", argv[i]);
      return 2;
    }
  }
  return Run(options);
}

}  // namespace
}  // namespace tf_cudnn_rnn

int main(int argc, char** argv) { return tf_cudnn_rnn::Main(argc, argv); }
