// The C functions about weights, temporary space and the three computations: they check, stage and
// call the engine.
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "cc/cpu/convert.h"
#include "cc/cpu/cpu_cudnn.h"
#include "cc/cpu/dropout.h"
#include "cc/cpu/objects.h"
#include "cc/cpu/staging.h"
#include "cc/cudnn/weight_layout.h"

namespace tf_cudnn_rnn::cpu {
namespace {

RnnDims DimsOf(const cudnnRNNStruct& rnn) {
  RnnDims dims;
  dims.G = rnn.mode == CUDNN_LSTM ? 4 : rnn.mode == CUDNN_GRU ? 3 : 1;
  dims.L = rnn.layers;
  dims.D = rnn.direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
  dims.I = rnn.input_size;
  dims.H = rnn.hidden_size;
  dims.R = rnn.projection_size;
  dims.skip_input = rnn.input_mode == CUDNN_SKIP_INPUT;
  return dims;
}

// Bytes of the weight space, 0 if they cannot be addressed.
size_t WeightBytes(const cudnnRNNStruct& rnn) {
  const WeightLayout layout(DimsOf(rnn));
  size_t bytes = 0;
  if (layout.Overflows() ||
      __builtin_mul_overflow(static_cast<size_t>(layout.size()),
                             static_cast<size_t>(ElementSize(rnn.type)), &bytes) ||
      bytes > PTRDIFF_MAX) {
    return 0;
  }
  return bytes;
}

// What every computation needs of its descriptors.
cudnnStatus_t CheckCall(const char* function, cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                        cudnnRNNDataDescriptor_t x, cudnnRNNDataDescriptor_t y,
                        size_t weight_bytes) {
  const auto refuse = [&](const char* why) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "%s", why);
  };
  if (!handle || !rnn || !rnn->is_set || !x || !x->is_set || !y || !y->is_set) {
    return refuse("needs a handle and descriptors that are set");
  }
  if (x->type != rnn->type || y->type != rnn->type) return refuse("data types differ");
  if (x->layout != y->layout || x->batch != y->batch || x->max_length != y->max_length ||
      x->lengths != y->lengths) {
    return refuse("xDesc and yDesc must have the same layout, batch size and lengths");
  }
  const RnnDims dims = DimsOf(*rnn);
  if (x->width != dims.I) return refuse("the vector size of xDesc must be inputSize");
  if (y->width != dims.D * dims.R) {
    return refuse("the vector size of yDesc must be projSize times the directions");
  }
  if (dims.skip_input && dims.I != dims.H)
    return refuse("skip input needs inputSize == hiddenSize");
  const bool unpacked = x->layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  if (unpacked && rnn->flags != CUDNN_RNN_PADDED_IO_ENABLED &&
      std::any_of(x->lengths.begin(), x->lengths.end(),
                  [&](int length) { return length != x->max_length; })) {
    return refuse("padded data needs CUDNN_RNN_PADDED_IO_ENABLED");
  }
  const size_t need = WeightBytes(*rnn);
  if (need == 0) return refuse("the weight space is too large");
  if (weight_bytes < need) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "weightSpaceSize must be at least %zu, got %zu",
                  need, weight_bytes);
  }
  return CUDNN_STATUS_SUCCESS;
}

// A state's descriptor, where one is given, must be a dense [L·D, B, width] of the RNN's type.
bool IsStateOf(cudnnTensorDescriptor_t descriptor, const cudnnRNNStruct& rnn, int batch,
               int64_t width) {
  if (!descriptor) return true;
  const int64_t dims[3] = {DimsOf(rnn).pseudo_layers(), batch, width};
  const int64_t strides[3] = {batch * width, width, 1};
  if (descriptor->rank != 3 || descriptor->type != rnn.type) return false;
  for (int i = 0; i < 3; ++i) {
    if (descriptor->dims[i] != dims[i]) return false;
    // A dimension of 1 has any stride, and none above INT32_MAX can be told.
    const bool matters = dims[i] > 1 && strides[i] <= INT32_MAX;
    if (matters && descriptor->strides[i] != strides[i]) return false;
  }
  return true;
}

// Whether each pointer may hold an element of the type; null may.
bool AreAligned(cudnnDataType_t type, std::initializer_list<const void*> pointers) {
  return std::all_of(pointers.begin(), pointers.end(), [&](const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % ElementSize(type) == 0;
  });
}

