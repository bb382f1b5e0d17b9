"""A simulated GPU with a second device, and one too old for bfloat16, from the first's sources.

The simulation has one device with one context. build() changes a copy of its sources: two devices,
a context for each, streams that belong to the context they were made in. Memory stays one, so what
the two devices exchange needs no copy; contexts are what this is for.
"""

import os
import shutil
import subprocess


class ChangedError(Exception):
    """The sources are no longer those that the changes were written for."""


TWO_DEVICES = {
    "driver.cc": [
        ("Context primary;\n", "Context primaries[2];\nstd::map<const void*, CUcontext> owners;\n"),
        (
            "CUcontext primary_context() { return reinterpret_cast<CUcontext>(&primary); }",
            "CUcontext primary_context(int i = 0) {"
            " return reinterpret_cast<CUcontext>(&primaries[i]); }",
        ),
        ("  *count = 1;", "  *count = 2;"),
        (
            "  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;\n  *device = 0;",
            "  if (ordinal < 0 || ordinal > 1) return CUDA_ERROR_INVALID_DEVICE;\n"
            "  *device = ordinal;",
        ),
        (
            "cuDeviceGetPCIBusId(char* id, int length, CUdevice) {\n"
            '  snprintf(id, length, "0000:01:00.0");',
            "cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {\n"
            '  snprintf(id, length, "0000:0%d:00.0", device + 1);',
        ),
        (
            "cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {\n"
            "  primary.references++;\n  *context = primary_context();",
            "cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {\n"
            "  primaries[device].references++;\n  *context = primary_context(device);",
        ),
        (
            "cuDevicePrimaryCtxRelease_v2(CUdevice) {\n  primary.references--;",
            "cuDevicePrimaryCtxRelease_v2(CUdevice device) {\n  primaries[device].references--;",
        ),
        (
            "cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned flags) {\n  primary.flags = flags;",
            "cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {\n"
            "  primaries[device].flags = flags;",
        ),
        (
            "cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {\n"
            "  *flags = primary.flags;\n  *active = primary.references > 0;",
            "cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {\n"
            "  *flags = primaries[device].flags;\n"
            "  *active = primaries[device].references > 0;",
        ),
        (
            "  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;\n  *device = 0;",
            "  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;\n"
            "  *device = current_context() == primary_context(1);",
        ),
        (
            "  *stream = reinterpret_cast<CUstream>(new simgpu::Stream{flags, priority});",
            "  *stream = reinterpret_cast<CUstream>(new simgpu::Stream{flags, priority});\n"
            "  owners[*stream] = current_context();",
        ),
        (
            "cuStreamGetCtx(CUstream, CUcontext* context) {\n  *context = primary_context();",
            "cuStreamGetCtx(CUstream stream, CUcontext* context) {\n"
            "  *context = owners.count(stream) ? owners[stream] : current_context();",
        ),
    ],
    "runtime.cc": [
        ("  *count = 1;", "  *count = 2;"),
        (
            "cudaSetDevice(int device) { return device == 0 ?",
            "cudaSetDevice(int device) { return device == 0 || device == 1 ?",
        ),
        (
            "  if (device != 0) return error(cudaErrorInvalidDevice);",
            "  if (device != 0 && device != 1) return error(cudaErrorInvalidDevice);",
        ),
    ],
}

OLD_DEVICE = {
    "driver.cc": [
        ("{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9}", "{75, 7}"),
        ("{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0}", "{76, 5}"),
    ],
}


def build(source, folder, changes, headers):
    """Builds the simulated GPU of the folder `source`, changed, in `folder`; `headers`: CUDA's.

    Raises:
      ChangedError: a text that is to be changed is not there exactly once.
    """
    copy = os.path.join(folder, "source")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    for name, replacements in changes.items():
        path = os.path.join(copy, "src", name)
        os.chmod(path, 0o644)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for old, new in replacements:
            if text.count(old) != 1:
                raise ChangedError(f"{name} has not once: {old}")
            text = text.replace(old, new)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run(
        [os.path.join(copy, "build.sh"), folder],
        env={**os.environ, "SIMGPU_CUDA_INCLUDE": headers},
        check=True,
        capture_output=True,
    )
    return folder
