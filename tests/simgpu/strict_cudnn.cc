// A cuDNN for the tests on the simulated GPU: the CPU engine (the library that STRICT_CUDNN_ENGINE
// names) behind what the real cuDNN refuses, with faults on demand. Every function is counted.
//
// It refuses what the engine would take but cuDNN does not: a batch whose lengths are all 0 in
// Forward, any length 0 in BackwardData and BackwardWeights, more than 65535 steps,
// CUDNN_WGRAD_MODE_SET, and calls in another context than the stream's.
//
// STRICT_CUDNN_BFLOAT16=no   it refuses bfloat16 as well
//
// STRICT_CUDNN_VERSION   what cudnnGetVersion says
// STRICT_CUDNN_LAYOUT=other   a weight space of another order with gaps: pseudo-layers backwards,
//                             biases before matrices, each piece followed by one element of NaN
//
// STRICT_CUDNN_WRONG=yes     the first float of every output is wrong
// STRICT_CUDNN_FAIL=FUNCTION:COUNT:STATUS   as strict_cudnn_fail below, from the start
//
// A test in the same process reaches the functions at the end through ctypes.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cc/cudnn/cudnn_library.h"
#include "cc/cudnn/weight_layout.h"

namespace {

using tf_cudnn_rnn::CudnnApi;
using tf_cudnn_rnn::RnnDims;
using tf_cudnn_rnn::WeightLayout;
using tf_cudnn_rnn::WeightPiece;

const CudnnApi& Engine() {
  static const CudnnApi api = [] {
    const char* path = std::getenv("STRICT_CUDNN_ENGINE");
    const std::string name = path ? path : "";
    // A name with a slash is opened as it is.
    const tf_cudnn_rnn::CudnnLibrary library = tf_cudnn_rnn::OpenCudnn(name, {});
    if (!library.ok()) {
      std::fprintf(stderr, "STRICT_CUDNN_ENGINE: %s\n", library.error.c_str());
      std::abort();
    }
    return library.api;
  }();
  return api;
}

// ---- faults and counts ----

struct Monitor {
  std::mutex mutex;
  std::map<std::string, int64_t> calls;
  std::set<void*> contexts;             // in which RNNs were computed
  std::map<std::string, int64_t> live;  // "Handle", "TensorDescriptor" ...
  std::string fail_name;                // empty: any function that the kernels call
  int64_t fail_after = 0;               // which of them fails, counted from 1; 0: none
  cudnnStatus_t fail_status = CUDNN_STATUS_SUCCESS;
};
Monitor* NewMonitor() {
  Monitor* const monitor = new Monitor;
  if (const char* fail = std::getenv("STRICT_CUDNN_FAIL")) {
    const std::string text = fail;
    const size_t first = text.find(':'), second = text.find(':', first + 1);
    monitor->fail_name = text.substr(0, first);
    monitor->fail_after = std::atoi(text.c_str() + first + 1);
    monitor->fail_status = static_cast<cudnnStatus_t>(std::atoi(text.c_str() + second + 1));
  }
  return monitor;
}
Monitor& TheMonitor() {
  static Monitor* const monitor = NewMonitor();
  return *monitor;
}
thread_local std::string last_error;
std::atomic<int> last_math_type{-1};
std::atomic<int> forwards{0}, most_forwards{0};  // at once

cudnnStatus_t Refuse(cudnnStatus_t status, const char* reason) {
  last_error = reason;
  return status;
}

bool Begin(const char* name, cudnnStatus_t* status) {
  Monitor& monitor = TheMonitor();
  const std::lock_guard<std::mutex> lock(monitor.mutex);
  ++monitor.calls[name];
  // These two are called by the check mode of the simulated GPU, not by the kernels.
  const bool any = monitor.fail_name.empty() &&
                   std::strcmp(name, "cudnnGetRNNDataDescriptor") != 0 &&
                   std::strcmp(name, "cudnnGetTensorNdDescriptor") != 0;
  if (monitor.fail_after > 0 && (any || monitor.fail_name == name) && --monitor.fail_after == 0) {
    *status = Refuse(monitor.fail_status, "injected fault");
    return false;
  }
  return true;
}

void End(const char* name, cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) return;
  Monitor& monitor = TheMonitor();
  const std::string text = name;
  int change = 0;
  std::string what;
  if (text == "cudnnCreate" || text == "cudnnDestroy") {
    what = "Handle";
    change = text == "cudnnCreate" ? 1 : -1;
  } else if (text.rfind("cudnnCreate", 0) == 0) {
    what = text.substr(std::strlen("cudnnCreate"));
    change = 1;
  } else if (text.rfind("cudnnDestroy", 0) == 0) {
    what = text.substr(std::strlen("cudnnDestroy"));
    change = -1;
  } else {
    return;
  }
  const std::lock_guard<std::mutex> lock(monitor.mutex);
  monitor.live[what] += change;
}

