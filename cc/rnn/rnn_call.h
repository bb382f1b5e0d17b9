// One call of an op: a plan, a device and the cuDNN calls between them. What cuDNN leaves to its
// callers, or does otherwise than the ops promise, is put right here, for every device alike:
//
//   states         batch-major ones are transposed in scratch; input and output never are
//   length 0       worked around where the table cannot take it (zero_length_rows.h)
//   params         moved to and from cuDNN's weight space where its layout is another (rnn_setup.h)
//   bfloat16       computed in float where the device does not take it (widened_call.h)
//   padding        output and input gradient are zero beyond each length
//   reserve space  its size is checked; it is the caller's and stays as it was
//   no rows or no steps   cuDNN is not called; states and their gradients pass through
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_RNN_CALL_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_RNN_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cc/cudnn/descriptors.h"
#include "cc/rnn/device.h"
#include "cc/rnn/dropout.h"
#include "cc/rnn/rnn_plan.h"
#include "cc/rnn/rnn_setup.h"
#include "cc/rnn/state_layout.h"
#include "cc/rnn/status.h"
#include "cc/rnn/zero_length_rows.h"

namespace tf_cudnn_rnn {

// Device memory of the op's tensors, in the shapes that the plan says, elements in the plan's data
// type. Pointers to tensors without elements may be anything.
struct ForwardBuffers {
  const void* input = nullptr;
  const void* input_h = nullptr;
  const void* input_c = nullptr;  // lstm only
  const void* params = nullptr;
  void* output = nullptr;
  void* output_h = nullptr;
  void* output_c = nullptr;       // lstm only
  void* reserve_space = nullptr;  // RnnCall::reserve_elements() elements
};

struct BackwardBuffers {
  const void* input = nullptr;
  const void* input_h = nullptr;
  const void* input_c = nullptr;  // lstm only
  const void* params = nullptr;
  const void* output = nullptr;
  const void* output_backprop = nullptr;
  const void* output_h_backprop = nullptr;
  const void* output_c_backprop = nullptr;  // lstm only
  const void* reserve_space = nullptr;
  void* input_backprop = nullptr;
  void* input_h_backprop = nullptr;
  void* input_c_backprop = nullptr;  // lstm only
  void* params_backprop = nullptr;
};

class WidenedCall;

class RnnCall {
 public:
  // All outlive the call; `dropout` may be null where the plan does not drop. `setups`: those of
  // the same kernel, whose `dropout` is always this one; null: a new one is made for this call.
  RnnCall(const RnnPlan& plan, Device* device, DropoutStates* dropout,
          RnnSetupCache* setups = nullptr);
  ~RnnCall();
  RnnCall(const RnnCall&) = delete;
  RnnCall& operator=(const RnnCall&) = delete;

  // Makes the descriptors and asks for the sizes of scratch. First, and once. `params`: the op's,
  // only the address is used, and only where the device's traits do not say dense_params.
  Status Prepare(const void* params = nullptr);

  // Every call copies params, to the layout of cuDNN's weight space. Known after Prepare.
  bool relays_params() const;

  // Elements of the reserve_space that the forward op makes and the backprop op must be given; 0 in
  // inference and where there is nothing to compute.
  int64_t reserve_elements() const {
    const size_t size = ElementSize(plan_.config.data_type);
    return static_cast<int64_t>((reserve_bytes_ + size - 1) / size);
  }

  Status Forward(const ForwardBuffers& buffers);

  // For a plan whose config is training. `reserve_space`: the shape of that argument, rank 1.
  // InvalidArgument unless it is what the forward op made for this configuration, as far as the
  // device can tell.
  Status Backward(const BackwardBuffers& buffers, const Shape& reserve_space);

 private:
  Status DescribeData(int64_t width, RnnDataDescriptor* descriptor);
  Status DescribeState(int64_t width, TensorDescriptor* descriptor);
  Status BackwardOnCudnn(const BackwardBuffers& buffers, void* reserve_space);
  Status PassStatesThrough(const void* h, const void* c, void* to_h, void* to_c);
  // Weights where cuDNN wants them: params, or a copy.
  Status Weights(const void* params, const void** space);
  std::string Describe() const;

  bool lstm() const { return plan_.config.lstm(); }
  int64_t H() const { return plan_.dims().H; }
  int64_t R() const { return plan_.dims().R; }
  int64_t output_width() const { return plan_.dims().D * R(); }

  const RnnPlan& plan_;
  Device* const device_;
  const CudnnApi& api_;
  DropoutStates* const dropout_;
  RnnSetupCache* const setups_;
  StateLayout states_;
  ZeroLengthRows zero_length_rows_;

  // All of its bits are zero, which is 0 in every data type; cuDNN reads as many as the type has.
  double padding_fill_ = 0;
  std::unique_ptr<WidenedCall> widened_;  // does it all, if there is one
  std::unique_ptr<RnnSetup> setup_;
  RnnDataDescriptor x_, y_;
  TensorDescriptor h_, c_;
  size_t work_bytes_ = 0;
  size_t reserve_bytes_ = 0;
};

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_RNN_CALL_H_
