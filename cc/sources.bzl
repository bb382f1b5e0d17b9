"""The C++ sources of each layer, with their flags.

Bazel loads this file and tools/build_cc.py executes it as Python, so it holds plain assignments
only. Every .cc file below cc/ and benchmarks/ and every test below tests/cc/ stands here exactly
once (headers are found by the compiler and by a glob); tools/check_house.py holds the lists against
the tree.
"""

# The seam: cuDNN's API and what reaches the library behind it. No TensorFlow.
CUDNN_SOURCES = [
    "cc/cudnn/cuda_driver.cc",
    "cc/cudnn/cudnn_library.cc",
]

# The CPU engine behind that API. No TensorFlow.
CPU_SOURCES = [
    "cc/cpu/convert.cc",
    "cc/cpu/cpu_cudnn_objects.cc",
    "cc/cpu/cpu_cudnn_rnn.cc",
    "cc/cpu/dispatch.cc",
    "cc/cpu/dropout.cc",
    "cc/cpu/engine_backward_data.cc",
    "cc/cpu/engine_backward_weights.cc",
    "cc/cpu/engine_forward.cc",
    "cc/cpu/engine_plan.cc",
    "cc/cpu/pack.cc",
    "cc/cpu/staging.cc",
]

# The engine's kernels, one file per instruction set, each with the flags that it alone gets: the
# rest of the library must run on any machine of the architecture.
CPU_KERNEL_SOURCES = {
    "x86_64": {
        "cc/cpu/kernels_baseline.cc": [],
        "cc/cpu/kernels_avx2.cc": ["-mavx2", "-mfma", "-mf16c"],
        "cc/cpu/kernels_avx512.cc": [
            "-mavx2",
            "-mfma",
            "-mf16c",
            "-mavx512f",
            "-mavx512bw",
            "-mavx512dq",
            "-mavx512vl",
        ],
    },
    "aarch64": {
        "cc/cpu/kernels_neon.cc": [],
    },
}

# The program that times the engine alone.
BENCHMARK_SOURCES = [
    "benchmarks/engine_benchmark.cc",
    "benchmarks/machine.cc",
]

# cuDNN's names for the engine: only in the stand-alone libcudnn_rnn_cpu.so.
CPU_EXPORT_SOURCES = ["cc/cpu/cudnn_exports.cc"]

# From an op's configuration to cuDNN calls. No TensorFlow.
RNN_SOURCES = [
    "cc/rnn/cuda_device.cc",
    "cc/rnn/cudnn_status.cc",
    "cc/rnn/dropout.cc",
    "cc/rnn/handle_pool.cc",
    "cc/rnn/host_device.cc",
    "cc/rnn/params_layout.cc",
    "cc/rnn/rnn_call.cc",
    "cc/rnn/rnn_call_backward.cc",
    "cc/rnn/rnn_config.cc",
    "cc/rnn/rnn_plan.cc",
    "cc/rnn/rnn_setup.cc",
    "cc/rnn/state_layout.cc",
    "cc/rnn/widened_call.cc",
    "cc/rnn/zero_length_rows.cc",
]

# The op definitions and the kernels: the only files that include TensorFlow.
OPS_SOURCES = [
    "cc/ops/compute_shape_fns.cc",
    "cc/ops/cudnn_rnn_ops.cc",
    "cc/ops/only_copy.cc",
    "cc/ops/params_shape_fns.cc",
    "cc/ops/shape_checks.cc",
]
KERNEL_SOURCES = [
    "cc/kernels/compute_ops.cc",
    "cc/kernels/library_info.cc",
    "cc/kernels/params_ops.cc",
    "cc/kernels/rnn_ops_cpu.cc",
    "cc/kernels/rnn_ops_gpu.cc",
]

# GoogleTest files, one binary each, linked with the layers that do without TensorFlow.
CC_TEST_SOURCES = [
    "tests/cc/activations_test.cc",
    "tests/cc/convert_test.cc",
    "tests/cc/cpu_cudnn_test.cc",
    "tests/cc/dropout_test.cc",
    "tests/cc/engine_threads_test.cc",
    "tests/cc/handle_pool_test.cc",
    "tests/cc/host_device_test.cc",
    "tests/cc/intra_op_pool_test.cc",
    "tests/cc/kernels_test.cc",
    "tests/cc/params_layout_test.cc",
    "tests/cc/rnn_call_engine_test.cc",
    "tests/cc/rnn_call_test.cc",
    "tests/cc/rnn_plan_test.cc",
    "tests/cc/rnn_setup_test.cc",
    "tests/cc/widened_call_test.cc",
]

# Flags of every file.
COPTS = [
    "-O2",
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wall",
    "-Wextra",
]

# Further flags of CPU_SOURCES and CPU_KERNEL_SOURCES.
CPU_COPTS = [
    "-O3",
    "-ffp-contract=fast",
]

# The language where TensorFlow does not choose it.
CXX_STANDARD = "-std=c++17"

# Flags for linking a shared library; cc/exports.lds and the libraries come on top.
LINKOPTS = [
    "-Wl,-Bsymbolic",
    "-Wl,--gc-sections",
    "-Wl,-z,defs",
    "-Wl,-z,noexecstack",
]