// What an RNN descriptor was set to.
struct RnnFields {
  cudnnRNNAlgo_t algo;
  cudnnRNNMode_t mode;
  cudnnRNNBiasMode_t bias;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input_mode;
  cudnnDataType_t type, math;
  cudnnMathType_t math_type;
  int32_t input, hidden, projection, layers;
  cudnnDropoutDescriptor_t dropout;
  uint32_t flags;
};

RnnFields Read(cudnnRNNDescriptor_t rnn) {
  RnnFields f = {};
  Engine().cudnnGetRNNDescriptor_v8(rnn, &f.algo, &f.mode, &f.bias, &f.direction, &f.input_mode,
                                    &f.type, &f.math, &f.math_type, &f.input, &f.hidden,
                                    &f.projection, &f.layers, &f.dropout, &f.flags);
  return f;
}

// ---- the other weight layout ----

bool OtherLayout() {
  const char* layout = std::getenv("STRICT_CUDNN_LAYOUT");
  return layout && std::strcmp(layout, "other") == 0;
}

size_t ElementSize(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

// Where the pieces of an RNN's weights are in the engine's layout and in the other one.
class Layouts {
 public:
  explicit Layouts(cudnnRNNDescriptor_t rnn) {
    const RnnFields fields = Read(rnn);
    dims_.G = fields.mode == CUDNN_LSTM ? 4 : fields.mode == CUDNN_GRU ? 3 : 1;
    dims_.L = fields.layers;
    dims_.D = fields.direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
    dims_.I = fields.input;
    dims_.H = fields.hidden;
    dims_.R = fields.projection;
    dims_.skip_input = fields.input_mode == CUDNN_SKIP_INPUT;
    element_ = ElementSize(fields.type);
    const WeightLayout layout(dims_);
    dense_size_ = layout.size();
    for (int p = dims_.pseudo_layers() - 1; p >= 0; --p) {
      for (int id = 2 * dims_.G - 1; id >= 0; --id) Add(p, id, true, layout.Bias(p, id));
      for (int id = dims_.matrices() - 1; id >= 0; --id) Add(p, id, false, layout.Matrix(p, id));
    }
  }

  size_t other_bytes() const { return other_size_ * element_; }
  size_t dense_bytes() const { return dense_size_ * element_; }
  int matrices() const { return dims_.matrices(); }

  // Offset in bytes of a piece in the other layout.
  size_t Other(int p, int id, bool bias) const { return other_.at(Key(p, id, bias)) * element_; }

  std::vector<char> ToDense(const void* other) const {
    std::vector<char> dense(dense_bytes());
    for (const auto& [key, piece] : pieces_) {
      std::memcpy(&dense[piece.offset * element_],
                  static_cast<const char*>(other) + other_.at(key) * element_,
                  piece.rows * piece.columns * element_);
    }
    return dense;
  }

  void ToOther(const std::vector<char>& dense, void* other) const {
    for (const auto& [key, piece] : pieces_) {
      std::memcpy(static_cast<char*>(other) + other_.at(key) * element_,
                  &dense[piece.offset * element_], piece.rows * piece.columns * element_);
    }
  }

 private:
  static int Key(int p, int id, bool bias) { return (p * 100 + id) * 2 + bias; }
  void Add(int p, int id, bool bias, const WeightPiece& piece) {
    other_[Key(p, id, bias)] = other_size_;
    pieces_[Key(p, id, bias)] = piece;
    other_size_ += piece.rows * piece.columns + 1;
  }

  RnnDims dims_;
  size_t element_ = 0, dense_size_ = 0, other_size_ = 0;
  std::map<int, WeightPiece> pieces_;
  std::map<int, size_t> other_;
};

cudnnStatus_t WeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, size_t* bytes) {
  const cudnnStatus_t status = Engine().cudnnGetRNNWeightSpaceSize(handle, rnn, bytes);
  if (status == CUDNN_STATUS_SUCCESS && OtherLayout()) *bytes = Layouts(rnn).other_bytes();
  return status;
}

