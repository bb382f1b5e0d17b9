// The C functions that make, set and read objects. Their verdicts are those that cuDNN 9 gives for
// the same arguments.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>

#include "cc/cpu/convert.h"
#include "cc/cpu/cpu_cudnn.h"
#include "cc/cpu/dropout.h"
#include "cc/cpu/objects.h"

namespace tf_cudnn_rnn::cpu {
namespace {

thread_local char last_error[512] = "";

constexpr uint64_t kDropoutMagic = 0x74756f706f726463;

bool IsPair(cudnnDataType_t data, cudnnDataType_t math) {
  switch (data) {
    case CUDNN_DATA_FLOAT:
      return math == CUDNN_DATA_FLOAT;
    case CUDNN_DATA_DOUBLE:
      return math == CUDNN_DATA_DOUBLE;
    case CUDNN_DATA_HALF:
      return math == CUDNN_DATA_FLOAT || math == CUDNN_DATA_HALF;
    case CUDNN_DATA_BFLOAT16:
      return math == CUDNN_DATA_FLOAT;
  }
  return false;
}

template <class T>
void Put(T* to, const T& value) {
  if (to) *to = value;
}

template <class T>
cudnnStatus_t Make(const char* function, T** object) {
  if (!object) return Refuse(CUDNN_STATUS_BAD_PARAM, function, "needs a place for the object");
  *object = new (std::nothrow) T;
  if (!*object) {
    return Refuse(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, function, "out of memory");
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t Refuse(cudnnStatus_t status, const char* function, const char* message, ...) {
  int used = std::snprintf(last_error, sizeof(last_error), "%s: ", function);
  used = std::min<int>(std::max(used, 0), sizeof(last_error) - 1);
  va_list arguments;
  va_start(arguments, message);
  std::vsnprintf(last_error + used, sizeof(last_error) - used, message, arguments);
  va_end(arguments);
  return status;
}

// ---- library ----

// The cuDNN release whose behaviour this engine implements.
size_t cudnnGetVersion() { return 90300; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (message && max_size) std::snprintf(message, max_size, "%s", last_error);
}

// ---- create and destroy ----

#define CREATE_AND_DESTROY(create, destroy, Pointer)                       \
  cudnnStatus_t create(Pointer* object) { return Make(__func__, object); } \
  cudnnStatus_t destroy(Pointer object) {                                  \
    delete object;                                                         \
    return CUDNN_STATUS_SUCCESS;                                           \
  }
CREATE_AND_DESTROY(cudnnCreate, cudnnDestroy, cudnnHandle_t)
CREATE_AND_DESTROY(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor,
                   cudnnTensorDescriptor_t)
CREATE_AND_DESTROY(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor,
                   cudnnFilterDescriptor_t)
CREATE_AND_DESTROY(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor,
                   cudnnDropoutDescriptor_t)
CREATE_AND_DESTROY(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor, cudnnRNNDescriptor_t)
CREATE_AND_DESTROY(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor,
                   cudnnRNNDataDescriptor_t)
#undef CREATE_AND_DESTROY

// ---- handle ----

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  CPU_CUDNN_NEED(handle);
  handle->stream = streamId;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId) {
  CPU_CUDNN_NEED(handle && streamId);
  *streamId = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetParallel(cudnnHandle_t handle, const Parallel* parallel) {
  CPU_CUDNN_NEED(handle);
  handle->parallel = parallel;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetReserveReadOnly(cudnnHandle_t handle, bool read_only) {
  CPU_CUDNN_NEED(handle);
  handle->reserve_read_only = read_only;
  return CUDNN_STATUS_SUCCESS;
}

// ---- tensor and filter descriptors ----

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnDataType_t dataType, int nbDims, const int dimA[],
                                         const int strideA[]) {
  CPU_CUDNN_NEED(tensorDesc && dimA && strideA);
  CPU_CUDNN_NEED(nbDims > 0 && nbDims <= 8);
  CPU_CUDNN_SUPPORT(ElementSize(dataType) > 0);
  for (int i = 0; i < nbDims; ++i) CPU_CUDNN_NEED(dimA[i] > 0);
  tensorDesc->type = dataType;
  tensorDesc->rank = nbDims;
  std::copy_n(dimA, nbDims, tensorDesc->dims);
  std::copy_n(strideA, nbDims, tensorDesc->strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                                         int nbDimsRequested, cudnnDataType_t* dataType,
                                         int* nbDims, int dimA[], int strideA[]) {
  CPU_CUDNN_NEED(tensorDesc);
  const int n = std::max(0, std::min(nbDimsRequested, tensorDesc->rank));
  CPU_CUDNN_NEED(n == 0 || (dimA && strideA));
  Put(dataType, tensorDesc->type);
  Put(nbDims, tensorDesc->rank);
  std::copy_n(tensorDesc->dims, n, dimA);
  std::copy_n(tensorDesc->strides, n, strideA);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t dataType, cudnnTensorFormat_t format,
                                         int nbDims, const int filterDimA[]) {
  CPU_CUDNN_NEED(filterDesc && filterDimA);
  CPU_CUDNN_NEED(nbDims > 0 && nbDims <= 8);
  CPU_CUDNN_SUPPORT(ElementSize(dataType) > 0);
  filterDesc->type = dataType;
  filterDesc->format = format;
  filterDesc->rank = nbDims;
  std::copy_n(filterDimA, nbDims, filterDesc->dims);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc,
                                         int nbDimsRequested, cudnnDataType_t* dataType,
                                         cudnnTensorFormat_t* format, int* nbDims,
                                         int filterDimA[]) {
  CPU_CUDNN_NEED(filterDesc);
  const int n = std::max(0, std::min(nbDimsRequested, filterDesc->rank));
  CPU_CUDNN_NEED(n == 0 || filterDimA);
  Put(dataType, filterDesc->type);
  Put(format, filterDesc->format);
  Put(nbDims, filterDesc->rank);
  std::copy_n(filterDesc->dims, n, filterDimA);
  return CUDNN_STATUS_SUCCESS;
}

// ---- dropout ----

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* sizeInBytes) {
  CPU_CUDNN_NEED(handle && sizeInBytes);
  *sizeInBytes = sizeof(DropoutStates) + alignof(DropoutStates);
  return CUDNN_STATUS_SUCCESS;
}

namespace {

// The states within the caller's buffer, which need not be aligned.
DropoutStates* AlignStates(void* buffer) {
  const uintptr_t past = reinterpret_cast<uintptr_t>(buffer) % alignof(DropoutStates);
  const uintptr_t skipped = past == 0 ? 0 : alignof(DropoutStates) - past;
  return reinterpret_cast<DropoutStates*>(static_cast<char*>(buffer) + skipped);
}

cudnnStatus_t CheckDropout(const char* function, cudnnDropoutDescriptor_t dropoutDesc,
                           cudnnHandle_t handle, float dropout, void* states, size_t size) {
  if (!dropoutDesc || !handle) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "needs a descriptor and a handle");
  }
  if (!(dropout >= 0 && dropout <= 1)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "dropout must be in [0, 1], got %g", dropout);
  }
  const size_t need = sizeof(DropoutStates) + alignof(DropoutStates);
  if (states ? size < need : dropout != 0) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, function, "states must have %zu bytes, got %zu", need,
                  states ? size : 0);
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                        float dropout, void* states, size_t stateSizeInBytes,
                                        unsigned long long seed) {
  const cudnnStatus_t status =
      CheckDropout(__func__, dropoutDesc, handle, dropout, states, stateSizeInBytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  dropoutDesc->dropout = dropout;
  dropoutDesc->states =
      states ? new (AlignStates(states)) DropoutStates{kDropoutMagic, seed, {0}} : nullptr;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                            cudnnHandle_t handle, float dropout, void* states,
                                            size_t stateSizeInBytes, unsigned long long seed) {
  const cudnnStatus_t status =
      CheckDropout(__func__, dropoutDesc, handle, dropout, states, stateSizeInBytes);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  DropoutStates* aligned = states ? AlignStates(states) : nullptr;
  CPU_CUDNN_REQUIRE(!aligned || (aligned->magic == kDropoutMagic && aligned->seed == seed),
                    CUDNN_STATUS_BAD_PARAM,
                    "states must have been set by cudnnSetDropoutDescriptor with this seed");
  dropoutDesc->dropout = dropout;
  dropoutDesc->states = aligned;
  return CUDNN_STATUS_SUCCESS;
}

// ---- RNN descriptor ----

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t cellMode, cudnnRNNBiasMode_t biasMode,
                                       cudnnDirectionMode_t dirMode, cudnnRNNInputMode_t inputMode,
                                       cudnnDataType_t dataType, cudnnDataType_t mathPrec,
                                       cudnnMathType_t mathType, int32_t inputSize,
                                       int32_t hiddenSize, int32_t projSize, int32_t numLayers,
                                       cudnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags) {
  CPU_CUDNN_NEED(rnnDesc);
  CPU_CUDNN_NEED(inputSize > 0 && hiddenSize > 0 && projSize > 0 && numLayers > 0);
  CPU_CUDNN_NEED(cellMode >= CUDNN_RNN_RELU && cellMode <= CUDNN_GRU);
  CPU_CUDNN_NEED(dirMode == CUDNN_UNIDIRECTIONAL || dirMode == CUDNN_BIDIRECTIONAL);
  CPU_CUDNN_NEED(inputMode == CUDNN_LINEAR_INPUT || inputMode == CUDNN_SKIP_INPUT);
  CPU_CUDNN_NEED(biasMode >= CUDNN_RNN_NO_BIAS && biasMode <= CUDNN_RNN_SINGLE_REC_BIAS);
  CPU_CUDNN_NEED(auxFlags <= CUDNN_RNN_PADDED_IO_ENABLED);
  CPU_CUDNN_SUPPORT(biasMode == CUDNN_RNN_DOUBLE_BIAS);
  CPU_CUDNN_SUPPORT(projSize <= hiddenSize);
  CPU_CUDNN_SUPPORT(projSize == hiddenSize ||
                    (cellMode == CUDNN_LSTM && algo == CUDNN_RNN_ALGO_STANDARD));
  CPU_CUDNN_SUPPORT(IsPair(dataType, mathPrec));
  *rnnDesc = {true,     algo,      cellMode,   biasMode, dirMode,   inputMode,   dataType, mathPrec,
              mathType, inputSize, hiddenSize, projSize, numLayers, dropoutDesc, auxFlags};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t* algo,
                                       cudnnRNNMode_t* cellMode, cudnnRNNBiasMode_t* biasMode,
                                       cudnnDirectionMode_t* dirMode,
                                       cudnnRNNInputMode_t* inputMode, cudnnDataType_t* dataType,
                                       cudnnDataType_t* mathPrec, cudnnMathType_t* mathType,
                                       int32_t* inputSize, int32_t* hiddenSize, int32_t* projSize,
                                       int32_t* numLayers, cudnnDropoutDescriptor_t* dropoutDesc,
                                       uint32_t* auxFlags) {
  CPU_CUDNN_NEED(rnnDesc && rnnDesc->is_set);
  Put(algo, rnnDesc->algo);
  Put(cellMode, rnnDesc->mode);
  Put(biasMode, rnnDesc->bias_mode);
  Put(dirMode, rnnDesc->direction);
  Put(inputMode, rnnDesc->input_mode);
  Put(dataType, rnnDesc->type);
  Put(mathPrec, rnnDesc->math_precision);
  Put(mathType, rnnDesc->math_type);
  Put(inputSize, rnnDesc->input_size);
  Put(hiddenSize, rnnDesc->hidden_size);
  Put(projSize, rnnDesc->projection_size);
  Put(numLayers, rnnDesc->layers);
  Put(dropoutDesc, rnnDesc->dropout);
  Put(auxFlags, rnnDesc->flags);
  return CUDNN_STATUS_SUCCESS;
}

// ---- RNN data descriptor ----

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
                                        cudnnDataType_t dataType, cudnnRNNDataLayout_t layout,
                                        int maxSeqLength, int batchSize, int vectorSize,
                                        const int seqLengthArray[], void* paddingFill) {
  CPU_CUDNN_NEED(rnnDataDesc && seqLengthArray);
  CPU_CUDNN_NEED(maxSeqLength > 0 && batchSize > 0 && vectorSize > 0);
  CPU_CUDNN_NEED(layout >= CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED &&
                 layout <= CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED);
  CPU_CUDNN_SUPPORT(ElementSize(dataType) > 0);
  const int* end = seqLengthArray + batchSize;
  for (int b = 0; b < batchSize; ++b) {
    CPU_CUDNN_REQUIRE(seqLengthArray[b] >= 0 && seqLengthArray[b] <= maxSeqLength,
                      CUDNN_STATUS_BAD_PARAM, "seqLengthArray[%d] must be in [0, %d], got %d", b,
                      maxSeqLength, seqLengthArray[b]);
  }
  if (layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) {
    CPU_CUDNN_NEED(std::is_sorted(seqLengthArray, end, std::greater<int>()));
    CPU_CUDNN_NEED(seqLengthArray[0] == maxSeqLength && end[-1] > 0);
  }
  return WithoutExceptions(__func__, [&] {
    rnnDataDesc->lengths.assign(seqLengthArray, end);
    rnnDataDesc->is_set = true;
    rnnDataDesc->type = dataType;
    rnnDataDesc->layout = layout;
    rnnDataDesc->max_length = maxSeqLength;
    rnnDataDesc->batch = batchSize;
    rnnDataDesc->width = vectorSize;
    rnnDataDesc->has_padding_fill = paddingFill != nullptr;
    if (paddingFill) std::memcpy(rnnDataDesc->padding_fill, paddingFill, ElementSize(dataType));
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
                                        cudnnDataType_t* dataType, cudnnRNNDataLayout_t* layout,
                                        int* maxSeqLength, int* batchSize, int* vectorSize,
                                        int arrayLengthRequested, int seqLengthArray[],
                                        void* paddingFill) {
  CPU_CUDNN_NEED(rnnDataDesc && rnnDataDesc->is_set);
  const int n = std::max(0, std::min(arrayLengthRequested, rnnDataDesc->batch));
  CPU_CUDNN_NEED(n == 0 || seqLengthArray);
  Put(dataType, rnnDataDesc->type);
  Put(layout, rnnDataDesc->layout);
  Put(maxSeqLength, rnnDataDesc->max_length);
  Put(batchSize, rnnDataDesc->batch);
  Put(vectorSize, rnnDataDesc->width);
  std::copy_n(rnnDataDesc->lengths.begin(), n, seqLengthArray);
  if (paddingFill && rnnDataDesc->has_padding_fill) {
    std::memcpy(paddingFill, rnnDataDesc->padding_fill, ElementSize(rnnDataDesc->type));
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace tf_cudnn_rnn::cpu
