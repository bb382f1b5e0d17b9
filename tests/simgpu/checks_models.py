"""Keras models and SavedModels whose RNN ops run on the simulated GPU.

The ops of TensorFlow's own around them compute nothing there, so they are kept on the CPU: by a
device function where the graph is traced here, by the devices in the file where it is loaded.
"""

import os

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import checks
from checks import CPU, GPU, Comparison, on, rnn_ops_on
from tf_cudnn_rnn_ops import layers

KINDS = ("lstm", "projected", "gru", "tanh", "relu", "bfloat16")
DATA = os.path.join(checks.ROOT, "tests", "data")


def _layer(kind):
    if kind == "gru":
        return layers.CudnnGRU(8, 2, "bidirectional", return_sequences=True)
    if kind == "tanh":
        return layers.CudnnRNNTanh(8, 3, return_sequences=True)
    if kind == "relu":
        return layers.CudnnRNNRelu(8, 2, return_sequences=True)
    options = {"num_proj": 5} if kind == "projected" else {}
    if kind == "bfloat16":
        options["dtype"] = "mixed_bfloat16"
    return layers.CudnnLSTM(8, 2, "bidirectional", return_sequences=True, **options)


def _model(kind):
    keras.utils.set_random_seed(3)
    with on(CPU):
        model = keras.Sequential(
            [
                keras.Input([None, 6]),
                keras.layers.Masking(),
                _layer(kind),
                layers.CudnnLSTM(5),
                keras.layers.Dense(3),
            ]
        )
        # Another initial value than the first of a process would have.
        rng = np.random.default_rng(1)
        model.set_weights([0.4 * rng.standard_normal(w.shape) for w in model.get_weights()])
    return model


def _data():
    rng = np.random.default_rng(2)
    x = rng.standard_normal([7, 9, 6]).astype(np.float32)
    lengths = rng.integers(1, 10, 7)
    x[np.arange(9)[None, :] >= lengths[:, None]] = 0
    x[3] = 0  # a row that is masked altogether
    with on(CPU):
        return tf.constant(x), tf.constant(rng.standard_normal([7, 3]).astype(np.float32))


def _predict(model, x, device):
    @tf.function
    def predict(x):
        with rnn_ops_on(device):
            return model(x, training=False)

    with on(CPU):
        return predict(x).numpy()


def _train(model, x, y, device, steps=3):
    @tf.function
    def step(x, y):
        with rnn_ops_on(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            variables = [variable.value for variable in model.trainable_variables]
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(0.1 * gradient)
            return loss

    with on(CPU):
        return [step(x, y).numpy() for _ in range(steps)]


def keras_layers():
    """Predictions, losses and weights after training: on both devices the same."""
    comparison = Comparison()
    x, y = _data()
    for kind in KINDS:
        found = {}
        for device in (CPU, GPU):
            model = _model(kind)
            losses = _train(model, x, y, device)
            assert losses[2] < losses[0]
            found[device] = [np.array(losses), _predict(model, x, device), *model.get_weights()]
        for index, (actual, expected) in enumerate(zip(found[GPU], found[CPU], strict=True)):
            # The row without a step sums in another order on a GPU.
            comparison.add(f"{kind} {index}", actual, expected, 1e-6)
    return comparison.report()


def train_and_export(folder, device):
    """Trains on `device`, exports there; the predictions are beside the model."""
    x, y = _data()
    model = _model("lstm")
    _train(model, x, y, device)
    predictions = _predict(model, x, device)
    with on(CPU):
        model.export(folder, verbose=False)
    np.savez(os.path.join(folder, "predictions.npz"), x=x.numpy(), y=predictions)
    return True


def pin_devices(folder):
    """Writes into a SavedModel where its ops run; the number of RNN ops."""
    path = os.path.join(folder, "saved_model.pb")
    model = saved_model_pb2.SavedModel()
    with open(path, "rb") as file:
        model.ParseFromString(file.read())
    found = 0
    for meta_graph in model.meta_graphs:
        graph = meta_graph.graph_def
        functions = [function.node_def for function in graph.library.function]
        for node in (node for nodes in [graph.node, *functions] for node in nodes):
            is_rnn = node.op.startswith("CudnnRNN")
            node.device = "/device:" + (GPU if is_rnn else CPU)[1:]
            found += is_rnn
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    return found


def serve(folder, values="predictions.npz"):
    """The largest difference to the predictions that came with the model."""
    io = np.load(os.path.join(folder, values))
    with on(CPU):
        model = tf.saved_model.load(folder)
        serve = model.signatures["serving_default"]
        (argument,) = serve.structured_input_signature[1]
        outputs = serve(**{argument: tf.constant(io["x"])})
        (output,) = outputs.values()
    return float(np.max(np.abs(output.numpy() - io["y"])))


if __name__ == "__main__":
    checks.main(globals())
