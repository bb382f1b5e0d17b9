// libFuzzer on the CPU engine's C API: configurations, shapes, lengths, sizes and data, right and
// wrong, in any order of calls. `make sanitize` builds and runs it with the kept corpus; a long
// run:
//
//   make fuzz FUZZ_SECONDS=1800
//
// Every buffer is an allocation of exactly the size that the arguments promise, so that
// AddressSanitizer sees each step beyond it. Checked besides: a refused call has written nothing
// and says why; after a forward call the padding is zero.
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "cc/cpu/convert.h"
#include "cc/cpu/cpu_cudnn.h"
#include "cc/cudnn/descriptors.h"

namespace tf_cudnn_rnn {
namespace {

// What a test would assert.
void Require(bool condition, const char* what) {
  if (condition) return;
  char message[512];
  cpu::cudnnGetLastErrorString(message, sizeof(message));
  std::fprintf(stderr, "violated: %s (last error: %s)\n", what, message);
  std::abort();
}

// The input, byte by byte; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t Byte() { return next_ < size_ ? data_[next_++] : 0; }
  bool Bit() { return Byte() & 1; }
  // From 1 to most, or sometimes a number that no size should be.
  int Size(int most) {
    const int byte = Byte();
    static const int kOdd[] = {0, -1, INT_MIN, INT_MAX, 1 << 16, 1 << 20, 46341};
    return byte >= 249 ? kOdd[byte - 249] : 1 + byte % most;
  }
  // From 0 to most − 1, or sometimes `most`, which no enumerator has.
  template <class Enum>
  Enum Value(int most) {
    const int byte = Byte();
    return static_cast<Enum>(byte == 255 ? most : byte % most);
  }
  cudnnDataType_t Type() {
    static const int kTypes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                 CUDNN_DATA_BFLOAT16};
    const int byte = Byte();
    return static_cast<cudnnDataType_t>(byte == 255 ? 3 : kTypes[byte % 4]);
  }
  // For tensors: the whole input again and again, from some place on.
  void Fill(std::vector<char>* bytes) {
    size_t at = Byte();
    for (char& byte : *bytes) byte = size_ ? static_cast<char>(data_[at++ % size_]) : 0;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t next_ = 0;
};

// Tasks one after another in the order of the input's choice.
class Serial : public cpu::Parallel {
 public:
  Serial(int threads, bool backwards) : threads_(threads), backwards_(backwards) {}
  int num_threads() const override { return threads_; }
  double least_task() const override { return 1e3; }
  void Run(int count, const std::function<void(int)>& task) const override {
    for (int i = 0; i < count; ++i) task(backwards_ ? count - 1 - i : i);
  }

 private:
  const int threads_;
  const bool backwards_;
};

constexpr int64_t kMostElements = 1 << 16;

// Descriptors and tensors of one configuration.
class Network {
 public:
  explicit Network(Input* input)
      : parallel_(1 + input->Byte() % 8, input->Bit()),
        handle_(api_),
        dropout_(api_),
        rnn_(api_),
        x_desc_(api_),
        y_desc_(api_),
        h_desc_(api_),
        c_desc_(api_) {
    is_set_ = SetUp(input);
  }

  // One call of the input's choice.
  void Step(Input* input) {
    if (!is_set_) return;
    const int choice = input->Byte();
    switch (choice % 8) {
      case 0:
      case 1:
        return Forward(CUDNN_FWD_MODE_TRAINING, Perturb(input));
      case 2:
        return Forward(CUDNN_FWD_MODE_INFERENCE, Perturb(input));
      case 3:
        return BackwardData(Perturb(input));
      case 4:
        return BackwardWeights(Perturb(input));
      case 5:  // somebody else's bytes, or a flipped bit
        if (reserve_.empty()) return;
        if (choice & 8) return input->Fill(&reserve_);
        reserve_[(input->Byte() | input->Byte() << 8) % reserve_.size()] ^=
            static_cast<char>(1 << input->Byte() % 8);
        return;
      case 6:
        cpu::SetReserveReadOnly(handle_.get(), input->Bit());
        return MeasureSpaces();
      case 7:
        return WeightParams(input);
    }
  }

  // The other's reserve space in this one's place.
  void TakeReserveOf(const Network& other) {
    const size_t n = std::min(reserve_.size(), other.reserve_.size());
    if (n > 0) std::memcpy(reserve_.data(), other.reserve_.data(), n);
  }

