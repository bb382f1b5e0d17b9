"""tf.distribute: two devices and two processes compute what one does."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

import run_ops

COMMON = """
import json, sys
import keras, numpy as np, tensorflow as tf
import tf_cudnn_rnn_ops
from tf_cudnn_rnn_ops import layers

def data(rows):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, 5, 3)).astype(np.float32)
    lengths = np.array([5, 3, 1, 4, 0, 5, 2, 5])[:rows]
    x[np.arange(5) >= lengths[:, None]] = 0
    return x, np.sin(x.sum(axis=(1, 2)))[:, None].astype(np.float32)

def make_model():
    model = keras.Sequential(
        [
            keras.Input((None, 3)),
            keras.layers.Masking(),
            layers.CudnnLSTM(4, 2, "bidirectional", num_proj=2, return_sequences=True),
            layers.CudnnGRU(3),
            keras.layers.Dense(1),
        ]
    )
    rng = np.random.default_rng(1)
    model.set_weights([0.5 * rng.standard_normal(w.shape) for w in model.get_weights()])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model

def train(strategy, rows=7, batch_size=4, epochs=3):
    # A loop whose loss is the mean over the whole batch, however it is dealt out: four rows, then
    # three, over one or two replicas.
    with strategy.scope():
        model = make_model()

    def step(batch):
        values, targets = batch
        with tf.GradientTape() as tape:
            predicted = model(values, training=True)
            loss = tf.reduce_sum((predicted - targets) ** 2) / batch_size
        variables = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, variables)
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(0.1 * gradient)
        return loss

    @tf.function
    def run(batch):
        return strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None)

    dataset = tf.data.Dataset.from_tensor_slices(data(rows)).batch(batch_size)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    dataset = strategy.experimental_distribute_dataset(dataset.with_options(options))
    losses = [float(run(batch)) for _ in range(epochs) for batch in dataset]
    return {"losses": losses, "weights": [float(np.sum(w)) for w in model.get_weights()]}
"""

MIRRORED = (
    COMMON
    + """
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
one = tf.distribute.OneDeviceStrategy("CPU:0")
both = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert both.num_replicas_in_sync == 2

def fit(strategy):
    with strategy.scope():
        model = make_model()
    x, y = data(8)
    history = model.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0)
    x, y = data(7)
    return {
        "losses": history.history["loss"],
        "predict": model.predict(x, batch_size=4, verbose=0).tolist(),
        "weights": [float(np.sum(w)) for w in model.get_weights()],
    }

def masks(strategy):
    with strategy.scope():
        layer = layers.CudnnRNNRelu(8, 2, dropout=0.5, seed=3, return_sequences=True)
        layer.build((None, None, 3))
        layer.set_weights([np.abs(w) + 0.1 for w in layer.get_weights()])

    @tf.function
    def run():
        return strategy.run(lambda: layer(tf.ones([2, 4, 3]), training=True))

    return [value.numpy().tolist() for value in strategy.experimental_local_results(run())]

results = {
    "fit": [fit(strategy) for strategy in (one, both)],
    "loop": [train(strategy) for strategy in (one, both)],
    "masks": masks(both),
}
print("RESULT" + json.dumps(results))
"""
)

WORKER = (
    COMMON
    + """
strategy = tf.distribute.MultiWorkerMirroredStrategy()
assert strategy.num_replicas_in_sync == 2
print("RESULT" + json.dumps(train(strategy)))
"""
)


def result_of(output):
    return json.loads(output.partition("RESULT")[2])


def assert_same_results(actual, expected):
    assert set(actual) == set(expected)
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def mirrored():
    return result_of(run_ops.run_python(MIRRORED))


@pytest.mark.parametrize("name", ["fit", "loop"])
def test_mirrored_strategy(mirrored, name):
    """Keras' fit() averages over replicas, so it gets even batches; the loop has an uneven one."""
    one, both = mirrored[name]
    assert_same_results(both, one)
    assert one["losses"][-1] < one["losses"][0]


def test_replicas_draw_different_masks_from_one_seed(mirrored):
    first, second = np.array(mirrored["masks"])
    assert first.shape == second.shape and not np.array_equal(first, second)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def test_multi_worker_strategy(mirrored):
    workers = [f"localhost:{port}" for port in free_ports(2)]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    processes = []
    for index in range(2):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", WORKER],
                env={**os.environ, "PYTHONPATH": root, "TF_CONFIG": json.dumps(task)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        outputs = [process.communicate(timeout=600) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors[-4000:]
    first, second = (result_of(output) for output, _ in outputs)
    assert first == second
    assert_same_results(first, mirrored["loop"][0])
