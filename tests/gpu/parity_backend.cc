#include "tests/gpu/parity_backend.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "cc/cpu/cpu_cudnn.h"
#include "cc/cudnn/cuda_driver.h"
#include "cc/cudnn/cudnn_library.h"
#include "cc/cudnn/descriptors.h"
#include "cc/rnn/cuda_device.h"

namespace tf_cudnn_rnn {
namespace {

// A test that cannot go on ends; the caller of the program sees what failed.
void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(2);
}

class HostBackend final : public Backend {
 public:
  HostBackend(const CudnnApi& api, const DeviceTraits& traits, std::string name)
      : api_(api), traits_(traits), name_(std::move(name)), handle_(api_) {
    Require(handle_.Create() == CUDNN_STATUS_SUCCESS, "cudnnCreate failed");
    if (traits.reserve_is_read_only) cpu::SetReserveReadOnly(handle_.get(), true);
  }

  std::unique_ptr<Device> NewDevice() override {
    return std::make_unique<HostDevice>(api_, handle_.get(), traits_);
  }
  cudnnHandle_t handle() override { return handle_.get(); }
  const CudnnApi& api() override { return api_; }
  std::shared_ptr<void> Allocate(size_t bytes) override {
    std::shared_ptr<void> memory(std::aligned_alloc(64, (bytes + 64) / 64 * 64), std::free);
    Require(memory != nullptr, "no host memory");
    std::memset(memory.get(), 0xFF, bytes);
    return memory;
  }
  void Upload(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void Download(void* to, const void* from, size_t bytes) override { Upload(to, from, bytes); }
  void Synchronize() override {}
  std::string name() override { return name_; }

 private:
  const CudnnApi api_;
  const DeviceTraits traits_;
  const std::string name_;
  Handle handle_;
};

// What a program needs of the driver and TensorFlow's kernels do not: a context, a stream, memory.
struct DriverStart {
  CUresult (*cuInit)(unsigned) = nullptr;
  CUresult (*cuDeviceGet)(int*, int) = nullptr;
  CUresult (*cuDeviceGetName)(char*, int, int) = nullptr;
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, int) = nullptr;
  CUresult (*cuCtxSetCurrent)(CUcontext) = nullptr;
  CUresult (*cuStreamCreate)(CUstream*, unsigned) = nullptr;
  CUresult (*cuStreamSynchronize)(CUstream) = nullptr;
  CUresult (*cuMemAlloc_v2)(CUdeviceptr*, size_t) = nullptr;
  CUresult (*cuMemFree_v2)(CUdeviceptr) = nullptr;
  CUresult (*cuMemcpyHtoD_v2)(CUdeviceptr, const void*, size_t) = nullptr;
  CUresult (*cuMemcpyDtoH_v2)(void*, CUdeviceptr, size_t) = nullptr;

  bool Load() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return false;
    bool complete = true;
    const auto load = [&](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      complete = complete && *function;
    };
#define LOAD(name) load(#name, &name)
    LOAD(cuInit);
    LOAD(cuDeviceGet);
    LOAD(cuDeviceGetName);
    LOAD(cuDevicePrimaryCtxRetain);
    LOAD(cuCtxSetCurrent);
    LOAD(cuStreamCreate);
    LOAD(cuStreamSynchronize);
    LOAD(cuMemAlloc_v2);
    LOAD(cuMemFree_v2);
    LOAD(cuMemcpyHtoD_v2);
    LOAD(cuMemcpyDtoH_v2);
#undef LOAD
    return complete;
  }
};

CUdeviceptr Address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

class GpuTestBackend final : public Backend {
 public:
  // Null if something is missing, which `error` tells.
  static std::unique_ptr<Backend> Open(const std::vector<std::string>& folders,
                                       std::string* error) {
    std::unique_ptr<GpuTestBackend> backend(new GpuTestBackend);
    DriverStart& start = backend->start_;
    int device = 0;
    if (!Driver().ok() || !start.Load()) {
      *error = Driver().ok() ? "libcuda.so.1 is incomplete" : Driver().error;
    } else if (start.cuInit(0) != CUDA_SUCCESS || start.cuDeviceGet(&device, 0) != CUDA_SUCCESS) {
      *error = "the driver finds no GPU";
    } else if (start.cuDevicePrimaryCtxRetain(&backend->context_, device) != CUDA_SUCCESS ||
               start.cuCtxSetCurrent(backend->context_) != CUDA_SUCCESS ||
               start.cuStreamCreate(&backend->stream_, 1) != CUDA_SUCCESS) {
      *error = "no context or stream on the GPU";
    } else {
      backend->cudnn_ = OpenCudnn("libcudnn.so.9", folders);
      const CudnnApi& api = backend->cudnn_.api;
      *error = backend->cudnn_.error;
      if (error->empty()) {
        const cudnnStatus_t status = api.cudnnCreate(&backend->handle_);
        if (status != CUDNN_STATUS_SUCCESS ||
            api.cudnnSetStream(backend->handle_, backend->stream_) != CUDNN_STATUS_SUCCESS) {
          *error = std::string("cudnnCreate: ") + api.cudnnGetErrorString(status);
        }
      }
      char name[256] = "a GPU";
      start.cuDeviceGetName(name, sizeof(name), device);
      backend->name_ = std::string("cuDNN ") + CudnnVersionText(backend->cudnn_.version) + " on " +
                       name + ", " + backend->cudnn_.path;
    }
    if (!error->empty()) return nullptr;
    return backend;
  }
  ~GpuTestBackend() override {
    if (handle_ != nullptr) cudnn_.api.cudnnDestroy(handle_);
  }

