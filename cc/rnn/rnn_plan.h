// From what the caller passed to sizes that are known to fit together. A plan is made once per
// call; every check of shapes, lengths and attributes happens while it is made, so that nothing
// after it can fail on a shape. The size of reserve_space alone is checked later: only cuDNN knows
// it (rnn_call.h).
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_RNN_PLAN_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_RNN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cc/cudnn/weight_layout.h"
#include "cc/rnn/rnn_config.h"
#include "cc/rnn/shape.h"
#include "cc/rnn/status.h"

namespace tf_cudnn_rnn {

// The arguments of a forward op. Time-major; [B, ...] first where batch-major.
struct ForwardArguments {
  Shape input;    // [T, B, I]
  Shape input_h;  // [L·D, B, R]
  Shape input_c;  // lstm: [L·D, B, H]; other modes: anything, ignored
  Shape params;   // [WeightLayout::size()]
  // Version 3 of the ops only: [B] and its values, in host memory that outlives the plan. Null
  // values: versions 1 and 2, every length is T.
  Shape sequence_lengths;
  const int32_t* sequence_lengths_values = nullptr;
};

// The further arguments of a backprop op. For other modes than lstm output_c and its backprop are
// ignored like input_c.
struct BackwardArguments {
  Shape output;             // [T, B, D·R]
  Shape output_h;           // as input_h
  Shape output_c;           // as input_c
  Shape output_backprop;    // as output
  Shape output_h_backprop;  // as output_h
  Shape output_c_backprop;  // as output_c
  Shape reserve_space;      // rank 1
  // Rank 1, [0] here; its content is not read. Version 1 of the op has none, hence the default.
  Shape host_reserved = {0};
};

struct RnnPlan {
  RnnPlan() = default;
  RnnPlan(const RnnPlan&) = delete;  // sequence_lengths may point into the plan
  RnnPlan& operator=(const RnnPlan&) = delete;
  // `plan` for elements of another type; it outlives the copy.
  RnnPlan(const RnnPlan& plan, cudnnDataType_t data_type);

  RnnConfig config;
  int T = 0;
  int B = 0;
  // G, L, D, I, H, R, skip_input (kAutoSelect is resolved) and where the weights lie in params.
  WeightLayout weights{RnnDims()};

  Shape input_shape;
  Shape input_h_shape;   // input_h, output_h and their backprops
  Shape input_c_shape;   // input_c as passed, and input_c_backprop
  Shape output_shape;    // output and its backprop
  Shape output_c_shape;  // lstm: as input_c; else [0]

  // Length of each row, B values; and what is special about them.
  const int32_t* sequence_lengths = nullptr;
  bool any_zero_length = false;
  bool any_padding = false;  // a length is less than T

  const RnnDims& dims() const { return weights.dims(); }
  // Nothing to compute: no rows or no steps.
  bool empty() const { return T == 0 || B == 0; }
  // Batch-major states lie [B, L·D, width] where cuDNN wants [L·D, B, width], in memory too.
  bool states_transposed() const {
    return !config.time_major && B > 1 && dims().pseudo_layers() > 1;
  }
  // Some values between the layers are dropped.
  bool drops() const { return config.is_training && config.dropout > 0 && dims().L > 1; }

  // Attributes and sizes in one line, for messages.
  std::string Describe() const;

  // Storage of versions 1 and 2, for `sequence_lengths`.
  std::vector<int32_t> uniform_lengths;
};

// Both fill `plan`, which must be fresh. InvalidArgument names the op's argument or attribute, what
// it must be and what it was.
Status PlanForward(const RnnConfig& config, const ForwardArguments& arguments, RnnPlan* plan);
Status PlanBackward(const RnnConfig& config, const ForwardArguments& arguments,
                    const BackwardArguments& backward, RnnPlan* plan);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_RNN_PLAN_H_
