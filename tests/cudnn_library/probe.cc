// probe SONAME [+LIBRARY | FOLDER]...: opens the libraries marked with '+', then calls OpenCudnn
// with the soname and the folders and prints what came of it.
#include <dlfcn.h>

#include <cstdio>

#include "cc/cudnn/cudnn_library.h"

int main(int argc, char** argv) {
  std::vector<std::string> folders;
  for (int i = 2; i < argc; ++i) {
    if (argv[i][0] != '+')
      folders.push_back(argv[i]);
    else if (!dlopen(argv[i] + 1, RTLD_NOW | RTLD_GLOBAL))
      return std::fprintf(stderr, "%s\n", dlerror()), 2;
  }
  const tf_cudnn_rnn::CudnnLibrary library = tf_cudnn_rnn::OpenCudnn(argv[1], folders);
  int functions = 0;
#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments) \
  functions += library.api.name != nullptr;
#include "cc/cudnn/cudnn_functions.inc"
  std::printf("path %s\nversion %s\nfunctions %d\nerror %s\n", library.path.c_str(),
              tf_cudnn_rnn::CudnnVersionText(library.version).c_str(), functions,
              library.error.c_str());
}
