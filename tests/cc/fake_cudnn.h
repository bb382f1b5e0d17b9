// A CudnnApi that computes nothing: it writes down what it is asked for, fails where a test says
// so, and lets the test do something in the place of the computations. One at a time, on one
// thread.
#ifndef TF_CUDNN_RNN_OPS_TESTS_CC_FAKE_CUDNN_H_
#define TF_CUDNN_RNN_OPS_TESTS_CC_FAKE_CUDNN_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cc/cudnn/cudnn_api.h"

namespace tf_cudnn_rnn {

// Everything that cudnnRNNForward, cudnnRNNBackwardData_v8 or cudnnRNNBackwardWeights_v8 gets; what
// a function does not have stays as it is here.
struct FakeRun {
  const void *x = nullptr, *hx = nullptr, *cx = nullptr, *weights = nullptr;
  const void *y = nullptr, *dy = nullptr, *dhy = nullptr, *dcy = nullptr;
  void *y_out = nullptr, *hy = nullptr, *cy = nullptr;
  void *dx = nullptr, *dhx = nullptr, *dcx = nullptr, *dweights = nullptr;
  void *work = nullptr, *reserve = nullptr;
  size_t weight_bytes = 0, work_bytes = 0, reserve_bytes = 0;
  bool has_c_descriptor = false;
};

struct FakeRnn {
  cudnnRNNAlgo_t algo;
  cudnnRNNMode_t mode;
  cudnnRNNBiasMode_t bias;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input_mode;
  cudnnDataType_t data_type, math_precision;
  cudnnMathType_t math_type;
  int32_t input, hidden, projection, layers;
  bool has_dropout;
  uint32_t flags;
};

struct FakeData {
  cudnnDataType_t data_type;
  cudnnRNNDataLayout_t layout;
  int T, B, width;
  std::vector<int> lengths;
  uint64_t fill_bits;  // as many as the type has
};

class FakeCudnn {
 public:
  FakeCudnn() { current_ = this; }
  ~FakeCudnn() { current_ = nullptr; }

  const CudnnApi& api() const;

  // Names of the functions called, in order; queries of error texts are left out.
  std::vector<std::string> calls;
  // Objects that are not destroyed.
  int alive = 0;

  // Function name → what it answers.
  std::map<std::string, cudnnStatus_t> failures;
  std::string last_error;
  size_t work_bytes = 256, reserve_bytes = 100, dropout_states_bytes = 64;
  std::function<void(const FakeRun&)> forward, backward_data, backward_weights;

  // What was set last: x is described first, y second.
  FakeRnn rnn;
  std::vector<FakeData> data;
  std::vector<std::vector<int>> tensors;  // dims, then strides
  cudnnForwardMode_t asked_mode;          // of cudnnGetRNNTempSpaceSizes
  unsigned long long dropout_seed = 0;
  float dropout = 0;
  void* dropout_states = nullptr;
  size_t dropout_given_bytes = 0;

 private:
  friend struct FakeFunctions;
  static inline FakeCudnn* current_ = nullptr;
};

// The functions of the table.
struct FakeFunctions {
  static FakeCudnn& fake() { return *FakeCudnn::current_; }

  static cudnnStatus_t Answer(const char* name) {
    fake().calls.push_back(name);
    const auto failure = fake().failures.find(name);
    return failure == fake().failures.end() ? CUDNN_STATUS_SUCCESS : failure->second;
  }

  template <typename Object>
  static cudnnStatus_t Create(const char* name, Object* object) {
    const cudnnStatus_t status = Answer(name);
    if (status == CUDNN_STATUS_SUCCESS) {
      ++fake().alive;
      *object = reinterpret_cast<Object>(new char);
    }
    return status;
  }
  template <typename Object>
  static cudnnStatus_t Destroy(Object object) {
    --fake().alive;
    delete reinterpret_cast<char*>(object);
    return CUDNN_STATUS_SUCCESS;
  }

