// A library with cuDNN's names that does nothing. FAKE_VERSION: what cudnnGetVersion says;
// FAKE_LACKS_FORWARD: without cudnnRNNForward.
#include "cc/cudnn/cudnn_rnn_api.h"

#ifdef FAKE_LACKS_FORWARD
#define cudnnRNNForward cudnnRNNForwardOfAnotherName
#endif

namespace {

template <class Result>
Result Answer() {
  return Result();
}
template <>
size_t Answer<size_t>() {
  return FAKE_VERSION;
}

}  // namespace

#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments) \
  extern "C" result name parameters { return Answer<result>(); }
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "cc/cudnn/cudnn_functions.inc"
