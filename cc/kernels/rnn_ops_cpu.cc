// The ops on a CPU: the engine of cc/cpu on TensorFlow's memory and threads.
#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "cc/cpu/cpu_cudnn.h"
#include "cc/cudnn/descriptors.h"
#include "cc/kernels/intra_op_pool.h"
#include "cc/kernels/rnn_ops_kernels.h"
#include "cc/ops/only_copy.h"
#include "cc/rnn/cudnn_status.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace tf_cudnn_rnn {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

constexpr DeviceTraits EngineTraits() {
  DeviceTraits traits;
  traits.takes_zero_lengths = true;
  traits.reserve_is_read_only = true;
  traits.checks_reserve = true;
  traits.zeroes_padding = true;
  traits.dense_params = true;
  return traits;
}

// Host memory from TensorFlow's allocator, so that limits and profiles count it.
class CpuDevice final : public HostDevice {
 public:
  CpuDevice(OpKernelContext* ctx, cudnnHandle_t handle)
      : HostDevice(cpu::Api(), handle, EngineTraits()), ctx_(ctx) {}

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
    WillWrite(*memory, bytes);
    return Status();
  }

  OpKernelContext* const ctx_;
  std::vector<Tensor> scratch_;
};

// The intra-op threads of the op's device, for as long as the op is wanted.
class IntraOpThreads final : public IntraOpPool<tensorflow::thread::ThreadPool> {
 public:
  explicit IntraOpThreads(OpKernelContext* ctx)
      : IntraOpThreads(*ctx->device()->tensorflow_cpu_worker_threads(),
                       ctx->cancellation_manager()) {}

  bool Cancelled() const override {
    return cancellation_manager_ != nullptr && cancellation_manager_->IsCancelled();
  }

 private:
  IntraOpThreads(const tensorflow::DeviceBase::CpuWorkerThreads& threads,
                 tensorflow::CancellationManager* cancellation_manager)
      : IntraOpPool(threads.workers, std::min(threads.num_threads, Cores())),
        cancellation_manager_(cancellation_manager) {}

  // More threads than cores would wait for each other in every time step.
  static int Cores() {
    static const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return cores;
  }

  tensorflow::CancellationManager* const cancellation_manager_;
};

class CpuBackend {
 public:
  explicit CpuBackend(OpKernelContext* ctx) : ctx_(ctx), threads_(ctx), handle_(cpu::Api()) {}

  // Handles of the engine are cheap and hold the pool of one call.
  Status Open() {
    cudnnStatus_t status = handle_.Create();
    if (status == CUDNN_STATUS_SUCCESS) status = cpu::SetParallel(handle_.get(), &threads_);
    if (status == CUDNN_STATUS_SUCCESS) status = cpu::SetReserveReadOnly(handle_.get(), true);
    if (status != CUDNN_STATUS_SUCCESS) {
      return CudnnError(cpu::Api(), status, "making a handle", "the CPU engine");
    }
    device_.emplace(ctx_, handle_.get());
    return Status();
  }

  Device* device() { return &*device_; }

 private:
  OpKernelContext* const ctx_;
  const IntraOpThreads threads_;
  Handle handle_;
  std::optional<CpuDevice> device_;
};

bool Register() {
  if (!IsOnlyCopy()) return false;
  TF_CUDNN_RNN_REGISTER_KERNELS(DEVICE_CPU, CpuBackend, 0);
  return true;
}

const bool registered [[maybe_unused]] = Register();

}  // namespace
}  // namespace tf_cudnn_rnn