  std::unique_ptr<Device> NewDevice() override { return std::make_unique<TestDevice>(this); }
  cudnnHandle_t handle() override { return handle_; }
  const CudnnApi& api() override { return cudnn_.api; }

  std::shared_ptr<void> Allocate(size_t bytes) override {
    CUdeviceptr memory = 0;
    Require(start_.cuMemAlloc_v2(&memory, bytes > 0 ? bytes : 1) == CUDA_SUCCESS,
            "no memory on the GPU");
    Require(Driver().cuMemsetD8Async(memory, 0xFF, bytes > 0 ? bytes : 1, stream_) == CUDA_SUCCESS,
            "cuMemsetD8Async failed");
    return std::shared_ptr<void>(reinterpret_cast<void*>(memory), [this](void* p) {
      Synchronize();
      start_.cuMemFree_v2(Address(p));
    });
  }
  void Upload(void* to, const void* from, size_t bytes) override {
    Synchronize();
    if (bytes == 0) return;
    Require(start_.cuMemcpyHtoD_v2(Address(to), from, bytes) == CUDA_SUCCESS,
            "copying to the GPU failed");
  }
  void Download(void* to, const void* from, size_t bytes) override {
    Synchronize();
    if (bytes == 0) return;
    Require(start_.cuMemcpyDtoH_v2(to, Address(from), bytes) == CUDA_SUCCESS,
            "copying from the GPU failed");
  }
  void Synchronize() override {
    Require(start_.cuStreamSynchronize(stream_) == CUDA_SUCCESS, "the GPU failed");
  }
  std::string name() override { return name_; }

 private:
  // Scratch comes from blocks that are kept, so that timing does not measure cuMemAlloc.
  class TestDevice final : public CudaDevice {
   public:
    explicit TestDevice(GpuTestBackend* backend)
        : CudaDevice(backend->cudnn_.api, backend->handle_, Traits(), Driver(), backend->stream_),
          backend_(backend) {}
    ~TestDevice() override {
      for (auto& [bytes, memory] : used_) backend_->kept_.emplace(bytes, std::move(memory));
    }

    Status Allocate(size_t bytes, void** memory) override {
      *memory = nullptr;
      if (bytes == 0) return Status();
      auto found = backend_->kept_.lower_bound(bytes);
      if (found == backend_->kept_.end() || found->first > 2 * bytes + 4096) {
        used_.emplace_back(bytes, backend_->Allocate(bytes));
      } else {
        used_.emplace_back(found->first, std::move(found->second));
        backend_->kept_.erase(found);
      }
      *memory = used_.back().second.get();
      return Status();
    }
    Status AllocateShared(size_t bytes, std::shared_ptr<void>* memory) override {
      *memory = backend_->Allocate(bytes);
      return Status();
    }

   private:
    static DeviceTraits Traits() {
      DeviceTraits traits;
      traits.takes_bfloat16 = GpuTakesBfloat16(Driver());
      return traits;
    }

    GpuTestBackend* const backend_;
    std::vector<std::pair<size_t, std::shared_ptr<void>>> used_;
  };

  DriverStart start_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CudnnLibrary cudnn_;
  cudnnHandle_t handle_ = nullptr;
  std::string name_;
  std::multimap<size_t, std::shared_ptr<void>> kept_;
};

DeviceTraits EngineTraits() {
  DeviceTraits traits;
  traits.takes_zero_lengths = true;
  traits.reserve_is_read_only = true;
  traits.checks_reserve = true;
  traits.zeroes_padding = true;
  traits.dense_params = true;
  return traits;
}

}  // namespace

std::unique_ptr<Backend> CpuBackend() {
  return std::make_unique<HostBackend>(cpu::Api(), EngineTraits(),
                                       std::string("CPU engine, ") + cpu::InstructionSet());
}

std::unique_ptr<Backend> HostLibraryBackend(const std::string& library, std::string* error) {
  const CudnnLibrary opened = OpenCudnn(library, {});
  *error = opened.error;
  if (!opened.ok()) return nullptr;
  return std::make_unique<HostBackend>(opened.api, DeviceTraits(), "host library " + opened.path);
}

std::unique_ptr<Backend> GpuBackend(const std::vector<std::string>& folders, std::string* error) {
  return GpuTestBackend::Open(folders, error);
}

}  // namespace tf_cudnn_rnn