 private:
  using Bytes = std::vector<char>;

  bool SetUp(Input* input) {
    Require(handle_.Create() == 0 && dropout_.Create() == 0 && rnn_.Create() == 0 &&
                x_desc_.Create() == 0 && y_desc_.Create() == 0 && h_desc_.Create() == 0 &&
                c_desc_.Create() == 0,
            "objects can be made");
    cpu::SetParallel(handle_.get(), input->Bit() ? &parallel_ : nullptr);
    type_ = input->Type();
    const cudnnDataType_t math = input->Bit()                 ? input->Type()
                                 : type_ == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                                              : CUDNN_DATA_FLOAT;
    mode_ = input->Value<cudnnRNNMode_t>(4);
    const auto direction = input->Value<cudnnDirectionMode_t>(2);
    const auto input_mode = input->Value<cudnnRNNInputMode_t>(2);
    const auto layout = input->Value<cudnnRNNDataLayout_t>(3);
    I_ = input->Size(20), H_ = input->Size(40), L_ = std::min(input->Size(3), 1 << 16);
    R_ = input->Bit() ? H_ : input->Size(40);
    T_ = std::min(input->Size(6), 1 << 20);  // lists of T numbers are made
    B_ = input->Size(6);
    D_ = direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
    if (input_mode == CUDNN_SKIP_INPUT && input->Bit()) I_ = H_;
    float dropout = input->Byte() / 100.f;  // up to 2.55
    size_t states_size = 0;
    Require(cpu::cudnnDropoutGetStatesSize(handle_.get(), &states_size) == 0, "states have a size");
    states_.resize(states_size);
    if (cpu::cudnnSetDropoutDescriptor(dropout_.get(), handle_.get(), dropout, states_.data(),
                                       states_size, input->Byte()) != 0) {
      RequireMessage();
    }
    if (cpu::cudnnSetRNNDescriptor_v8(
            rnn_.get(), input->Value<cudnnRNNAlgo_t>(2), mode_, CUDNN_RNN_DOUBLE_BIAS, direction,
            input_mode, type_, math, CUDNN_DEFAULT_MATH, I_, H_, R_, L_,
            input->Bit() ? dropout_.get() : nullptr, input->Byte() % 3) != 0) {
      return RequireMessage();
    }
    std::vector<int> lengths(std::max(1, std::min(B_, 1 << 16)));
    for (int& length : lengths) {
      const int byte = input->Byte();
      length = byte < 200 ? T_ : byte < 250 && T_ > 0 ? byte % T_ : byte - 252;
    }
    if (B_ > static_cast<int>(lengths.size())) return false;
    if (cpu::cudnnSetRNNDataDescriptor(x_desc_.get(), type_, layout, T_, B_, I_, lengths.data(),
                                       nullptr) != 0) {
      return RequireMessage();
    }
    int y_width;
    if (__builtin_mul_overflow(D_, R_, &y_width)) return false;
    if (cpu::cudnnSetRNNDataDescriptor(y_desc_.get(), type_, layout, T_, B_, y_width,
                                       lengths.data(), nullptr) != 0) {
      return RequireMessage();
    }
    layout_ = layout;
    lengths_ = lengths;
    size_t weight_bytes = 0;
    if (cpu::cudnnGetRNNWeightSpaceSize(handle_.get(), rnn_.get(), &weight_bytes) != 0) {
      return RequireMessage();
    }
    // Measuring must hold out with any size; computing takes too long.
    MeasureSpaces();
    const __int128 element = cpu::ElementSize(type_), steps = __int128{T_} * B_;
    const __int128 states = __int128{L_} * D_ * B_ * H_;
    if (static_cast<__int128>(weight_bytes) > kMostElements * element ||
        steps * std::max<__int128>(I_, y_width) > kMostElements || states > kMostElements) {
      return false;
    }
    work_.resize(work_size_);
    reserve_.resize(reserve_size_);
    const int P = L_ * D_;
    const int h_dims[] = {P, B_, R_}, h_strides[] = {B_ * R_, R_, 1};
    const int c_dims[] = {P, B_, H_}, c_strides[] = {B_ * H_, H_, 1};
    Require(cpu::cudnnSetTensorNdDescriptor(h_desc_.get(), type_, 3, h_dims, h_strides) == 0 &&
                cpu::cudnnSetTensorNdDescriptor(c_desc_.get(), type_, 3, c_dims, c_strides) == 0,
            "states can be described");
    const auto resize = [&](Bytes* bytes, __int128 elements) {
      bytes->resize(static_cast<size_t>(elements * element));
      input->Fill(bytes);
    };
    __int128 rows = steps;
    if (layout_ == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) {
      rows = 0;
      for (int length : lengths_) rows += length;
    }
    for (Bytes* each : {&x_, &dx_}) resize(each, rows * I_);
    for (Bytes* each : {&y_, &dy_}) resize(each, rows * y_width);
    for (Bytes* each : {&hx_, &hy_, &dhx_, &dhy_}) resize(each, __int128{P} * B_ * R_);
    for (Bytes* each : {&cx_, &cy_, &dcx_, &dcy_}) resize(each, states);
    weights_.resize(weight_bytes);
    input->Fill(&weights_);
    dweights_ = weights_;
    return true;
  }

