#include "tests/gpu/parity_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "cc/rnn/params_layout.h"
#include "cc/rnn/rnn_setup.h"

namespace tf_cudnn_rnn {
namespace {

uint16_t ToBfloat16(double value) {
  const float narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

double FromBfloat16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float wide;
  std::memcpy(&wide, &bits, 4);
  return wide;
}

// Half: 1 sign, 5 exponent and 10 fraction bits. Values here are far from its limits.
uint16_t ToHalf(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  int exponent;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  if (fraction == 0) return sign;
  // Subnormal below 2^-14: the step stays 2^-24.
  const int step = std::max(exponent - 11, -24);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(fraction, exponent - step)));
  return sign | static_cast<uint16_t>(steps + ((step + 24) << 10));
}

double FromHalf(uint16_t value) {
  const int exponent = (value >> 10) & 31, fraction = value & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = fraction != 0 ? std::nan("") : HUGE_VAL;
  } else {
    magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  }
  return value & 0x8000 ? -magnitude : magnitude;
}

}  // namespace

std::vector<char> Encode(const std::vector<double>& values, cudnnDataType_t type) {
  const size_t size = ElementSize(type);
  std::vector<char> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    char* const to = &bytes[i * size];
    const float single = static_cast<float>(values[i]);
    const uint16_t word = type == CUDNN_DATA_HALF ? ToHalf(values[i]) : ToBfloat16(values[i]);
    if (type == CUDNN_DATA_DOUBLE) {
      std::memcpy(to, &values[i], 8);
    } else if (type == CUDNN_DATA_FLOAT) {
      std::memcpy(to, &single, 4);
    } else {
      std::memcpy(to, &word, 2);
    }
  }
  return bytes;
}

std::vector<double> Decode(const std::vector<char>& bytes, cudnnDataType_t type) {
  const size_t size = ElementSize(type);
  std::vector<double> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    const char* const from = &bytes[i * size];
    float single;
    uint16_t word;
    if (type == CUDNN_DATA_DOUBLE) {
      std::memcpy(&values[i], from, 8);
    } else if (type == CUDNN_DATA_FLOAT) {
      std::memcpy(&single, from, 4);
      values[i] = single;
    } else {
      std::memcpy(&word, from, 2);
      values[i] = type == CUDNN_DATA_HALF ? FromHalf(word) : FromBfloat16(word);
    }
  }
  return values;
}

ParityRun::ParityRun(const ParityCase& parity_case, Backend* backend, RnnSetupCache* setups,
                     float dropout, DropoutStates* dropout_states)
    : case_(parity_case),
      backend_(backend),
      setups_(setups),
      dropout_states_(dropout_states),
      lengths_(case_.Lengths()) {
  const int64_t T = case_.T, B = case_.B, I = case_.I, H = case_.H, R = case_.R();
  const int64_t states = case_.L * case_.D();
  RnnConfig config = case_.config();
  config.dropout = dropout;
  ParamsLayout layout;
  planned_ = ParamsLayout::Create(config, case_.L, H, I, &layout);
  if (!planned_.ok()) return;
  const int64_t params = layout.size();
  const bool time_major = case_.time_major;
  arguments_.input = time_major ? Shape{T, B, I} : Shape{B, T, I};
  arguments_.input_h = time_major ? Shape{states, B, R} : Shape{B, states, R};
  arguments_.input_c = time_major ? Shape{states, B, H} : Shape{B, states, H};
  arguments_.params = Shape{params};
  arguments_.sequence_lengths = Shape{B};
  // Never null, which would mean versions 1 and 2 of the ops.
  static const int32_t none = 0;
  arguments_.sequence_lengths_values = lengths_.empty() ? &none : lengths_.data();
  planned_ = PlanForward(config, arguments_, &plan_);
  if (!planned_.ok()) return;

  const int64_t output = T * B * case_.D() * R, h = states * B * R, c = states * B * H;
  const auto keep = [this](std::shared_ptr<void> memory) {
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  };
  forward_.input = backward_.input = keep(Random(T * B * I, 1));
  forward_.input_h = backward_.input_h = keep(Random(h, 0.6));
  forward_.input_c = backward_.input_c = keep(Random(c, 0.6));
  forward_.params = backward_.params = keep(Random(params, 0.7 / std::sqrt(double(H))));
  backward_.output_backprop = keep(Random(output, 1));
  backward_.output_h_backprop = keep(Random(h, 1));
  backward_.output_c_backprop = keep(Random(c, 1));
  backward_.output = forward_.output = Result("output", output).get();
  forward_.output_h = Result("output_h", h).get();
  backward_.input_backprop = Result("input_backprop", T * B * I).get();
  backward_.input_h_backprop = Result("input_h_backprop", h).get();
  backward_.params_backprop = Result("params_backprop", params).get();
  if (config.lstm()) {
    forward_.output_c = Result("output_c", c).get();
    backward_.input_c_backprop = Result("input_c_backprop", c).get();
  }
}

