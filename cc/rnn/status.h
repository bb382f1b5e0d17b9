// How cc/rnn reports failure: a value, never an exception or an abort. cc/kernels turns it into
// TensorFlow's Status code for code.
#ifndef TF_CUDNN_RNN_OPS_CC_RNN_STATUS_H_
#define TF_CUDNN_RNN_OPS_CC_RNN_STATUS_H_

#include <sstream>
#include <string>
#include <utility>

namespace tf_cudnn_rnn {

enum class StatusCode {
  kOk,
  kInvalidArgument,    // the caller's arguments; the message names the one at fault
  kResourceExhausted,  // memory
  kInternal,           // anything else: cuDNN failed, or a promise of ours is broken
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// The parts one after another, each as operator<< writes it.
template <typename... Parts>
std::string Concatenate(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return Status(StatusCode::kInvalidArgument, Concatenate(parts...));
}

template <typename... Parts>
Status ResourceExhausted(const Parts&... parts) {
  return Status(StatusCode::kResourceExhausted, Concatenate(parts...));
}

template <typename... Parts>
Status Internal(const Parts&... parts) {
  return Status(StatusCode::kInternal, Concatenate(parts...));
}

// "ARGUMENT must be WHAT, got GOT": the form of every refused argument.
template <typename Got>
Status MustBe(const std::string& argument, const std::string& what, const Got& got) {
  return InvalidArgument(argument, " must be ", what, ", got ", got);
}

}  // namespace tf_cudnn_rnn

// Leaves the function with the status of `expression` unless that is ok.
#define TF_CUDNN_RNN_RETURN_IF_ERROR(expression)                 \
  do {                                                           \
    ::tf_cudnn_rnn::Status status_of_expression = (expression);  \
    if (!status_of_expression.ok()) return status_of_expression; \
  } while (false)

#endif  // TF_CUDNN_RNN_OPS_CC_RNN_STATUS_H_
