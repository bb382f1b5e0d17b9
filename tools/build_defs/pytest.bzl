"""pytest_test: a test target that runs pytest with the Python that tf_configure found.

A rule of our own, since the Python and shell rules have moved between Bazel 4 and Bazel 9 and
rules_python would bring a Python without TensorFlow.
"""

load("@local_config_tf//:defs.bzl", "PYTHON")

# short_path is relative to the runfiles directory, where a test starts.
_RUNNER = """#!/bin/sh
PYTHONPATH="$PWD" PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=2
export PYTHONPATH PYTHONDONTWRITEBYTECODE TF_CPP_MIN_LOG_LEVEL
if [ -n "$XML_OUTPUT_FILE" ]; then set -- --junitxml="$XML_OUTPUT_FILE" "$@"; fi
exec '{python}' -m pytest -p no:cacheprovider -c '{config}' --rootdir="$PWD" "$@" {files}
"""

def _pytest_test_impl(ctx):
    runner = ctx.actions.declare_file(ctx.label.name + "_runner.sh")
    ctx.actions.write(
        output = runner,
        content = _RUNNER.format(
            python = PYTHON,
            config = ctx.file.config.short_path,
            files = " ".join(["'{}'".format(source.short_path) for source in ctx.files.srcs]),
        ),
        is_executable = True,
    )
    return [DefaultInfo(
        executable = runner,
        runfiles = ctx.runfiles(files = ctx.files.srcs + ctx.files.data + [ctx.file.config]),
    )]

pytest_test = rule(
    doc = "Runs pytest on srcs; data are further files that the tests need.",
    implementation = _pytest_test_impl,
    attrs = {
        "config": attr.label(
            allow_single_file = True,
            default = "//:pyproject.toml",
        ),
        "data": attr.label_list(allow_files = True),
        "srcs": attr.label_list(
            allow_files = [".py"],
            mandatory = True,
        ),
    },
    test = True,
)
