// The ops' kernels, for any device. A body reads attributes when it is made and runs one call of
// its op on a Device; it does not know which. A backend is what a kind of device is to one call:
//
//   class Backend {
//     explicit Backend(tensorflow::OpKernelContext* ctx);
//     Status Open();     // whatever can fail; once, before device()
//     Device* device();  // lives as long as the backend
//   };
//
// A file per kind of device defines its backend and registers all kernels by
// TF_CUDNN_RNN_REGISTER_KERNELS.
#ifndef TF_CUDNN_RNN_OPS_CC_KERNELS_RNN_OPS_KERNELS_H_
#define TF_CUDNN_RNN_OPS_CC_KERNELS_RNN_OPS_KERNELS_H_

#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>

#include "cc/kernels/tf_compat.h"
#include "cc/rnn/device.h"
#include "cc/rnn/dropout.h"
#include "cc/rnn/params_layout.h"
#include "cc/rnn/rnn_config.h"
#include "cc/rnn/rnn_plan.h"
#include "cc/rnn/rnn_setup.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_cudnn_rnn {

// The attributes rnn_mode, input_mode, direction, dropout, T and, of the ops that have them,
// num_proj, is_training and time_major. Values are checked where the op runs.
absl::Status ReadConfig(tensorflow::OpKernelConstruction* ctx, RnnConfig* config);

// What the compute ops have in common.
class ComputeBody {
 public:
  explicit ComputeBody(tensorflow::OpKernelConstruction* ctx);

 protected:
  // The arguments that forward and backprop ops share.
  ForwardArguments Arguments(tensorflow::OpKernelContext* ctx) const;

  const RnnConfig& config() const { return config_; }
  // Versions 3: the fifth input is sequence_lengths.
  bool has_lengths() const { return has_lengths_; }
  // Both seeds are 0: TensorFlow's way of asking for an arbitrary one.
  bool unseeded() const { return unseeded_; }
  DropoutStates* dropout() { return &*dropout_; }
  RnnSetupCache* setups() { return &setups_; }

 private:
  RnnConfig config_;
  bool has_lengths_ = false;
  bool unseeded_ = false;
  std::optional<DropoutStates> dropout_;
  RnnSetupCache setups_;  // use dropout_
};

// CudnnRNN, CudnnRNNV2, CudnnRNNV3.
class ForwardBody : public ComputeBody {
 public:
  explicit ForwardBody(tensorflow::OpKernelConstruction* ctx)
      : ComputeBody(ctx), has_host_reserved_(ctx->num_outputs() == 5) {}

  absl::Status Run(tensorflow::OpKernelContext* ctx, Device* device);

 private:
  const bool has_host_reserved_;
};

// CudnnRNNBackprop, CudnnRNNBackpropV2, CudnnRNNBackpropV3.
class BackwardBody : public ComputeBody {
 public:
  explicit BackwardBody(tensorflow::OpKernelConstruction* ctx)
      : ComputeBody(ctx), has_host_reserved_(ctx->num_inputs() >= 12) {}

  absl::Status Run(tensorflow::OpKernelContext* ctx, Device* device);

 private:
  const bool has_host_reserved_;
};

// What the parameter ops have in common.
class ParamsBody {
 public:
  explicit ParamsBody(tensorflow::OpKernelConstruction* ctx);

 protected:
  // From the inputs num_layers, num_units and input_size.
  Status Layout(tensorflow::OpKernelContext* ctx, ParamsLayout* layout) const;
  // Compares the attributes that count the canonical lists with it.
  Status CheckCounts(const ParamsLayout& layout) const;

  const RnnConfig& config() const { return config_; }

 private:
  RnnConfig config_;
  bool has_one_count_ = false;  // version 1: num_params for both lists
  int64_t num_weights_ = 0;
  int64_t num_biases_ = 0;
};

// CudnnRNNParamsSize; needs no device.
class ParamsSizeBody : public ParamsBody {
 public:
  explicit ParamsSizeBody(tensorflow::OpKernelConstruction* ctx) : ParamsBody(ctx) {}

  absl::Status Run(tensorflow::OpKernelContext* ctx);
};

// CudnnRNNCanonicalToParams, CudnnRNNCanonicalToParamsV2.
class CanonicalToParamsBody : public ParamsBody {
 public:
  explicit CanonicalToParamsBody(tensorflow::OpKernelConstruction* ctx) : ParamsBody(ctx) {}

  absl::Status Run(tensorflow::OpKernelContext* ctx, Device* device);
};

// CudnnRNNParamsToCanonical, CudnnRNNParamsToCanonicalV2.
class ParamsToCanonicalBody : public ParamsBody {
 public:
  explicit ParamsToCanonicalBody(tensorflow::OpKernelConstruction* ctx) : ParamsBody(ctx) {}

  absl::Status Run(tensorflow::OpKernelContext* ctx, Device* device);
};

