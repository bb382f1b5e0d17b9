"""Files: .keras, weights.h5, checkpoints, SavedModels; written here, read in other processes."""

import json
import os

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

import layer_cases
import run_ops
from tf_cudnn_rnn_ops import layers, raw_ops, reference

DATA = os.path.join(os.path.dirname(__file__), "data")


def make_model():
    """Stacked, bidirectional, projecting, masked, with a skipping layer on top."""
    model = keras.Sequential(
        [
            keras.Input((None, 4)),
            keras.layers.Masking(),
            layers.CudnnLSTM(
                6, 2, "bidirectional", num_proj=3, dropout=0.3, seed=5, return_sequences=True
            ),
            layers.CudnnGRU(6, input_mode="skip_input"),
            keras.layers.Dense(2),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


def batch():
    return layer_cases.padded_batch([5, 0, 3, 1], 5, 4)


TARGETS = np.ones((4, 2), np.float32)


class Recurrent(tf.Module):
    """Canonical weights as variables, packed in the graph, over the raw ops."""

    config = {"num_layers": 1, "num_units": 5, "input_size": 4}
    attributes = {"rnn_mode": "lstm", "num_proj": 3}

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(2)
        weights, biases = reference.canonical_shapes(**self.config, **self.attributes)
        self.weights = [
            tf.Variable(0.3 * rng.standard_normal(shape), dtype=tf.float32) for shape in weights
        ]
        self.biases = [
            tf.Variable(0.3 * rng.standard_normal(shape), dtype=tf.float32) for shape in biases
        ]

    def run(self, x, lengths, is_training):
        params = raw_ops.CudnnRNNCanonicalToParamsV2(
            weights=[tf.convert_to_tensor(weight) for weight in self.weights],
            biases=[tf.convert_to_tensor(bias) for bias in self.biases],
            **self.config,
            **self.attributes,
        )
        rows = tf.shape(x)[1]
        return raw_ops.CudnnRNNV3(
            input=x,
            input_h=tf.zeros([1, rows, 3]),
            input_c=tf.zeros([1, rows, 5]),
            params=params,
            sequence_lengths=lengths,
            is_training=is_training,
            **self.attributes,
        ).output

    @tf.function(input_signature=[tf.TensorSpec([None, None, 4]), tf.TensorSpec([None], tf.int32)])
    def serve(self, x, lengths):
        return self.run(x, lengths, is_training=False)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 4]), tf.TensorSpec([None], tf.int32)])
    def train(self, x, lengths):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((self.run(x, lengths, is_training=True) - 1) ** 2)
        variables = [*self.weights, *self.biases]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.05 * gradient)
        return loss