  // False, for SetUp.
  static bool RequireMessage() {
    char message[512] = "";
    cpu::cudnnGetLastErrorString(message, sizeof(message));
    Require(message[0] != '\0', "a refusal says why");
    return false;
  }

  void MeasureSpaces() {
    size_t work = 0, reserve = 0, inference_work = 0;
    if (cpu::cudnnGetRNNTempSpaceSizes(handle_.get(), rnn_.get(), CUDNN_FWD_MODE_TRAINING,
                                       x_desc_.get(), &work, &reserve) != 0 ||
        cpu::cudnnGetRNNTempSpaceSizes(handle_.get(), rnn_.get(), CUDNN_FWD_MODE_INFERENCE,
                                       x_desc_.get(), &inference_work, nullptr) != 0) {
      RequireMessage();
      return;
    }
    work_size_ = std::max(work, inference_work), reserve_size_ = reserve;
    if (!is_set_) return;
    work_.resize(work_size_);
    reserve_.resize(reserve_size_);
  }

  // How much smaller than needed each size is said to be, and which optional pointers are null.
  struct Wrong {
    size_t work = 0, reserve = 0, weights = 0;
    int nulls = 0;
  };
  static Wrong Perturb(Input* input) {
    Wrong wrong;
    const int byte = input->Byte();
    if (byte == 253) wrong.work = 1 + input->Byte();
    if (byte == 254) wrong.reserve = 1 + input->Byte();
    if (byte == 255) wrong.weights = 1 + input->Byte();
    if (byte >= 200 && byte < 253) wrong.nulls = input->Byte();
    return wrong;
  }
  static size_t Less(size_t size, size_t by) { return size > by ? size - by : 0; }
  static char* Unless(bool null, Bytes* bytes) { return null ? nullptr : bytes->data(); }

  void Forward(cudnnForwardMode_t mode, const Wrong& wrong) {
    const Bytes before = y_;
    const cudnnStatus_t status = cpu::cudnnRNNForward(
        handle_.get(), rnn_.get(), mode, nullptr, x_desc_.get(), x_.data(), y_desc_.get(),
        y_.data(), h_desc_.get(), Unless(wrong.nulls & 1, &hx_), Unless(wrong.nulls & 2, &hy_),
        c_desc_.get(), Unless(wrong.nulls & 4, &cx_), Unless(wrong.nulls & 8, &cy_),
        Less(weights_.size(), wrong.weights), weights_.data(), Less(work_.size(), wrong.work),
        work_.data(), Less(reserve_.size(), wrong.reserve), Unless(wrong.nulls & 16, &reserve_));
    if (status != 0) return RequireUntouched(before, y_);
    if (layout_ == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) return;
    const size_t row = y_.size() / (static_cast<size_t>(T_) * B_);
    const Bytes zeros(row);
    for (int b = 0; b < B_; ++b) {
      for (int t = lengths_[b]; t < T_; ++t) {
        const size_t step = layout_ == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED
                                ? static_cast<size_t>(b) * T_ + t
                                : static_cast<size_t>(t) * B_ + b;
        Require(std::memcmp(y_.data() + step * row, zeros.data(), row) == 0, "padding is zero");
      }
    }
  }

