#include "cc/ops/only_copy.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/logging.h"

namespace tf_cudnn_rnn {
namespace {

using tensorflow::OpRegistry;

// What this library exports, see cc/exports.lds.
constexpr char kExport[] = "tf_cudnn_rnn_ops_op_definitions";

// The file that `address` belongs to, which is loaded.
std::string FileOf(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

int AddName(dl_phdr_info* info, size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
  return 0;
}

// The path of another loaded library that exports the same, or "".
std::string OtherCopy() {
  const std::string own = FileOf(kExport);
  std::vector<std::string> libraries;
  // Opening one while going through them would wait for a lock that is held.
  dl_iterate_phdr(AddName, &libraries);
  for (const std::string& library : libraries) {
    if (library.empty() || library == own) continue;
    void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    // Also finds what a dependency of the library exports.
    const void* const found = dlsym(handle, kExport);
    const std::string file = found != nullptr ? FileOf(found) : "";
    dlclose(handle);
    if (!file.empty() && file != own) return file;
  }
  return "";
}

// tf.load_op_library registers after it has loaded, and reports what fails in that; it has set a
// watcher meanwhile. Otherwise a failing registration would end the process.
void Report(const std::string& message) {
  OpRegistry* const registry = OpRegistry::Global();
  const OpRegistry::Watcher watcher = [](const absl::Status& status, const tensorflow::OpDef&) {
    return status;
  };
  if (registry->SetWatcher(watcher).ok()) {
    registry->SetWatcher(nullptr).IgnoreError();
    LOG(ERROR) << message;
    return;
  }
  registry->Register([message](tensorflow::OpRegistrationData*) {
    return absl::FailedPreconditionError(message);
  });
}

}  // namespace

bool IsOnlyCopy() {
  static const bool only_copy = [] {
    const std::string other = OtherCopy();
    if (!other.empty()) {
      Report("the ops of tf_cudnn_rnn_ops are loaded already, from " + other + ", and " +
             FileOf(kExport) +
             " is another copy of them: one process can use one. The first one stays in use.");
    }
    return other.empty();
  }();
  return only_copy;
}

}  // namespace tf_cudnn_rnn