// A body as a kernel. Nothing is locked: one node may run several times at once. The only exception
// that the code beneath can meet is that of the standard library's containers.
template <typename Backend, typename Body>
class Kernel final : public tensorflow::OpKernel {
 public:
  explicit Kernel(tensorflow::OpKernelConstruction* ctx) : OpKernel(ctx), body_(ctx) {}

  void Compute(tensorflow::OpKernelContext* ctx) override {
    try {
      ctx->SetStatus(Run(ctx));
    } catch (const std::bad_alloc&) {
      ctx->SetStatus(absl::ResourceExhaustedError("no host memory for the op's descriptors"));
    }
  }

 private:
  absl::Status Run(tensorflow::OpKernelContext* ctx) {
    if constexpr (std::is_same_v<Body, ParamsSizeBody>) {
      return body_.Run(ctx);
    } else {
      Backend backend(ctx);
      TF_RETURN_IF_ERROR(ToTensorFlow(backend.Open()));
      const absl::Status status = body_.Run(ctx, backend.device());
      if (!status.ok() && ctx->cancellation_manager() != nullptr &&
          ctx->cancellation_manager()->IsCancelled()) {
        return absl::CancelledError(Concatenate(name(), " was cancelled"));
      }
      return status;
    }
  }

  Body body_;
};

}  // namespace tf_cudnn_rnn

// All kernels of `device`, DEVICE_CPU or DEVICE_GPU, on `Backend`. A priority above 0 goes before
// the kernels that TensorFlow has itself. Which arguments lie in host memory only matters to a GPU.
#define TF_CUDNN_RNN_REGISTER_KERNELS(device, Backend, priority)                               \
  TF_CUDNN_RNN_REGISTER_KERNEL(device, Backend, priority, "CudnnRNN", ForwardBody, );          \
  TF_CUDNN_RNN_REGISTER_KERNEL(device, Backend, priority, "CudnnRNNV2", ForwardBody,           \
                               .HostMemory("host_reserved"));                                  \
  TF_CUDNN_RNN_REGISTER_KERNEL(device, Backend, priority, "CudnnRNNV3", ForwardBody,           \
                               .HostMemory("sequence_lengths").HostMemory("host_reserved"));   \
  TF_CUDNN_RNN_REGISTER_KERNEL(device, Backend, priority, "CudnnRNNBackprop", BackwardBody, ); \
  TF_CUDNN_RNN_REGISTER_KERNEL(device, Backend, priority, "CudnnRNNBackpropV2", BackwardBody,  \
                               .HostMemory("host_reserved"));                                  \
  TF_CUDNN_RNN_REGISTER_KERNEL(device, Backend, priority, "CudnnRNNBackpropV3", BackwardBody,  \
                               .HostMemory("sequence_lengths").HostMemory("host_reserved"));   \
  TF_CUDNN_RNN_REGISTER_PARAMS(                                                                \
      device, Backend, priority, "CudnnRNNParamsSize", ParamsSizeBody,                         \
      .HostMemory("params_size")                                                               \
          .TypeConstraint("S", {tensorflow::DT_INT32, tensorflow::DT_INT64}));                 \
  TF_CUDNN_RNN_REGISTER_PARAMS(device, Backend, priority, "CudnnRNNCanonicalToParams",         \
                               CanonicalToParamsBody, );                                       \
  TF_CUDNN_RNN_REGISTER_PARAMS(device, Backend, priority, "CudnnRNNCanonicalToParamsV2",       \
                               CanonicalToParamsBody, );                                       \
  TF_CUDNN_RNN_REGISTER_PARAMS(device, Backend, priority, "CudnnRNNParamsToCanonical",         \
                               ParamsToCanonicalBody, );                                       \
  TF_CUDNN_RNN_REGISTER_PARAMS(device, Backend, priority, "CudnnRNNParamsToCanonicalV2",       \
                               ParamsToCanonicalBody, )

#define TF_CUDNN_RNN_REGISTER_PARAMS(device, Backend, priority, name, Body, more) \
  TF_CUDNN_RNN_REGISTER_KERNEL(                                                   \
      device, Backend, priority, name, Body,                                      \
      .HostMemory("num_layers").HostMemory("num_units").HostMemory("input_size") more)

#define TF_CUDNN_RNN_REGISTER_KERNEL(device, Backend, priority, name, Body, more)                 \
  REGISTER_KERNEL_BUILDER(Name(name)                                                              \
                              .Device(tensorflow::device)                                         \
                              .Priority(priority)                                                 \
                              .TypeConstraint("T", {tensorflow::DT_BFLOAT16, tensorflow::DT_HALF, \
                                                    tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}) \
                                  more,                                                           \
                          Kernel<Backend, Body>)

#endif  // TF_CUDNN_RNN_OPS_CC_KERNELS_RNN_OPS_KERNELS_H_
