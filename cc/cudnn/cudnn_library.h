// Finds NVIDIA's cuDNN at run time: the only file that knows dlopen. Nothing links to cuDNN, and
// nothing is opened before the first GPU kernel asks.
#ifndef TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_LIBRARY_H_
#define TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_LIBRARY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cc/cudnn/cudnn_api.h"

namespace tf_cudnn_rnn {

// The oldest cuDNN whose RNNs with sequence lengths are right: 8.9.2. Libraries named
// libcudnn.so.9 are newer; the number guards against one that is not.
inline constexpr size_t kOldestCudnn = 8902;

struct CudnnLibrary {
  CudnnApi api;        // complete if error is empty; all null otherwise
  size_t version = 0;  // what cudnnGetVersion says, 92800 for 9.28.0; 0 if no library was found
  std::string path;    // the file in use; of the library that was refused, if one was
  std::string error;   // empty, or what was looked for, what was found and what is needed

  bool ok() const { return error.empty(); }
};

// Opens `soname` and fills the table from it. Taken is the first that exists of
//   1. a library of that name that is loaded already (TensorFlow's own, when it uses a GPU),
//   2. `soname` in each of `folders`, in order,
//   3. what the dynamic linker finds by the name alone (LD_LIBRARY_PATH, ld.so.cache).
// If it is too old or lacks a function, that is the error: no second library is loaded beside a
// first. Functions are taken from the opened library itself, never from the global scope, where
// TensorFlow's GPU build has functions of the same names that answer for a cuDNN it cannot find.
// The library stays open for good.
CudnnLibrary OpenCudnn(const std::string& soname, const std::vector<std::string>& folders);

// libcudnn.so.9, opened at the first call, with the folders where pip's nvidia-cudnn packages lie
// beside TensorFlow and beside this library. Thread-safe; the same object for good, failed or not.
const CudnnLibrary& Cudnn();

// 9.28.0 for 92800, 8.9.2 for 8902: the thousands' place changed with cuDNN 9.
std::string CudnnVersionText(size_t version);

}  // namespace tf_cudnn_rnn

#endif  // TF_CUDNN_RNN_OPS_CC_CUDNN_CUDNN_LIBRARY_H_