LENGTHS = np.array([5, 0, 3, 1], np.int32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All files of one model, its predictions, and what another process makes of them."""
    path = tmp_path_factory.mktemp("models")
    model = make_model()
    model.fit(batch(), TARGETS, epochs=2, verbose=0)
    expected = {"predict": model.predict(batch(), verbose=0)}
    model.save(path / "model.keras")
    model.save_weights(path / "model.weights.h5")
    tf.train.Checkpoint(model=model).write(str(path / "objects"))
    tf.train.Checkpoint(bottom=model.layers[1], top=model.layers[2]).write(str(path / "layers"))
    model.export(path / "exported", verbose=False)
    tf.saved_model.save(model, str(path / "saved"))

    module = Recurrent()
    module.train(np.swapaxes(batch(), 0, 1).copy(), LENGTHS)
    tf.saved_model.save(module, str(path / "module"))
    expected["module"] = module.serve(np.swapaxes(batch(), 0, 1).copy(), LENGTHS).numpy()
    for step in range(3):
        loss = module.train(np.swapaxes(batch(), 0, 1).copy(), LENGTHS)
        expected[f"module_loss_{step}"] = loss.numpy()

    # Continued training, from the file, so that the optimizer's state takes part.
    again = keras.models.load_model(path / "model.keras")
    expected["continued"] = again.fit(batch(), TARGETS, epochs=2, shuffle=False, verbose=0).history[
        "loss"
    ]
    np.savez(path / "expected.npz", **expected)
    run_ops.run_python(READ, str(path))
    return path


READ = """
    import sys
    import tf_cudnn_rnn_ops
    import keras, numpy as np, tensorflow as tf
    import test_saved_models as parent

    path, got = sys.argv[1], {}
    x = parent.batch()
    loaded = keras.models.load_model(path + "/model.keras")
    got["keras"] = loaded.predict(x, verbose=0)
    history = loaded.fit(x, parent.TARGETS, epochs=2, shuffle=False, verbose=0).history
    got["continued"] = history["loss"]

    for name in ("h5", "checkpoint"):
        model = parent.make_model()
        if name == "h5":
            model.load_weights(path + "/model.weights.h5")
        else:
            status = tf.train.Checkpoint(model=model).read(path + "/objects")
            status.assert_existing_objects_matched()
        got[name] = model.predict(x, verbose=0)

    for name, endpoint in (("exported", "serve"), ("saved", "serving_default")):
        served = tf.saved_model.load(path + "/" + name)
        function = served.signatures[endpoint]
        (key,) = function.structured_input_signature[1]
        (got[name],) = function(**{key: tf.constant(x)}).values()
        # The gradient of what was exported for inference, and training with it.
        variables = list(function.variables)
        losses = []
        for step in range(4):
            with tf.GradientTape() as tape:
                (output,) = function(**{key: tf.constant(x)}).values()
                loss = tf.reduce_sum((output - parent.TARGETS) ** 2)
            gradients = tape.gradient(loss, variables)
            assert all(gradient is not None for gradient in gradients)
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(0.02 * gradient)
            losses.append(loss.numpy())
        got[name + "_losses"] = losses

    module = tf.saved_model.load(path + "/module")
    series = np.swapaxes(x, 0, 1).copy()
    got["module"] = module.serve(series, parent.LENGTHS)
    for step in range(3):
        got[f"module_loss_{step}"] = module.train(series, parent.LENGTHS)
    np.savez(path + "/got.npz", **got)
"""


@pytest.fixture(scope="module")
def results(folder):
    return dict(np.load(folder / "expected.npz")), dict(np.load(folder / "got.npz"))


@pytest.mark.parametrize("name", ["keras", "h5", "checkpoint", "exported", "saved"])
def test_predictions_are_the_same_bits(results, name):
    expected, got = results
    np.testing.assert_array_equal(got[name], expected["predict"])


def test_training_goes_on_after_loading(results):
    expected, got = results
    np.testing.assert_array_equal(got["continued"], expected["continued"])


@pytest.mark.parametrize("name", ["exported", "saved"])
def test_served_models_can_be_trained(results, name):
    losses = results[1][f"{name}_losses"]
    assert np.all(np.diff(losses) < 0)


def test_raw_ops_round_trip(results):
    expected, got = results
    np.testing.assert_array_equal(got["module"], expected["module"])
    losses = [expected[f"module_loss_{step}"] for step in range(3)]
    assert losses == [got[f"module_loss_{step}"] for step in range(3)]
    assert losses[2] < losses[1] < losses[0]


LSTM = {
    f"{kind}_{suffix}": shape
    for suffix, width in (("l0", 4), ("l0_reverse", 4), ("l1", 6), ("l1_reverse", 6))
    for kind, shape in (
        ("kernel", (24, width)),
        ("recurrent_kernel", (24, 3)),
        ("bias", (2, 24)),
        ("projection_kernel", (3, 6)),
    )
}
GRU = {"recurrent_kernel_l0": (18, 6), "bias_l0": (2, 18)}


def test_nothing_opaque_is_stored(folder):
    """Names and shapes of all variables in all files: canonical weights."""
    shapes = sorted([*LSTM.values(), *GRU.values(), (6, 2), (2,)])
    objects = tf.train.list_variables(str(folder / "layers"))
    stored = {
        name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE"): tuple(shape)
        for name, shape in objects
        if shape
    }
    assert stored == {
        **{f"bottom/{name}": shape for name, shape in LSTM.items()},
        **{f"top/{name}": shape for name, shape in GRU.items()},
    }

    # Beside the weights there are the optimizer's slots, of the same shapes, and scalars.
    for name in ("objects", "exported/variables/variables", "saved/variables/variables"):
        variables = tf.train.list_variables(str(folder / name))
        found = {tuple(shape) for _, shape in variables if shape}
        assert found == set(shapes)

    with h5py.File(folder / "model.weights.h5") as file:
        sizes = []
        file["layers"].visititems(
            lambda _, item: sizes.append(item.shape) if isinstance(item, h5py.Dataset) else None
        )
    assert sorted(sizes) == shapes


WITHOUT = """
    import json, sys
    import keras, numpy as np, tensorflow as tf

    path, messages = sys.argv[1], {}
    try:
        keras.models.load_model(path + "/model.keras")
    except Exception as error:
        messages["keras"] = str(error)
    try:
        served = tf.saved_model.load(path + "/exported")
        served.serve(np.load(path + "/x.npy"))
    except Exception as error:
        messages["exported"] = str(error)

    import tf_cudnn_rnn_ops

    model = keras.models.load_model(path + "/model.keras")
    served = tf.saved_model.load(path + "/exported")
    x = np.load(path + "/x.npy")
    same = np.array_equal(served.serve(x), model.predict(x, verbose=0))
    messages["with it"] = f"same predictions: {same}"
    print("MESSAGES" + json.dumps(messages))
"""


def test_loading_without_the_package_names_it(folder):
    np.save(folder / "x.npy", batch())
    output = run_ops.run_python(WITHOUT, str(folder))
    messages = json.loads(output.partition("MESSAGES")[2])
    assert "Could not locate class" in messages["keras"]
    assert "tf_cudnn_rnn_ops>Cudnn" in messages["keras"]
    assert "No OpKernel was registered" in messages["exported"]
    assert "tf_cudnn_rnn_ops/CudnnRNN" in messages["exported"]
    assert messages["with it"] == "same predictions: True"


# What Keras traced on a GPU.


def test_a_model_traced_on_a_gpu_is_differentiable():
    io = np.load(os.path.join(DATA, "keras_on_gpu_io.npz"))
    served = tf.saved_model.load(os.path.join(DATA, "keras_on_gpu"))
    serve = served.signatures["serve"]
    plain = keras.Sequential(
        [
            keras.Input((None, 6)),
            keras.layers.Masking(),
            keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True)),
            keras.layers.GRU(5),
            keras.layers.Dense(3),
        ]
    )
    plain.set_weights([io[f"w{index}"] for index in range(11)])
    x = tf.constant(io["x"])
    results = []
    for call in (lambda x: serve(x=x)["output_0"], plain):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(call(x)))
        results.append(tape.gradient(loss, x))
    np.testing.assert_allclose(*results, atol=1e-6)


# States.


def test_stateful_models_are_saved_without_their_states(tmp_path):
    def make(batch_size):
        return keras.Sequential(
            [keras.Input((None, 4), batch_size=batch_size), layers.CudnnGRU(3, stateful=True)]
        )

    model = make(4)
    expected = model.predict(batch(), verbose=0)
    model.save(tmp_path / "stateful.keras")
    model.save_weights(tmp_path / "stateful.weights.h5")
    again = keras.models.load_model(tmp_path / "stateful.keras")
    np.testing.assert_array_equal(again.predict(batch(), verbose=0), expected)
    single = make(1)
    single.load_weights(tmp_path / "stateful.weights.h5")
    np.testing.assert_allclose(single.predict(batch()[:1], verbose=0), expected[:1], atol=1e-6)
    # A SavedModel is a running thing: it has the states, and goes on from them.
    tf.saved_model.save(model, str(tmp_path / "saved"))
    served = tf.saved_model.load(str(tmp_path / "saved")).signatures["serving_default"]
    (key,) = served.structured_input_signature[1]
    (first,) = served(**{key: tf.constant(batch())}).values()
    np.testing.assert_array_equal(first, model.predict(batch(), verbose=0))
    (second,) = served(**{key: tf.constant(batch())}).values()
    assert not np.array_equal(first, second)