CallShape ShapeOf(const cudnnContext& handle, const cudnnRNNStruct& rnn,
                  const cudnnRNNDataStruct& x, bool training) {
  CallShape shape;
  shape.type = rnn.type;
  shape.layout = x.layout;
  shape.max_length = x.max_length;
  shape.dropout = training && rnn.dropout && rnn.layers > 1 ? rnn.dropout->dropout : 0;
  shape.plan.reset(new Plan(rnn.mode, DimsOf(rnn), x.lengths));
  Plan& plan = *shape.plan;
  plan.training = training;
  plan.stored_as_computed = rnn.type == CUDNN_DATA_FLOAT || rnn.type == CUDNN_DATA_DOUBLE;
  plan.reserve_read_only = handle.reserve_read_only;
  plan.dropout = shape.dropout > 0;
  if (handle.parallel) {
    plan.threads = std::max(1, handle.parallel->num_threads());
    plan.least_task = handle.parallel->least_task();
  }
  shape.parallel = handle.parallel;
  return shape;
}

template <class F>
auto InComputeType(cudnnDataType_t type, F f) {
  return type == CUDNN_DATA_DOUBLE ? f(double{}) : f(float{});
}

// The sizes of the spaces of a call with this shape; the caller's exact need.
cudnnStatus_t CheckSpace(const char* function, const char* name, size_t got, size_t need,
                         const void* space) {
  if (need == SIZE_MAX) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "%s would be too large", name);
  }
  if (got < need || (need > 0 && !space)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "%s must have at least %zu bytes, got %zu",
                  name, need, space ? got : 0);
  }
  if (reinterpret_cast<uintptr_t>(space) % sizeof(double) != 0) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "%s must be aligned to %zu bytes", name,
                  sizeof(double));
  }
  return CUDNN_STATUS_SUCCESS;
}

// How a computation ends.
cudnnStatus_t Finish(const char* function, const CallShape& shape) {
  if (shape.parallel && shape.parallel->Cancelled()) {
    return Refuse(CUDNN_STATUS_EXECUTION_FAILED, function, "cancelled");
  }
  return CUDNN_STATUS_SUCCESS;
}