  static cudnnStatus_t CreateRNN(cudnnRNNDescriptor_t* d) {
    return Create("cudnnCreateRNNDescriptor", d);
  }
  static cudnnStatus_t CreateData(cudnnRNNDataDescriptor_t* d) {
    return Create("cudnnCreateRNNDataDescriptor", d);
  }
  static cudnnStatus_t CreateTensor(cudnnTensorDescriptor_t* d) {
    return Create("cudnnCreateTensorDescriptor", d);
  }
  static cudnnStatus_t CreateDropout(cudnnDropoutDescriptor_t* d) {
    return Create("cudnnCreateDropoutDescriptor", d);
  }
  static cudnnStatus_t DestroyRNN(cudnnRNNDescriptor_t d) { return Destroy(d); }
  static cudnnStatus_t DestroyData(cudnnRNNDataDescriptor_t d) { return Destroy(d); }
  static cudnnStatus_t DestroyTensor(cudnnTensorDescriptor_t d) { return Destroy(d); }
  static cudnnStatus_t DestroyDropout(cudnnDropoutDescriptor_t d) { return Destroy(d); }

  static const char* ErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_BAD_PARAM       ? "CUDNN_STATUS_BAD_PARAM"
           : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                  : "CUDNN_STATUS_OTHER";
  }
  static void LastError(char* message, size_t size) {
    std::snprintf(message, size, "%s", fake().last_error.c_str());
  }

  static cudnnStatus_t SetRNN(cudnnRNNDescriptor_t, cudnnRNNAlgo_t algo, cudnnRNNMode_t mode,
                              cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                              cudnnRNNInputMode_t input_mode, cudnnDataType_t data_type,
                              cudnnDataType_t math_precision, cudnnMathType_t math_type,
                              int32_t input, int32_t hidden, int32_t projection, int32_t layers,
                              cudnnDropoutDescriptor_t dropout, uint32_t flags) {
    fake().rnn = {
        algo,      mode,  bias,   direction,  input_mode, data_type,          math_precision,
        math_type, input, hidden, projection, layers,     dropout != nullptr, flags};
    return Answer("cudnnSetRNNDescriptor_v8");
  }

  static cudnnStatus_t SetData(cudnnRNNDataDescriptor_t, cudnnDataType_t data_type,
                               cudnnRNNDataLayout_t layout, int T, int B, int width,
                               const int lengths[], void* fill) {
    FakeData data = {data_type, layout, T, B, width, {lengths, lengths + B}, 0};
    if (data_type == CUDNN_DATA_DOUBLE) {
      data.fill_bits = *static_cast<const uint64_t*>(fill);
    } else if (data_type == CUDNN_DATA_FLOAT) {
      data.fill_bits = *static_cast<const uint32_t*>(fill);
    } else {
      data.fill_bits = *static_cast<const uint16_t*>(fill);
    }
    fake().data.push_back(data);
    return Answer("cudnnSetRNNDataDescriptor");
  }

  static cudnnStatus_t SetTensor(cudnnTensorDescriptor_t, cudnnDataType_t, int rank,
                                 const int dims[], const int strides[]) {
    std::vector<int> both(dims, dims + rank);
    both.insert(both.end(), strides, strides + rank);
    fake().tensors.push_back(both);
    return Answer("cudnnSetTensorNdDescriptor");
  }

  static cudnnStatus_t StatesSize(cudnnHandle_t, size_t* bytes) {
    *bytes = fake().dropout_states_bytes;
    return Answer("cudnnDropoutGetStatesSize");
  }
  static cudnnStatus_t SetDropout(cudnnDropoutDescriptor_t, cudnnHandle_t, float dropout,
                                  void* states, size_t bytes, unsigned long long seed) {
    fake().dropout = dropout;
    fake().dropout_states = states;
    fake().dropout_given_bytes = bytes;
    fake().dropout_seed = seed;
    return Answer("cudnnSetDropoutDescriptor");
  }
  static cudnnStatus_t RestoreDropout(cudnnDropoutDescriptor_t, cudnnHandle_t, float dropout,
                                      void* states, size_t bytes, unsigned long long seed) {
    fake().dropout = dropout;
    fake().dropout_states = states;
    fake().dropout_given_bytes = bytes;
    fake().dropout_seed = seed;
    return Answer("cudnnRestoreDropoutDescriptor");
  }

