// The ops on NVIDIA GPUs: cuDNN on TensorFlow's memory and streams. Registered only where
// TensorFlow was built with CUDA; cuDNN is opened when the first of these kernels needs it.
#include <optional>
#include <utility>
#include <vector>

#include "cc/cudnn/cuda_driver.h"
#include "cc/cudnn/cudnn_library.h"
#include "cc/kernels/rnn_ops_kernels.h"
#include "cc/ops/only_copy.h"
#include "cc/rnn/cuda_device.h"
#include "cc/rnn/handle_pool.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/tensor_float_32_utils.h"
#include "tensorflow/core/util/port.h"
#include "xla/stream_executor/stream.h"

namespace tf_cudnn_rnn {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// Lives on: when static objects are destroyed CUDA may be gone.
HandlePool& Handles() {
  static HandlePool* const pool = new HandlePool(Cudnn().api);
  return *pool;
}

// Of the GPU whose context is the current one.
DeviceTraits GpuTraits() {
  DeviceTraits traits;
  traits.takes_bfloat16 = GpuTakesBfloat16(Driver());
  traits.tensor_float_32 = tensorflow::tensor_float_32_execution_enabled();
  return traits;
}

// Device memory from TensorFlow's allocator, which gives it away again in the stream's order.
class GpuDevice final : public CudaDevice {
 public:
  GpuDevice(OpKernelContext* ctx, CUcontext context, CUstream stream)
      : CudaDevice(Cudnn().api, /*handle=*/nullptr, GpuTraits(), Driver(), stream),
        ctx_(ctx),
        context_(context),
        stream_(stream) {}

  Status Open() override {
    if (!Cudnn().ok()) return Internal(Cudnn().error);
    TF_CUDNN_RNN_RETURN_IF_ERROR(Handles().Borrow(context_, stream_, &lease_));
    set_handle(lease_.handle());
    return Status();
  }

  Status Allocate(size_t bytes, void** memory) override {
    *memory = nullptr;
    if (bytes == 0) return Status();
    scratch_.emplace_back();
    return AllocateTensor(bytes, &scratch_.back(), memory);
  }

  Status AllocateShared(size_t bytes, std::shared_ptr<void>* memory) override {
    auto tensor = std::make_shared<Tensor>();
    void* data;
    TF_CUDNN_RNN_RETURN_IF_ERROR(AllocateTensor(bytes, tensor.get(), &data));
    *memory = std::shared_ptr<void>(std::move(tensor), data);
    return Status();
  }

 private:
  Status AllocateTensor(size_t bytes, Tensor* tensor, void** memory) {
    const tensorflow::TensorShape shape({static_cast<int64_t>(bytes)});
    TF_CUDNN_RNN_RETURN_IF_ERROR(
        FromTensorFlow(ctx_->allocate_temp(tensorflow::DT_UINT8, shape, tensor)));
    *memory = tensor->data();
    return Status();
  }

  OpKernelContext* const ctx_;
  const CUcontext context_;
  const CUstream stream_;
  HandlePool::Lease lease_;
  std::vector<Tensor> scratch_;
};

class GpuBackend {
 public:
  explicit GpuBackend(OpKernelContext* ctx) : ctx_(ctx) {}

  Status Open() {
    const tensorflow::DeviceContext* device_context = ctx_->op_device_context();
    if (device_context == nullptr || device_context->stream() == nullptr) {
      return Internal("TensorFlow gave the kernel no stream");
    }
    if (!Driver().ok()) return Internal(Driver().error);
    const auto stream =
        static_cast<CUstream>(device_context->stream()->platform_specific_handle().stream);
    stream_context_.emplace(Driver(), stream);
    if (stream_context_->status() != CUDA_SUCCESS) {
      return CudaError(Driver(), stream_context_->status(), "activating the stream's context");
    }
    device_.emplace(ctx_, stream_context_->context(), stream);
    return Status();
  }

  Device* device() { return &*device_; }

 private:
  OpKernelContext* const ctx_;
  std::optional<StreamContext> stream_context_;  // outlives the device
  std::optional<GpuDevice> device_;
};

bool Register() {
  if (!tensorflow::IsGoogleCudaEnabled() || tensorflow::IsBuiltWithROCm()) return false;
  if (!IsOnlyCopy()) return false;
  // TensorFlow has kernels of the same names; a higher priority goes before them.
  TF_CUDNN_RNN_REGISTER_KERNELS(DEVICE_GPU, GpuBackend, 1);
  return true;
}

const bool registered [[maybe_unused]] = Register();

}  // namespace
}  // namespace tf_cudnn_rnn
