"""The same cases under each instruction set that this machine has, chosen by TF_CUDNN_RNN_ISA."""

import platform

import pytest

import run_ops

# The edges of the case table meet every vector width with and without a rest.
CODE = """
    import ctypes
    import sys
    import tf_cudnn_rnn_ops
    library = ctypes.CDLL(tf_cudnn_rnn_ops.library_path())
    library.tf_cudnn_rnn_ops_instruction_set.restype = ctypes.c_char_p
    print(library.tf_cudnn_rnn_ops_instruction_set().decode())
    if library.tf_cudnn_rnn_ops_instruction_set().decode() != sys.argv[1]:
        sys.exit()
    import cases, test_forward, test_gradients
    for case in cases.EDGE_CASES:
        for dtype in cases.DTYPES:
            typed = case.replace(dtype=dtype)
            test_forward.assert_values_equal_reference(typed, typed.make_inputs())
    for case in cases.TYPED_GRADIENT_CASES:
        test_gradients.test_narrow_types_equal_double(case)
    for case in (case for case in cases.EDGE_CASES if case.H > 30 and case.D == 1):
        test_gradients.test_edge_equals_finite_differences_along_directions(case)
    print("done")
"""


X86 = platform.machine() in ("x86_64", "AMD64")


@pytest.mark.parametrize("name", ["baseline", "avx2", "avx512"] if X86 else ["baseline", "neon"])
def test_instruction_set(name):
    output = run_ops.run_python(CODE, name, environment={"TF_CUDNN_RNN_ISA": name}).split()
    if output[-1] != "done":
        pytest.skip(f"this machine has no {name}")
    assert output == [name, "done"]
