"""Keras layers on a simulated GPU; SavedModels from CPU to GPU and back."""

import os
import shutil

CPU, GPU = "/CPU:0", "/GPU:0"


def test_keras_layers(simgpu):
    report = simgpu.run("checks_models.keras_layers")
    assert report["failures"] == []
    assert report["tensors"] > 60


def test_saved_model_from_cpu_to_gpu(simgpu, cpu_python, tmp_path):
    folder = str(tmp_path / "model")
    simgpu.run("checks_models.train_and_export", folder, CPU, python=cpu_python)
    assert simgpu.run("checks_models.pin_devices", folder, python=cpu_python) >= 4
    assert simgpu.run("checks_models.serve", folder) < 1e-6


def test_saved_model_from_gpu_to_cpu(simgpu, cpu_python, tmp_path):
    folder = str(tmp_path / "model")
    simgpu.run("checks_models.train_and_export", folder, GPU)
    assert simgpu.run("checks_models.serve", folder, python=cpu_python) < 1e-6


def test_saved_model_of_plain_keras(simgpu, cpu_python, tmp_path):
    """One that Keras traced on a GPU, with the params that Keras packs itself."""
    data = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
    folder = str(tmp_path / "model")
    shutil.copytree(os.path.join(data, "keras_on_gpu"), folder)
    shutil.copy(os.path.join(data, "keras_on_gpu_io.npz"), folder)
    assert simgpu.run("checks_models.pin_devices", folder, python=cpu_python) >= 2
    error = simgpu.run("checks_models.serve", folder, "keras_on_gpu_io.npz")
    assert error < 1e-5