cudnnStatus_t WeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t p, size_t bytes,
                           const void* space, int32_t id, cudnnTensorDescriptor_t matrix_descriptor,
                           void** matrix, cudnnTensorDescriptor_t bias_descriptor, void** bias) {
  if (!OtherLayout()) {
    return Engine().cudnnGetRNNWeightParams(handle, rnn, p, bytes, space, id, matrix_descriptor,
                                            matrix, bias_descriptor, bias);
  }
  const Layouts layouts(rnn);
  if (bytes < layouts.other_bytes()) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "weightSpaceSize is too small");
  }
  const cudnnStatus_t status =
      Engine().cudnnGetRNNWeightParams(handle, rnn, p, layouts.dense_bytes(), space, id,
                                       matrix_descriptor, matrix, bias_descriptor, bias);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  char* const base = static_cast<char*>(const_cast<void*>(space));
  if (*matrix) *matrix = base + layouts.Other(p, id, false);
  if (*bias) *bias = base + layouts.Other(p, id, true);
  return status;
}

// ---- the current context ----

// That of the thread, and that of the handle's stream; equal where there is no driver.
struct Contexts {
  explicit Contexts(cudnnHandle_t handle) {
    static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver) return;
    static const auto current_of_thread =
        reinterpret_cast<int (*)(void**)>(dlsym(driver, "cuCtxGetCurrent"));
    static const auto context_of_stream =
        reinterpret_cast<int (*)(cudaStream_t, void**)>(dlsym(driver, "cuStreamGetCtx"));
    cudaStream_t handles_stream = nullptr;
    Engine().cudnnGetStream(handle, &handles_stream);
    current_of_thread(&current);
    context_of_stream(handles_stream, &stream);
  }

  void* current = nullptr;
  void* stream = nullptr;
};

// ---- what cuDNN refuses ----

cudnnStatus_t CheckData(cudnnHandle_t handle, cudnnRNNDataDescriptor_t data, bool backward) {
  const Contexts contexts(handle);
  if (contexts.current != contexts.stream) {
    return Refuse(CUDNN_STATUS_INTERNAL_ERROR, "the current context is not the stream's");
  }
  {
    const std::lock_guard<std::mutex> lock(TheMonitor().mutex);
    TheMonitor().contexts.insert(contexts.current);
  }
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int steps = 0, batch = 0, width = 0;
  double fill;
  cudnnStatus_t status = Engine().cudnnGetRNNDataDescriptor(data, &type, &layout, &steps, &batch,
                                                            &width, 0, nullptr, &fill);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const char* bfloat16 = std::getenv("STRICT_CUDNN_BFLOAT16");
  if (type == CUDNN_DATA_BFLOAT16 && bfloat16 && std::strcmp(bfloat16, "no") == 0) {
    return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "no bfloat16 on this GPU");
  }
  std::vector<int> lengths(batch);
  status = Engine().cudnnGetRNNDataDescriptor(data, &type, &layout, &steps, &batch, &width, batch,
                                              lengths.data(), &fill);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  int zeros = 0;
  for (int length : lengths) zeros += length == 0;
  if (zeros == batch || (backward && zeros > 0)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "a sequence length is 0");
  }
  if (steps > 65535) return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "more than 65535 steps");
  return CUDNN_STATUS_SUCCESS;
}

