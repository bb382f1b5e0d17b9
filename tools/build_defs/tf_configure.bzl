"""tf_configure: the TensorFlow installed for one Python, as a repository. Nothing is downloaded.

The Python is $PYTHON_BIN_PATH or, without it, the first python3 on $PATH. The repository has

    :headers, :framework    cc_library targets to compile and link against
    defs.bzl                PYTHON, MACHINE, TF_VERSION, TF_CXX11_ABI, TF_COPTS
"""

_QUERY = """
import os, platform, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
flags = [flag for flag in tf.sysconfig.get_compile_flags() if not flag.startswith("-I")]
abi = [flag[-1] for flag in flags if flag.startswith("-D_GLIBCXX_USE_CXX11_ABI=")]
values = {
    "python": sys.executable,
    "machine": platform.machine(),
    "version": tf.__version__,
    "abi": (abi or ["1"])[0],
    "include": tf.sysconfig.get_include(),
    "library_dir": tf.sysconfig.get_lib(),
    "library": tf.sysconfig.get_link_flags()[-1].split(":")[-1],
}
for key, value in values.items():
    print("TF_CONFIGURE", key, value)
for flag in flags:
    print("TF_CONFIGURE", "copt", flag)
"""

# include/external repeats headers of other projects; leaving it out halves what the sandbox links.
_BUILD = """load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(
        ["include/**"],
        exclude = ["include/external/**"],
    ),
    includes = ["include"],
)

cc_library(
    name = "framework",
    srcs = ["{library}"],
)
"""

_DEFS = """PYTHON = "{python}"
MACHINE = "{machine}"
TF_VERSION = "{version}"
TF_CXX11_ABI = {abi}
TF_COPTS = {copts}
"""

def _tf_configure_impl(ctx):
    python = ctx.os.environ.get("PYTHON_BIN_PATH", "") or ctx.which("python3")
    if not python:
        fail("tf_configure: no python3 on PATH; set PYTHON_BIN_PATH to a Python with TensorFlow")
    result = ctx.execute([str(python), "-c", _QUERY], timeout = 300)
    values = {}
    copts = []
    for line in result.stdout.splitlines():
        words = line.split(" ", 2)
        if len(words) == 3 and words[0] == "TF_CONFIGURE":
            if words[1] == "copt":
                copts.append(words[2])
            else:
                values[words[1]] = words[2]
    if result.return_code != 0 or "library" not in values:
        fail("tf_configure: {} cannot import tensorflow; set PYTHON_BIN_PATH to a Python that can:\n{}".format(
            python,
            result.stderr,
        ))
    ctx.symlink(values["include"], "include")
    ctx.symlink(values["library_dir"] + "/" + values["library"], values["library"])
    ctx.file("BUILD.bazel", _BUILD.format(library = values["library"]))
    ctx.file("defs.bzl", _DEFS.format(copts = repr(copts), **values))

# local: asked again at each server start, so that an upgraded TensorFlow is noticed.
tf_configure = repository_rule(
    doc = "Makes a repository of the TensorFlow that a Python has installed.",
    implementation = _tf_configure_impl,
    environ = ["PATH", "PYTHON_BIN_PATH"],
    local = True,
)