  void BackwardData(const Wrong& wrong) {
    const Bytes before = dx_;
    const cudnnStatus_t status = cpu::cudnnRNNBackwardData_v8(
        handle_.get(), rnn_.get(), nullptr, y_desc_.get(), y_.data(), dy_.data(), x_desc_.get(),
        dx_.data(), h_desc_.get(), Unless(wrong.nulls & 1, &hx_), Unless(wrong.nulls & 2, &dhy_),
        Unless(wrong.nulls & 4, &dhx_), c_desc_.get(), Unless(wrong.nulls & 8, &cx_),
        Unless(wrong.nulls & 16, &dcy_), Unless(wrong.nulls & 32, &dcx_),
        Less(weights_.size(), wrong.weights), weights_.data(), Less(work_.size(), wrong.work),
        work_.data(), Less(reserve_.size(), wrong.reserve), reserve_.data());
    if (status != 0) RequireUntouched(before, dx_);
  }

  void BackwardWeights(const Wrong& wrong) {
    const Bytes before = dweights_;
    const cudnnStatus_t status = cpu::cudnnRNNBackwardWeights_v8(
        handle_.get(), rnn_.get(), wrong.nulls & 2 ? CUDNN_WGRAD_MODE_SET : CUDNN_WGRAD_MODE_ADD,
        nullptr, x_desc_.get(), x_.data(), h_desc_.get(), Unless(wrong.nulls & 1, &hx_),
        y_desc_.get(), y_.data(), Less(dweights_.size(), wrong.weights), dweights_.data(),
        Less(work_.size(), wrong.work), work_.data(), Less(reserve_.size(), wrong.reserve),
        reserve_.data());
    if (status != 0) RequireUntouched(before, dweights_);
  }

  void RequireUntouched(const Bytes& before, const Bytes& after) const {
    RequireMessage();
    Require(before == after, "a refused call writes nothing");
  }

  void WeightParams(Input* input) {
    TensorDescriptor matrix(api_), bias(api_);
    Require(matrix.Create() == 0 && bias.Create() == 0, "descriptors can be made");
    void *matrix_at = nullptr, *bias_at = nullptr;
    if (cpu::cudnnGetRNNWeightParams(handle_.get(), rnn_.get(), input->Byte() - 1,
                                     weights_.size() - (input->Byte() == 255), weights_.data(),
                                     input->Byte() % 16 - 1, matrix.get(), &matrix_at, bias.get(),
                                     &bias_at) != 0) {
      RequireMessage();
      return;
    }
    for (auto [descriptor, at] : {std::pair(matrix.get(), matrix_at), {bias.get(), bias_at}}) {
      cudnnDataType_t type;
      int rank = 0, dims[3] = {}, strides[3] = {};
      cpu::cudnnGetTensorNdDescriptor(descriptor, 3, &type, &rank, dims, strides);
      if (!at) continue;
      const int64_t begin = static_cast<char*>(at) - weights_.data();
      const int64_t bytes = int64_t{dims[1]} * dims[2] * cpu::ElementSize(type);
      Require(begin >= 0 && begin + bytes <= static_cast<int64_t>(weights_.size()),
              "the piece lies in the weight space");
    }
  }

  const CudnnApi& api_ = cpu::Api();
  const Serial parallel_;
  Handle handle_;
  DropoutDescriptor dropout_;
  RnnDescriptor rnn_;
  RnnDataDescriptor x_desc_, y_desc_;
  TensorDescriptor h_desc_, c_desc_;
  bool is_set_ = false;
  cudnnDataType_t type_ = CUDNN_DATA_FLOAT;
  cudnnRNNMode_t mode_ = CUDNN_LSTM;
  cudnnRNNDataLayout_t layout_ = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  int I_ = 0, H_ = 0, R_ = 0, L_ = 0, T_ = 0, B_ = 0, D_ = 1;
  std::vector<int> lengths_;
  size_t work_size_ = 0, reserve_size_ = 0;
  Bytes states_, x_, dx_, y_, dy_, hx_, hy_, dhx_, dhy_, cx_, cy_, dcx_, dcy_, weights_, dweights_,
      work_, reserve_;
};

}  // namespace
}  // namespace tf_cudnn_rnn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tf_cudnn_rnn::Network;
  tf_cudnn_rnn::Input input(data, size);
  Network first(&input), second(&input);
  for (int steps = input.Byte() % 12; steps >= 0; --steps) {
    const int which = input.Byte();
    if (which == 255) second.TakeReserveOf(first);
    (which & 1 ? second : first).Step(&input);
  }
  return 0;
}