std::shared_ptr<void> ParityRun::Random(int64_t elements, double scale) {
  std::mt19937_64 random(++seed_);
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> values(elements);
  for (double& value : values) value = normal(random);
  const std::vector<char> bytes = Encode(values, case_.data_type);
  std::shared_ptr<void> memory = backend_->Allocate(bytes.size());
  backend_->Upload(memory.get(), bytes.data(), bytes.size());
  return memory;
}

std::shared_ptr<void> ParityRun::Result(const char* name, int64_t elements) {
  std::shared_ptr<void> memory = backend_->Allocate(elements * ElementSize(case_.data_type));
  results_[name] = {memory, elements};
  return memory;
}

Status ParityRun::Forward() {
  TF_CUDNN_RNN_RETURN_IF_ERROR(planned_);
  const std::unique_ptr<Device> device = backend_->NewDevice();
  RnnCall call(plan_, device.get(), dropout_states_, setups_);
  TF_CUDNN_RNN_RETURN_IF_ERROR(call.Prepare(forward_.params));
  if (reserve_elements_ != call.reserve_elements()) {
    reserve_elements_ = call.reserve_elements();
    reserve_ = backend_->Allocate(reserve_elements_ * ElementSize(case_.data_type));
    forward_.reserve_space = reserve_.get();
    backward_.reserve_space = reserve_.get();
  }
  return call.Forward(forward_);
}

Status ParityRun::Backward() {
  TF_CUDNN_RNN_RETURN_IF_ERROR(planned_);
  const std::unique_ptr<Device> device = backend_->NewDevice();
  RnnCall call(plan_, device.get(), dropout_states_, setups_);
  TF_CUDNN_RNN_RETURN_IF_ERROR(call.Prepare(backward_.params));
  return call.Backward(backward_, Shape{reserve_elements_});
}

Values ParityRun::Results() {
  Values values;
  for (const auto& [name, result] : results_) {
    std::vector<char> bytes(result.second * ElementSize(case_.data_type));
    backend_->Download(bytes.data(), result.first.get(), bytes.size());
    values[name] = Decode(bytes, case_.data_type);
  }
  return values;
}

std::string ParityRun::WeightLayoutDifference() {
  if (!planned_.ok() || plan_.empty()) return "";
  const std::unique_ptr<Device> device = backend_->NewDevice();
  RnnSetup setup(backend_->api());
  const Status status = setup.Create(plan_, device.get(), /*dropout=*/nullptr, forward_.params);
  if (!status.ok()) return status.message();
  if (!setup.relays_params()) return "";
  return Concatenate("weight space of ", setup.weight_bytes(), " bytes in another order than the ",
                     plan_.weights.size() * ElementSize(case_.data_type), " bytes of params");
}

}  // namespace tf_cudnn_rnn
