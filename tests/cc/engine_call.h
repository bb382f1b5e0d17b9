// Calls of the CPU engine through its C API, for tests: descriptors, tensors of random numbers,
// spaces of exactly the sizes that the engine asks for, and guard bytes around all of it.
#ifndef TF_CUDNN_RNN_OPS_TESTS_CC_ENGINE_CALL_H_
#define TF_CUDNN_RNN_OPS_TESTS_CC_ENGINE_CALL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "cc/cpu/convert.h"
#include "cc/cpu/cpu_cudnn.h"
#include "cc/cudnn/descriptors.h"
#include "cc/cudnn/weight_layout.h"

namespace tf_cudnn_rnn {

// Bytes between two guards that nothing may touch.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t size = 0) { Resize(size); }

  // All bytes become 0xff: NaN in every type.
  void Resize(size_t size) {
    size_ = size;
    bytes_.assign(size + 2 * kGuard + kAlignment, '\xff');
    const uintptr_t address = reinterpret_cast<uintptr_t>(bytes_.data());
    begin_ = kGuard + (kAlignment - address % kAlignment) % kAlignment;
    std::memset(bytes_.data(), kPattern, begin_);
    std::memset(bytes_.data() + begin_ + size, kPattern, bytes_.size() - begin_ - size);
  }
  GuardedBytes(const GuardedBytes& other) { *this = other; }
  GuardedBytes& operator=(const GuardedBytes& other) {
    Resize(other.size_);
    if (size_ > 0) std::memcpy(data(), other.data(), size_);
    return *this;
  }

  char* data() { return bytes_.data() + begin_; }
  const char* data() const { return bytes_.data() + begin_; }
  size_t size() const { return size_; }

  bool GuardsAreIntact() const {
    const auto is_pattern = [](char byte) { return byte == kPattern; };
    return std::all_of(bytes_.begin(), bytes_.begin() + begin_, is_pattern) &&
           std::all_of(bytes_.begin() + begin_ + size_, bytes_.end(), is_pattern);
  }

  friend bool operator==(const GuardedBytes& a, const GuardedBytes& b) {
    return a.size_ == b.size_ && std::memcmp(a.data(), b.data(), a.size_) == 0;
  }

 private:
  static constexpr size_t kGuard = 64, kAlignment = 64;
  static constexpr char kPattern = 0x5a;

  std::vector<char> bytes_;
  size_t begin_ = 0, size_ = 0;
};

// Element i of a tensor of `type`.
inline double ReadElement(cudnnDataType_t type, const void* tensor, int64_t i) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return static_cast<const double*>(tensor)[i];
    case CUDNN_DATA_FLOAT:
      return static_cast<const float*>(tensor)[i];
    default:
      float value;
      cpu::ConvertToFloat(type, static_cast<const uint16_t*>(tensor) + i, &value, 1);
      return value;
  }
}
inline void WriteElement(cudnnDataType_t type, double value, void* tensor, int64_t i) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      static_cast<double*>(tensor)[i] = value;
      return;
    case CUDNN_DATA_FLOAT:
      static_cast<float*>(tensor)[i] = static_cast<float>(value);
      return;
    default:
      const float narrow = static_cast<float>(value);
      cpu::ConvertFromFloat(type, &narrow, static_cast<uint16_t*>(tensor) + i, 1);
  }
}

struct EngineCase {
  cudnnRNNMode_t mode = CUDNN_LSTM;
  int L = 1, D = 1, T = 4, B = 3, I = 5, H = 6;
  int R = 0;                 // 0: H
  std::vector<int> lengths;  // empty: all T
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  bool skip_input = false;
  float dropout = 0;
  uint64_t seed = 7;  // of the dropout masks

  RnnDims dims() const {
    RnnDims dims;
    dims.G = mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1;
    dims.L = L, dims.D = D, dims.I = I, dims.H = H, dims.R = R > 0 ? R : H;
    dims.skip_input = skip_input;
    return dims;
  }
  cudnnDataType_t math_precision() const {
    return type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  }

  friend std::ostream& operator<<(std::ostream& out, const EngineCase& c) {
    static const char* const kModes[] = {"relu", "tanh", "lstm", "gru"};
    out << kModes[c.mode] << " L" << c.L << " D" << c.D << " T" << c.T << " B" << c.B << " I" << c.I
        << " H" << c.H << " R" << c.dims().R << " type " << c.type << " layout " << c.layout
        << (c.skip_input ? " skip_input" : "") << " dropout " << c.dropout << " lengths";
    for (int length : c.lengths) out << ' ' << length;
    return out;
  }
};

// What a call computes.
struct EngineResults {
  GuardedBytes y, hy, cy, dx, dhx, dcx, dweights;