struct AtOnce {
  AtOnce() {
    const int now = ++forwards;
    for (int most = most_forwards; most < now && !most_forwards.compare_exchange_weak(most, now);) {
    }
  }
  ~AtOnce() { --forwards; }
};

cudnnStatus_t Forward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                      const int32_t lengths[], cudnnRNNDataDescriptor_t xd, const void* x,
                      cudnnRNNDataDescriptor_t yd, void* y, cudnnTensorDescriptor_t hd,
                      const void* hx, void* hy, cudnnTensorDescriptor_t cd, const void* cx,
                      void* cy, size_t weight_bytes, const void* weights, size_t work_bytes,
                      void* work, size_t reserve_bytes, void* reserve) {
  last_math_type = Read(rnn).math_type;
  const AtOnce at_once;
  const cudnnStatus_t status = CheckData(handle, xd, false);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  std::vector<char> dense;
  if (OtherLayout()) {
    dense = Layouts(rnn).ToDense(weights);
    weights = dense.data();
    weight_bytes = dense.size();
  }
  const cudnnStatus_t computed =
      Engine().cudnnRNNForward(handle, rnn, mode, lengths, xd, x, yd, y, hd, hx, hy, cd, cx, cy,
                               weight_bytes, weights, work_bytes, work, reserve_bytes, reserve);
  if (computed == CUDNN_STATUS_SUCCESS && std::getenv("STRICT_CUDNN_WRONG")) {
    static_cast<unsigned char*>(y)[3] ^= 0x40;  // the exponent's highest bit
  }
  return computed;
}

cudnnStatus_t BackwardData(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
                           cudnnRNNDataDescriptor_t yd, const void* y, const void* dy,
                           cudnnRNNDataDescriptor_t xd, void* dx, cudnnTensorDescriptor_t hd,
                           const void* hx, const void* dhy, void* dhx, cudnnTensorDescriptor_t cd,
                           const void* cx, const void* dcy, void* dcx, size_t weight_bytes,
                           const void* weights, size_t work_bytes, void* work, size_t reserve_bytes,
                           void* reserve) {
  const cudnnStatus_t status = CheckData(handle, xd, true);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  std::vector<char> dense;
  if (OtherLayout()) {
    dense = Layouts(rnn).ToDense(weights);
    weights = dense.data();
    weight_bytes = dense.size();
  }
  return Engine().cudnnRNNBackwardData_v8(handle, rnn, lengths, yd, y, dy, xd, dx, hd, hx, dhy, dhx,
                                          cd, cx, dcy, dcx, weight_bytes, weights, work_bytes, work,
                                          reserve_bytes, reserve);
}

cudnnStatus_t BackwardWeights(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
                              const int32_t lengths[], cudnnRNNDataDescriptor_t xd, const void* x,
                              cudnnTensorDescriptor_t hd, const void* hx,
                              cudnnRNNDataDescriptor_t yd, const void* y, size_t weight_bytes,
                              void* gradient, size_t work_bytes, void* work, size_t reserve_bytes,
                              void* reserve) {
  cudnnStatus_t status = CheckData(handle, xd, true);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (mode != CUDNN_WGRAD_MODE_ADD) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "addGrad is not CUDNN_WGRAD_MODE_ADD");
  }
  if (!OtherLayout()) {
    return Engine().cudnnRNNBackwardWeights_v8(handle, rnn, mode, lengths, xd, x, hd, hx, yd, y,
                                               weight_bytes, gradient, work_bytes, work,
                                               reserve_bytes, reserve);
  }
  const Layouts layouts(rnn);
  std::vector<char> dense = layouts.ToDense(gradient);
  status = Engine().cudnnRNNBackwardWeights_v8(handle, rnn, mode, lengths, xd, x, hd, hx, yd, y,
                                               dense.size(), dense.data(), work_bytes, work,
                                               reserve_bytes, reserve);
  layouts.ToOther(dense, gradient);
  return status;
}