#define RETURN_IF_REFUSED(call)                          \
  do {                                                   \
    const cudnnStatus_t status_ = (call);                \
    if (status_ != CUDNN_STATUS_SUCCESS) return status_; \
  } while (false)

}  // namespace

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                         size_t* weightSpaceSize) {
  CPU_CUDNN_NEED(handle && rnnDesc && rnnDesc->is_set && weightSpaceSize);
  *weightSpaceSize = WeightBytes(*rnnDesc);
  CPU_CUDNN_REQUIRE(*weightSpaceSize > 0, CUDNN_STATUS_BAD_PARAM, "the weight space is too large");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                      int32_t pseudoLayer, size_t weightSpaceSize,
                                      const void* weightSpace, int32_t linLayerID,
                                      cudnnTensorDescriptor_t mDesc, void** mAddr,
                                      cudnnTensorDescriptor_t bDesc, void** bAddr) {
  CPU_CUDNN_NEED(handle && rnnDesc && rnnDesc->is_set && mDesc && mAddr && bDesc && bAddr);
  const RnnDims dims = DimsOf(*rnnDesc);
  const size_t bytes = WeightBytes(*rnnDesc);
  CPU_CUDNN_NEED(bytes > 0 && weightSpaceSize >= bytes);
  CPU_CUDNN_NEED(pseudoLayer >= 0 && pseudoLayer < dims.pseudo_layers());
  CPU_CUDNN_NEED(linLayerID >= 0 && linLayerID <= 2 * dims.G);
  const WeightLayout layout(dims);
  const int64_t size = ElementSize(rnnDesc->type);
  char* base = static_cast<char*>(const_cast<void*>(weightSpace));
  // A part that does not exist has rank 0 and no address.
  const auto describe = [&](bool exists, const WeightPiece& piece, cudnnTensorDescriptor_t desc,
                            void** address) {
    *desc = {};
    desc->type = rnnDesc->type;
    *address = nullptr;
    if (!exists || piece.rows * piece.columns == 0) return;
    const int rows = static_cast<int>(piece.rows), columns = static_cast<int>(piece.columns);
    const int dims3[3] = {1, rows, columns};
    // The first stride only matters for a dimension of 1; it must not overflow for the largest
    // matrices.
    const int64_t elements = piece.rows * piece.columns;
    const int strides3[3] = {static_cast<int>(std::min<int64_t>(elements, INT32_MAX)), columns, 1};
    desc->rank = 3;
    std::copy_n(dims3, 3, desc->dims);
    std::copy_n(strides3, 3, desc->strides);
    *address = base + piece.offset * size;
  };
  const bool has_matrix = linLayerID < dims.matrices(), has_bias = linLayerID < 2 * dims.G;
  describe(has_matrix, has_matrix ? layout.Matrix(pseudoLayer, linLayerID) : WeightPiece{}, mDesc,
           mAddr);
  describe(has_bias, has_bias ? layout.Bias(pseudoLayer, linLayerID) : WeightPiece{}, bDesc, bAddr);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                        cudnnForwardMode_t fwdMode, cudnnRNNDataDescriptor_t xDesc,
                                        size_t* workSpaceSize, size_t* reserveSpaceSize) {
  CPU_CUDNN_NEED(handle && rnnDesc && rnnDesc->is_set && xDesc && xDesc->is_set);
  return WithoutExceptions(__func__, [&] {
    const bool training = fwdMode == CUDNN_FWD_MODE_TRAINING;
    const CallShape shape = ShapeOf(*handle, *rnnDesc, *xDesc, training);
    const bool fits = WeightBytes(*rnnDesc) > 0;
    const SpaceSizes sizes =
        !fits
            ? SpaceSizes{SIZE_MAX, SIZE_MAX}
            : InComputeType(shape.type, [&](auto c) { return MeasureSpaces<decltype(c)>(shape); });
    if (sizes.work == SIZE_MAX || sizes.reserve == SIZE_MAX) {
      return Refuse(CUDNN_STATUS_BAD_PARAM, "cudnnGetRNNTempSpaceSizes",
                    "the spaces would be too large");
    }
    if (workSpaceSize) *workSpaceSize = sizes.work;
    if (reserveSpaceSize) *reserveSpaceSize = sizes.reserve;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                              cudnnForwardMode_t fwdMode, const int32_t[],
                              cudnnRNNDataDescriptor_t xDesc, const void* x,
                              cudnnRNNDataDescriptor_t yDesc, void* y,
                              cudnnTensorDescriptor_t hDesc, const void* hx, void* hy,
                              cudnnTensorDescriptor_t cDesc, const void* cx, void* cy,
                              size_t weightSpaceSize, const void* weightSpace, size_t workSpaceSize,
                              void* workSpace, size_t reserveSpaceSize, void* reserveSpace) {
  RETURN_IF_REFUSED(CheckCall(__func__, handle, rnnDesc, xDesc, yDesc, weightSpaceSize));
  CPU_CUDNN_NEED(x && y && weightSpace);
  CPU_CUDNN_NEED(AreAligned(rnnDesc->type, {x, y, hx, hy, cx, cy, weightSpace}));
  CPU_CUDNN_NEED(IsStateOf(hDesc, *rnnDesc, xDesc->batch, rnnDesc->projection_size));
  CPU_CUDNN_NEED(rnnDesc->mode != CUDNN_LSTM ||
                 IsStateOf(cDesc, *rnnDesc, xDesc->batch, rnnDesc->hidden_size));
  return WithoutExceptions(__func__, [&]() -> cudnnStatus_t {
    const char* function = "cudnnRNNForward";
    const bool training = fwdMode == CUDNN_FWD_MODE_TRAINING;
    const CallShape shape = ShapeOf(*handle, *rnnDesc, *xDesc, training);
    return InComputeType(shape.type, [&](auto c) -> cudnnStatus_t {
      using C = decltype(c);
      const SpaceSizes sizes = MeasureSpaces<C>(shape);
      RETURN_IF_REFUSED(CheckSpace(function, "workSpace", workSpaceSize, sizes.work, workSpace));
      RETURN_IF_REFUSED(
          CheckSpace(function, "reserveSpace", reserveSpaceSize, sizes.reserve, reserveSpace));
      DropoutMask mask;
      if (shape.dropout > 0) {
        auto* states = static_cast<DropoutStates*>(rnnDesc->dropout->states);
        mask = {shape.dropout, states->seed, states->calls.fetch_add(1)};
      }
      ForwardTensors tensors{x, y, hx, hy, cx, cy, weightSpace, yDesc->padding_fill};
      StagedForward<C>(shape, tensors, mask, workSpace, reserveSpace);
      return Finish(function, shape);
    });
  });
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                      const int32_t[], cudnnRNNDataDescriptor_t yDesc,
                                      const void* y, const void* dy, cudnnRNNDataDescriptor_t xDesc,
                                      void* dx, cudnnTensorDescriptor_t hDesc, const void* hx,
                                      const void* dhy, void* dhx, cudnnTensorDescriptor_t cDesc,
                                      const void* cx, const void* dcy, void* dcx,
                                      size_t weightSpaceSize, const void* weightSpace,
                                      size_t workSpaceSize, void* workSpace,
                                      size_t reserveSpaceSize, void* reserveSpace) {
  RETURN_IF_REFUSED(CheckCall(__func__, handle, rnnDesc, xDesc, yDesc, weightSpaceSize));
  CPU_CUDNN_NEED(y && dy && dx && weightSpace);
  CPU_CUDNN_NEED(AreAligned(rnnDesc->type, {y, dy, dx, hx, dhy, dhx, cx, dcy, dcx, weightSpace}));
  CPU_CUDNN_NEED(IsStateOf(hDesc, *rnnDesc, xDesc->batch, rnnDesc->projection_size));
  CPU_CUDNN_NEED(rnnDesc->mode != CUDNN_LSTM ||
                 IsStateOf(cDesc, *rnnDesc, xDesc->batch, rnnDesc->hidden_size));
  return WithoutExceptions(__func__, [&]() -> cudnnStatus_t {
    const char* function = "cudnnRNNBackwardData_v8";
    const CallShape shape = ShapeOf(*handle, *rnnDesc, *xDesc, true);
    return InComputeType(shape.type, [&](auto c) -> cudnnStatus_t {
      using C = decltype(c);
      const SpaceSizes sizes = MeasureSpaces<C>(shape);
      RETURN_IF_REFUSED(CheckSpace(function, "workSpace", workSpaceSize, sizes.work, workSpace));
      RETURN_IF_REFUSED(
          CheckSpace(function, "reserveSpace", reserveSpaceSize, sizes.reserve, reserveSpace));
      RETURN_IF_REFUSED(CheckReserve(function, shape, reserveSpace));
      BackwardDataTensors tensors{y, dy, dx, hx, dhy, dhx, cx, dcy, dcx, weightSpace};
      StagedBackwardData<C>(shape, tensors, workSpace, reserveSpace);
      return Finish(function, shape);
    });
  });
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad, const int32_t[],
    cudnnRNNDataDescriptor_t xDesc, const void* x, cudnnTensorDescriptor_t hDesc, const void* hx,
    cudnnRNNDataDescriptor_t yDesc, const void* y, size_t weightSpaceSize, void* dweightSpace,
    size_t workSpaceSize, void* workSpace, size_t reserveSpaceSize, void* reserveSpace) {
  RETURN_IF_REFUSED(CheckCall(__func__, handle, rnnDesc, xDesc, yDesc, weightSpaceSize));
  CPU_CUDNN_NEED(x && y && dweightSpace);
  CPU_CUDNN_NEED(AreAligned(rnnDesc->type, {x, hx, y, dweightSpace}));
  CPU_CUDNN_NEED(IsStateOf(hDesc, *rnnDesc, xDesc->batch, rnnDesc->projection_size));
  return WithoutExceptions(__func__, [&]() -> cudnnStatus_t {
    const char* function = "cudnnRNNBackwardWeights_v8";
    const CallShape shape = ShapeOf(*handle, *rnnDesc, *xDesc, true);
    return InComputeType(shape.type, [&](auto c) -> cudnnStatus_t {
      using C = decltype(c);
      const SpaceSizes sizes = MeasureSpaces<C>(shape);
      RETURN_IF_REFUSED(CheckSpace(function, "workSpace", workSpaceSize, sizes.work, workSpace));
      RETURN_IF_REFUSED(
          CheckSpace(function, "reserveSpace", reserveSpaceSize, sizes.reserve, reserveSpace));
      RETURN_IF_REFUSED(CheckReserve(function, shape, reserveSpace));
      if (addGrad == CUDNN_WGRAD_MODE_SET) std::memset(dweightSpace, 0, WeightBytes(*rnnDesc));
      BackwardWeightsTensors tensors{x, y, hx, dweightSpace};
      StagedBackwardWeights<C>(shape, tensors, workSpace, reserveSpace);
      return Finish(function, shape);
    });
  });
}

const CudnnApi& Api() {
  static const CudnnApi api = [] {
    CudnnApi table;
#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments) table.name = cpu::name;
#include "cc/cudnn/cudnn_functions.inc"
    return table;
  }();
  return api;
}

}  // namespace tf_cudnn_rnn::cpu
