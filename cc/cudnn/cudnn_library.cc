#include "cc/cudnn/cudnn_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <memory>

namespace tf_cudnn_rnn {
namespace {

constexpr char kSoname[] = "libcudnn.so.9";

// The folder of `path`, or of that folder with `levels` 2, and so on; empty if there is none.
std::string Parent(std::string path, int levels) {
  for (; levels > 0; --levels) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return "";
    path.resize(slash);
  }
  return path;
}

std::string PathOf(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name ? map->l_name : "";
}

// dlerror's text, which is null when another thread has read it.
std::string LastError() {
  const char* text = dlerror();
  return text ? text : "unknown error";
}

// The handle of the first library that exists; else null, with every attempt told in `attempts`.
void* Open(const std::string& soname, const std::vector<std::string>& folders,
           std::string* attempts) {
  // RTLD_NOLOAD compares names with what is loaded and searches no folder.
  if (void* handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return handle;
  *attempts = "not loaded in this process";
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + soname;
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    *attempts += "; " + LastError();
  }
  if (void* handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  *attempts += "; by the linker's search path: " + LastError();
  return nullptr;
}

template <class Function>
bool Load(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

std::vector<std::string> PipFolders() {
  // site-packages/tensorflow/libtensorflow_framework.so.2 and
  // site-packages/tf_cudnn_rnn_ops/_ops.so have site-packages/nvidia beside their own folder.
  std::vector<std::string> libraries;
  if (void* handle = dlopen("libtensorflow_framework.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
    libraries.push_back(PathOf(handle));
    dlclose(handle);
  }
  Dl_info self;
  if (dladdr(kSoname, &self) != 0 && self.dli_fname) libraries.push_back(self.dli_fname);

  std::vector<std::string> folders;
  for (const std::string& library : libraries) {
    // TensorFlow loads its library as tensorflow/python/platform/../../<name>.
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(library.c_str(), nullptr),
                                                           std::free);
    const std::string site = Parent(real ? real.get() : library, 2);
    const std::string folder = site + "/nvidia/cudnn/lib";
    if (!site.empty() && (folders.empty() || folders.back() != folder)) folders.push_back(folder);
  }
  return folders;
}

}  // namespace

std::string CudnnVersionText(size_t version) {
  const size_t thousand = version >= 90000 ? 10000 : 1000;
  return std::to_string(version / thousand) + "." + std::to_string(version % thousand / 100) + "." +
         std::to_string(version % 100);
}

CudnnLibrary OpenCudnn(const std::string& soname, const std::vector<std::string>& folders) {
  CudnnLibrary library;
  const std::string needed = "; cuDNN " + CudnnVersionText(kOldestCudnn) +
                             " or later is needed, as " + soname +
                             " (pip install nvidia-cudnn-cu12, or the package for your CUDA). "
                             "The CPU kernels do not need it.";
  std::string attempts;
  void* handle = Open(soname, folders, &attempts);
  if (!handle) {
    library.error = "cuDNN was not found. " + soname + ": " + attempts + needed;
    return library;
  }
  library.path = PathOf(handle);

  // The version first: an old library is called old rather than incomplete.
  CudnnApi& api = library.api;
  std::string missing;
  if (Load(handle, "cudnnGetVersion", &api.cudnnGetVersion)) {
    library.version = api.cudnnGetVersion();
    if (library.version < kOldestCudnn) {
      library.error = "cuDNN is too old: " + library.path + " is version " +
                      CudnnVersionText(library.version) + needed;
      library.api = CudnnApi();
      return library;
    }
  }
#define CUDNN_RNN_FUNCTION(result, name, parameters, arguments) \
  if (!Load(handle, #name, &api.name)) missing += missing.empty() ? #name : ", " #name;
#include "cc/cudnn/cudnn_functions.inc"
  if (!missing.empty()) {
    library.error = "cuDNN is incomplete: " + library.path + " lacks " + missing + needed;
    library.api = CudnnApi();
  }
  return library;
}

const CudnnLibrary& Cudnn() {
  static const CudnnLibrary* const library = new CudnnLibrary(OpenCudnn(kSoname, PipFolders()));
  return *library;
}

}  // namespace tf_cudnn_rnn
