"""A SavedModel that Keras traced on a GPU, served on the CPU."""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf

import run_ops
from compare import assert_close

DATA = os.path.join(os.path.dirname(__file__), "data")
MODEL = os.path.join(DATA, "keras_on_gpu")


@pytest.fixture(scope="module")
def io():
    return dict(np.load(os.path.join(DATA, "keras_on_gpu_io.npz")))


def test_the_model_holds_the_ops():
    """Else the rest of this file would prove nothing."""
    with open(os.path.join(MODEL, "saved_model.pb"), "rb") as file:
        assert b"CudnnRNNV3" in file.read()


def test_serves_what_it_gave_on_the_gpu(io):
    model = tf.saved_model.load(MODEL)
    for signature in ("serve", "serving_default"):
        output = model.signatures[signature](x=tf.constant(io["x"]))["output_0"]
        assert_close(output, io["y"], 1e-5)


def test_serves_in_a_process_of_its_own(io):
    """The import of the package is all that is needed."""
    code = """
        import sys
        import numpy as np
        import tensorflow as tf
        import tf_cudnn_rnn_ops
        io = np.load(sys.argv[2])
        model = tf.saved_model.load(sys.argv[1])
        output = model.signatures["serving_default"](x=tf.constant(io["x"]))["output_0"]
        print(np.max(np.abs(output.numpy() - io["y"])))
    """
    data = os.path.join(DATA, "keras_on_gpu_io.npz")
    assert float(run_ops.run_python(code, MODEL, data).split()[-1]) < 1e-5


@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (1, 30), (7, 9), (33, 4)])
def test_serves_other_sizes_as_plain_keras_does(io, batch, steps):
    model = tf.saved_model.load(MODEL)
    plain = keras.Sequential(
        [
            keras.Input([None, 6]),
            keras.layers.Masking(),
            keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True)),
            keras.layers.GRU(5),
            keras.layers.Dense(3),
        ]
    )
    plain.set_weights([io[f"w{index}"] for index in range(11)])
    rng = np.random.default_rng(batch)
    x = rng.standard_normal([batch, steps, 6]).astype(np.float32)
    lengths = rng.integers(1, steps + 1, batch)
    x[np.arange(steps)[None, :] >= lengths[:, None]] = 0
    assert_close(model.signatures["serve"](x=tf.constant(x))["output_0"], plain(x), 1e-5)


def test_saved_again(io, tmp_path):
    """What was loaded can be saved and loaded once more."""
    path = str(tmp_path / "again")
    model = tf.saved_model.load(MODEL)
    tf.saved_model.save(model, path, signatures=model.signatures["serve"])
    again = tf.saved_model.load(path)
    output = again.signatures["serving_default"](x=tf.constant(io["x"]))["output_0"]
    assert_close(output, io["y"], 1e-5)