  // The first that differs, or "".
  std::string DifferenceFrom(const EngineResults& other) const {
    if (!(y == other.y)) return "y";
    if (!(hy == other.hy)) return "hy";
    if (!(cy == other.cy)) return "cy";
    if (!(dx == other.dx)) return "dx";
    if (!(dhx == other.dhx)) return "dhx";
    if (!(dcx == other.dcx)) return "dcx";
    if (!(dweights == other.dweights)) return "dweights";
    return "";
  }
};

// Everything is public, so that a test can put something wrong in a place of its choice.
struct EngineCall {
  EngineCall(const EngineCase& configuration, const cpu::Parallel* parallel = nullptr,
             bool reserve_read_only = false)
      : c(configuration),
        api(cpu::Api()),
        handle(api),
        dropout_desc(api),
        rnn(api),
        x_desc(api),
        y_desc(api),
        h_desc(api),
        c_desc(api) {
    if (c.lengths.empty()) c.lengths.assign(c.B, c.T);
    status = SetUp(parallel, reserve_read_only);
  }

  cudnnStatus_t Forward(cudnnForwardMode_t mode = CUDNN_FWD_MODE_TRAINING) {
    return api.cudnnRNNForward(
        handle.get(), rnn.get(), mode, nullptr, x_desc.get(), x.data(), y_desc.get(), out.y.data(),
        h_desc.get(), hx.data(), out.hy.data(), c_desc.get(), cx.data(), out.cy.data(),
        weights.size(), weights.data(), work.size(), work.data(), reserve.size(), reserve.data());
  }
  cudnnStatus_t BackwardData() {
    return api.cudnnRNNBackwardData_v8(
        handle.get(), rnn.get(), nullptr, y_desc.get(), out.y.data(), dy.data(), x_desc.get(),
        out.dx.data(), h_desc.get(), hx.data(), dhy.data(), out.dhx.data(), c_desc.get(), cx.data(),
        dcy.data(), out.dcx.data(), weights.size(), weights.data(), work.size(), work.data(),
        reserve.size(), reserve.data());
  }
  cudnnStatus_t BackwardWeights(cudnnWgradMode_t mode = CUDNN_WGRAD_MODE_ADD) {
    return api.cudnnRNNBackwardWeights_v8(handle.get(), rnn.get(), mode, nullptr, x_desc.get(),
                                          x.data(), h_desc.get(), hx.data(), y_desc.get(),
                                          out.y.data(), out.dweights.size(), out.dweights.data(),
                                          work.size(), work.data(), reserve.size(), reserve.data());
  }
  // Without a reserve, in the work space that an inference asks for.
  cudnnStatus_t Infer() {
    size_t work_bytes = 0, reserve_bytes = 0;
    const cudnnStatus_t result =
        api.cudnnGetRNNTempSpaceSizes(handle.get(), rnn.get(), CUDNN_FWD_MODE_INFERENCE,
                                      x_desc.get(), &work_bytes, &reserve_bytes);
    if (result != CUDNN_STATUS_SUCCESS) return result;
    work.Resize(work_bytes);
    return Forward(CUDNN_FWD_MODE_INFERENCE);
  }
  // All three; the first refusal.
  cudnnStatus_t Run() {
    std::memset(out.dweights.data(), 0, out.dweights.size());
    cudnnStatus_t result = Forward();
    if (result == CUDNN_STATUS_SUCCESS) result = BackwardData();
    if (result == CUDNN_STATUS_SUCCESS) result = BackwardWeights();
    return result;
  }

  bool GuardsAreIntact() const {
    for (const GuardedBytes* each :
         {&x, &hx, &cx, &weights, &dy, &dhy, &dcy, &out.y, &out.hy, &out.cy, &out.dx, &out.dhx,
          &out.dcx, &out.dweights, &work, &reserve, &dropout_states}) {
      if (!each->GuardsAreIntact()) return false;
    }
    return true;
  }

  // The number of row b at time t in a sequence tensor that is not packed.
  int64_t Row(int t, int b) const {
    return c.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED ? int64_t{b} * c.T + t
                                                                  : int64_t{t} * c.B + b;
  }

  EngineCase c;
  const CudnnApi& api;
  cudnnStatus_t status;  // of the constructor
  Handle handle;
  DropoutDescriptor dropout_desc;
  RnnDescriptor rnn;
  RnnDataDescriptor x_desc, y_desc;
  TensorDescriptor h_desc, c_desc;
  GuardedBytes x, hx, cx, weights, dy, dhy, dcy;
  EngineResults out;
  GuardedBytes work, reserve, dropout_states;

