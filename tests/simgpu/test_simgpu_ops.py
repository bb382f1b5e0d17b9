"""The ops on a simulated GPU, with the CPU engine as its cuDNN: the same numbers as on the CPU."""

import pytest

import cases


def assert_equal(report, at_least):
    assert report["failures"] == []
    assert report["tensors"] >= at_least


@pytest.mark.parametrize("mode", cases.MODES)
def test_case_table(simgpu, mode):
    assert_equal(simgpu.run("checks_ops.case_table", mode), 7 * 4 * 96)


def test_older_versions(simgpu):
    assert_equal(simgpu.run("checks_ops.older_versions"), 1000)


def test_packing(simgpu):
    assert_equal(simgpu.run("checks_ops.packing"), 5000)


def test_dropout(simgpu):
    assert_equal(simgpu.run("checks_ops.dropout"), 4 * 2 * 7)


def test_one_node_in_two_threads(simgpu):
    report = simgpu.run("checks_ops.one_node_in_two_threads")
    assert_equal(report, 80 * 7)
    assert report["runs"] == 80


def test_long_sequences(simgpu):
    assert_equal(simgpu.run("checks_ops.long_sequences"), 3)


def test_bad_input_is_refused_with_the_same_words(simgpu):
    for name, on_cpu, on_gpu in simgpu.run("checks_ops.bad_input"):
        assert name in on_cpu
        assert on_gpu == on_cpu


def test_registrations(simgpu, cpu_python):
    """GPU kernels for all ops and types where TensorFlow was built with CUDA, else none."""
    found = simgpu.run("checks_ops.registrations")
    assert len(found) == 11
    sizes = ["input_size", "num_layers", "num_units"]
    for op, kernel in found.items():
        host_memory, types = kernel
        assert types.pop("T") == 4
        if op == "CudnnRNNParamsSize":
            assert host_memory == [*sizes, "params_size"]
            assert types == {"S": 2}
            continue
        assert types == {}
        if "Canonical" in op:
            assert host_memory == sizes
        else:
            expected = {"V3": ["host_reserved", "sequence_lengths"], "V2": ["host_reserved"]}
            assert host_memory == expected.get(op[-2:], [])
    on_cpu = simgpu.run("checks_ops.registrations", python=cpu_python)
    assert set(on_cpu) == set(found)
    assert set(on_cpu.values()) == {None}


def test_out_of_memory(simgpu):
    report = simgpu.run("checks_ops.out_of_memory", SIMGPU_MEM_MB="48")
    assert report["kind"] == "ResourceExhaustedError"
    assert_equal(report, 7)


def test_two_gpus(simgpu, two_gpus, strict_cudnn):
    """The strict cuDNN refuses calls outside the context that the stream belongs to."""
    report = simgpu.run("checks_ops.two_gpus", provider=strict_cudnn, SIMGPU_HOME=two_gpus)
    assert report["gpus"] == ["/GPU:0", "/GPU:1"]
    assert report["contexts"] == 2
    assert_equal(report, 500)


def test_bfloat16_through_float(simgpu, old_gpu, strict_cudnn):
    report = simgpu.run(
        "checks_ops.bfloat16_through_float",
        provider=strict_cudnn,
        SIMGPU_HOME=old_gpu,
        STRICT_CUDNN_BFLOAT16="no",
    )
    assert_equal(report, 100)