size_t Version() {
  const char* version = std::getenv("STRICT_CUDNN_VERSION");
  return version ? std::atoi(version) : Engine().cudnnGetVersion();
}

void LastErrorString(char* message, size_t size) {
  if (last_error.empty()) return Engine().cudnnGetLastErrorString(message, size);
  if (size > 0) std::snprintf(message, size, "%s", last_error.c_str());
  last_error.clear();
}

const CudnnApi& Strict() {
  static const CudnnApi api = [] {
    CudnnApi api = Engine();
    api.cudnnGetVersion = Version;
    api.cudnnGetLastErrorString = LastErrorString;
    api.cudnnGetRNNWeightSpaceSize = WeightSpaceSize;
    api.cudnnGetRNNWeightParams = WeightParams;
    api.cudnnRNNForward = Forward;
    api.cudnnRNNBackwardData_v8 = BackwardData;
    api.cudnnRNNBackwardWeights_v8 = BackwardWeights;
    return api;
  }();
  return api;
}

template <typename Result, typename Call>
Result Answer(const char* name, const Call& call) {
  if constexpr (std::is_same_v<Result, cudnnStatus_t>) {
    cudnnStatus_t status;
    if (!Begin(name, &status)) {
      // What is not destroyed would look like a leak of the caller's.
      if (std::strncmp(name, "cudnnDestroy", std::strlen("cudnnDestroy")) == 0) End(name, call());
      return status;
    }
    status = call();
    End(name, status);
    return status;
  } else {
    return call();
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments)                        \
  EXPORT result name parameters {                                                      \
    return Answer<result>(#name, [&]() -> result { return Strict().name arguments; }); \
  }
#include "cc/cudnn/cudnn_functions.inc"

// The count-th call of `name` (null: of any function that returns a status) answers `status`, once.
// 0 as count: none.
EXPORT void strict_cudnn_fail(const char* name, int64_t count, int status) {
  Monitor& monitor = TheMonitor();
  const std::lock_guard<std::mutex> lock(monitor.mutex);
  monitor.fail_name = name ? name : "";
  monitor.fail_after = count;
  monitor.fail_status = static_cast<cudnnStatus_t>(status);
}

// Calls so far of `name`, or of all functions that return a status for null.
EXPORT int64_t strict_cudnn_calls(const char* name) {
  Monitor& monitor = TheMonitor();
  const std::lock_guard<std::mutex> lock(monitor.mutex);
  int64_t sum = 0;
  for (const auto& [each, count] : monitor.calls) sum += !name || each == name ? count : 0;
  return sum;
}

// Objects made and not destroyed: of "Handle", "TensorDescriptor", "RNNDescriptor" ...
EXPORT int64_t strict_cudnn_live(const char* what) {
  Monitor& monitor = TheMonitor();
  const std::lock_guard<std::mutex> lock(monitor.mutex);
  return monitor.live[what];
}

// The math type of the RNN that computed last; -1 before any.
EXPORT int strict_cudnn_last_math_type() { return last_math_type; }

// The most calls of Forward that ran at once since this function was called last.
EXPORT int strict_cudnn_most_at_once() { return most_forwards.exchange(0); }

// In how many contexts RNNs were computed.
EXPORT int strict_cudnn_contexts() {
  const std::lock_guard<std::mutex> lock(TheMonitor().mutex);
  return static_cast<int>(TheMonitor().contexts.size());
}