 private:
  cudnnStatus_t SetUp(const cpu::Parallel* parallel, bool reserve_read_only) {
    const RnnDims dims = c.dims();
    const int P = dims.pseudo_layers(), R = static_cast<int>(dims.R);
    const int h_dims[] = {P, c.B, R}, h_strides[] = {c.B * R, R, 1};
    const int c_dims[] = {P, c.B, c.H}, c_strides[] = {c.B * c.H, c.H, 1};
    size_t states = 0, weight_bytes = 0, work_bytes = 0, reserve_bytes = 0;
    const auto first_refusal = [](std::initializer_list<cudnnStatus_t> all) {
      for (cudnnStatus_t each : all) {
        if (each != CUDNN_STATUS_SUCCESS) return each;
      }
      return CUDNN_STATUS_SUCCESS;
    };
    cudnnStatus_t result = first_refusal({handle.Create(), dropout_desc.Create(), rnn.Create(),
                                          x_desc.Create(), y_desc.Create(), h_desc.Create(),
                                          c_desc.Create(), cpu::SetParallel(handle.get(), parallel),
                                          cpu::SetReserveReadOnly(handle.get(), reserve_read_only),
                                          api.cudnnDropoutGetStatesSize(handle.get(), &states)});
    if (result != CUDNN_STATUS_SUCCESS) return result;
    dropout_states.Resize(states);
    result = first_refusal(
        {api.cudnnSetDropoutDescriptor(dropout_desc.get(), handle.get(), c.dropout,
                                       dropout_states.data(), states, c.seed),
         api.cudnnSetRNNDescriptor_v8(
             rnn.get(), CUDNN_RNN_ALGO_STANDARD, c.mode, CUDNN_RNN_DOUBLE_BIAS,
             c.D == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
             c.skip_input ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT, c.type, c.math_precision(),
             CUDNN_DEFAULT_MATH, c.I, c.H, R, c.L, dropout_desc.get(), CUDNN_RNN_PADDED_IO_ENABLED),
         api.cudnnSetRNNDataDescriptor(x_desc.get(), c.type, c.layout, c.T, c.B, c.I,
                                       c.lengths.data(), nullptr),
         api.cudnnSetRNNDataDescriptor(y_desc.get(), c.type, c.layout, c.T, c.B, c.D * R,
                                       c.lengths.data(), nullptr),
         api.cudnnSetTensorNdDescriptor(h_desc.get(), c.type, 3, h_dims, h_strides),
         api.cudnnSetTensorNdDescriptor(c_desc.get(), c.type, 3, c_dims, c_strides)});
    if (result != CUDNN_STATUS_SUCCESS) return result;
    result = first_refusal(
        {api.cudnnGetRNNWeightSpaceSize(handle.get(), rnn.get(), &weight_bytes),
         api.cudnnGetRNNTempSpaceSizes(handle.get(), rnn.get(), CUDNN_FWD_MODE_TRAINING,
                                       x_desc.get(), &work_bytes, &reserve_bytes)});
    if (result != CUDNN_STATUS_SUCCESS) return result;
    work.Resize(work_bytes);
    reserve.Resize(reserve_bytes);

    int64_t steps = int64_t{c.T} * c.B;
    if (c.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) {
      steps = 0;
      for (int length : c.lengths) steps += length;
    }
    const int64_t h = int64_t{P} * c.B * R, cell = int64_t{P} * c.B * c.H;
    const int64_t size = cpu::ElementSize(c.type);
    Fill(&x, steps * c.I);
    Fill(&hx, h);
    Fill(&cx, cell);
    Fill(&weights, weight_bytes / size, 1 / std::max(1.0, std::sqrt(c.H / 8.0)));
    Fill(&dy, steps * c.D * R);
    Fill(&dhy, h);
    Fill(&dcy, cell);
    out.y.Resize(steps * c.D * R * size);
    out.hy.Resize(h * size);
    out.cy.Resize(cell * size);
    out.dx.Resize(steps * c.I * size);
    out.dhx.Resize(h * size);
    out.dcx.Resize(cell * size);
    out.dweights.Resize(weight_bytes);
    std::memset(out.dweights.data(), 0, weight_bytes);
    return CUDNN_STATUS_SUCCESS;
  }

  void Fill(GuardedBytes* tensor, int64_t n, double bound = 1) {
    tensor->Resize(n * cpu::ElementSize(c.type));
    for (int64_t i = 0; i < n; ++i) {
      // A linear congruential generator: the tests make millions of these numbers.
      random_ = random_ * 6364136223846793005 + 1442695040888963407;
      const double uniform = static_cast<double>(random_ >> 11) * 0x1p-52 - 1;
      WriteElement(c.type, bound * uniform, tensor->data(), i);
    }
  }

  uint64_t random_ = 1;
};

// What the engine says about its last refusal.
inline std::string LastError() {
  char message[512];
  cpu::cudnnGetLastErrorString(message, sizeof(message));
  return message;
}

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_TESTS_CC_ENGINE_CALL_H_
