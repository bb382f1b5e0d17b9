"""Failures of cuDNN: every one is a clean status, nothing leaks, the next call works."""


def test_every_function_fails(simgpu, strict_cudnn):
    report = simgpu.run("checks_faults.every_function_fails", provider=strict_cudnn)
    assert report["problems"] == []
    assert report["faults"] > 150
    # Nobody can be told that destroying something failed.
    assert [name for name in report["unnoticed"] if "Destroy" not in name] == []
    assert report["errors"] == {
        "InvalidArgumentError": ["BAD_PARAM", "NOT_SUPPORTED"],
        "ResourceExhaustedError": ["DEVICE_ALLOCATION_FAILED", "HOST_ALLOCATION_FAILED"],
        "InternalError": ["EXECUTION_FAILED", "INTERNAL_ERROR"],
    }
    live = report["live"]
    assert live.pop("Handle") <= 8
    assert set(live.values()) == {0}


def test_every_call_fails(simgpu, strict_cudnn):
    report = simgpu.run("checks_faults.every_call_fails", provider=strict_cudnn)
    assert report["problems"] == []
    # Not noticed: what destroys something, and calls of the check mode, which do not fail.
    assert report["noticed"] > 60
    assert report["noticed"] > report["calls"] / 2


def test_descriptors_are_kept(simgpu, strict_cudnn):
    first, second = simgpu.run("checks_faults.keeping", provider=strict_cudnn)
    assert second < first / 2


def test_an_old_version_is_refused(simgpu, strict_cudnn):
    messages = simgpu.run(
        "checks_faults.old_version", provider=strict_cudnn, STRICT_CUDNN_VERSION="8901"
    )
    for message in messages:
        assert "is version 8.9.1; cuDNN 8.9.2 or later is needed" in message


def test_nothing_to_compute_calls_nothing(simgpu, strict_cudnn):
    report = simgpu.run("checks_faults.nothing_to_compute", provider=strict_cudnn)
    assert report["failures"] == []
    assert report["calls"] == 0
    assert report["live"]["Handle"] == 0


def test_what_cudnn_refuses_is_worked_around(simgpu, strict_cudnn):
    report = simgpu.run("checks_faults.case_subset", provider=strict_cudnn)
    assert report["failures"] == []
    assert report["tensors"] > 1000


def test_another_weight_layout(simgpu, strict_cudnn):
    done = simgpu.process(
        "checks_faults.case_subset", provider=strict_cudnn, STRICT_CUDNN_LAYOUT="other"
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert '"failures": []' in done.stdout
    assert done.stderr.count("keeps RNN weights in another order") == 1


def test_tensor_float_32_follows_tensorflow(simgpu, strict_cudnn):
    default_math, fma_math = 0, 3
    found = simgpu.run("checks_faults.tensor_float_32", provider=strict_cudnn)
    assert found == [default_math, fma_math, default_math]


def test_kept_descriptors_are_bounded(simgpu, strict_cudnn):
    live = simgpu.run("checks_faults.kept_descriptors", provider=strict_cudnn)
    assert live["RNNDescriptor"] == 8
    assert live["DropoutDescriptor"] == 8
    assert live["TensorDescriptor"] == live["RNNDataDescriptor"] == 0
    assert live["Handle"] <= 8


def test_too_many_steps_for_cudnn_is_a_clear_error(simgpu, strict_cudnn):
    error = simgpu.run("checks_ops.long_sequences", provider=strict_cudnn)
    invalid_argument = 3
    assert error["code"] == invalid_argument
    assert "more than 65535 time steps" in error["message"]
    assert "T 70000" in error["message"] or "T=70000" in error["message"]