  static cudnnStatus_t TempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t mode,
                                      cudnnRNNDataDescriptor_t, size_t* work, size_t* reserve) {
    fake().asked_mode = mode;
    *work = fake().work_bytes;
    *reserve = fake().reserve_bytes;
    return Answer("cudnnGetRNNTempSpaceSizes");
  }

  static cudnnStatus_t Forward(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t,
                               const int32_t[], cudnnRNNDataDescriptor_t, const void* x,
                               cudnnRNNDataDescriptor_t, void* y, cudnnTensorDescriptor_t,
                               const void* hx, void* hy, cudnnTensorDescriptor_t c, const void* cx,
                               void* cy, size_t weight_bytes, const void* weights,
                               size_t work_bytes, void* work, size_t reserve_bytes, void* reserve) {
    FakeRun run;
    run.x = x, run.y_out = y, run.hx = hx, run.hy = hy, run.cx = cx, run.cy = cy;
    run.weights = weights, run.weight_bytes = weight_bytes;
    run.work = work, run.work_bytes = work_bytes;
    run.reserve = reserve, run.reserve_bytes = reserve_bytes;
    run.has_c_descriptor = c != nullptr;
    if (fake().forward) fake().forward(run);
    return Answer("cudnnRNNForward");
  }
  static cudnnStatus_t BackwardData(cudnnHandle_t, cudnnRNNDescriptor_t, const int32_t[],
                                    cudnnRNNDataDescriptor_t, const void* y, const void* dy,
                                    cudnnRNNDataDescriptor_t, void* dx, cudnnTensorDescriptor_t,
                                    const void* hx, const void* dhy, void* dhx,
                                    cudnnTensorDescriptor_t c, const void* cx, const void* dcy,
                                    void* dcx, size_t weight_bytes, const void* weights,
                                    size_t work_bytes, void* work, size_t reserve_bytes,
                                    void* reserve) {
    FakeRun run;
    run.y = y, run.dy = dy, run.dx = dx, run.hx = hx, run.dhy = dhy, run.dhx = dhx;
    run.cx = cx, run.dcy = dcy, run.dcx = dcx;
    run.weights = weights, run.weight_bytes = weight_bytes;
    run.work = work, run.work_bytes = work_bytes;
    run.reserve = reserve, run.reserve_bytes = reserve_bytes;
    run.has_c_descriptor = c != nullptr;
    if (fake().backward_data) fake().backward_data(run);
    return Answer("cudnnRNNBackwardData_v8");
  }
  static cudnnStatus_t BackwardWeights(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnWgradMode_t,
                                       const int32_t[], cudnnRNNDataDescriptor_t, const void* x,
                                       cudnnTensorDescriptor_t, const void* hx,
                                       cudnnRNNDataDescriptor_t, const void* y, size_t weight_bytes,
                                       void* dweights, size_t work_bytes, void* work,
                                       size_t reserve_bytes, void* reserve) {
    FakeRun run;
    run.x = x, run.hx = hx, run.y = y, run.dweights = dweights, run.weight_bytes = weight_bytes;
    run.work = work, run.work_bytes = work_bytes;
    run.reserve = reserve, run.reserve_bytes = reserve_bytes;
    if (fake().backward_weights) fake().backward_weights(run);
    return Answer("cudnnRNNBackwardWeights_v8");
  }

  static CudnnApi Table() {
    CudnnApi api;
    api.cudnnGetErrorString = ErrorString;
    api.cudnnGetLastErrorString = LastError;
    api.cudnnCreateRNNDescriptor = CreateRNN;
    api.cudnnDestroyRNNDescriptor = DestroyRNN;
    api.cudnnCreateRNNDataDescriptor = CreateData;
    api.cudnnDestroyRNNDataDescriptor = DestroyData;
    api.cudnnCreateTensorDescriptor = CreateTensor;
    api.cudnnDestroyTensorDescriptor = DestroyTensor;
    api.cudnnCreateDropoutDescriptor = CreateDropout;
    api.cudnnDestroyDropoutDescriptor = DestroyDropout;
    api.cudnnSetRNNDescriptor_v8 = SetRNN;
    api.cudnnSetRNNDataDescriptor = SetData;
    api.cudnnSetTensorNdDescriptor = SetTensor;
    api.cudnnDropoutGetStatesSize = StatesSize;
    api.cudnnSetDropoutDescriptor = SetDropout;
    api.cudnnRestoreDropoutDescriptor = RestoreDropout;
    api.cudnnGetRNNTempSpaceSizes = TempSpaceSizes;
    api.cudnnRNNForward = Forward;
    api.cudnnRNNBackwardData_v8 = BackwardData;
    api.cudnnRNNBackwardWeights_v8 = BackwardWeights;
    return api;
  }
};

inline const CudnnApi& FakeCudnn::api() const {
  static const CudnnApi api = FakeFunctions::Table();
  return api;
}

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_TESTS_CC_FAKE_CUDNN_H_
