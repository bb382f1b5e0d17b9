#!/usr/bin/env python3
"""Converts a Keras model to the CudnnRNN layers, checks it and compares the speed.

    python examples/convert_keras_model.py model.keras converted.keras
    python examples/convert_keras_model.py              # a model made here, two layers of LSTM

Prints what was converted and what was not, the largest difference of the predictions, and the time
that a batch takes before and after, at inference and in a training step, each in a tf.function.
The converted model is saved when a second file is named; reading it back needs
`import tf_cudnn_rnn_ops`.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import tf_cudnn_rnn_ops

LARGEST_DIFFERENCE = 1e-4


def example_model():
    """Two bidirectional layers over sequences of unknown length, as for tagging words."""
    return keras.Sequential(
        [
            keras.Input((None, 64)),
            keras.layers.Bidirectional(keras.layers.LSTM(128, return_sequences=True)),
            keras.layers.Bidirectional(keras.layers.LSTM(128)),
            keras.layers.Dense(10),
        ]
    )


def example_inputs(model, batch, steps):
    """Random inputs of the model's shapes; unknown dimensions are `batch`, then `steps`."""
    rng = np.random.default_rng(0)

    def make(tensor):
        known = [batch if tensor.shape[0] is None else tensor.shape[0]]
        known += [steps if size is None else size for size in tensor.shape[1:]]
        if np.issubdtype(np.dtype(tensor.dtype), np.integer):
            return tf.constant(rng.integers(1, 3, known), tensor.dtype)
        return tf.cast(rng.standard_normal(known), tensor.dtype)

    inputs = [make(tensor) for tensor in model.inputs]
    return inputs[0] if len(inputs) == 1 else inputs


def seconds_per_call(function, *arguments, calls):
    """Median time of a call after two for warming up."""
    times = []
    for _ in range(2 + calls):
        start = time.perf_counter()
        for result in keras.tree.flatten(function(*arguments)):
            result.numpy()
        times.append(time.perf_counter() - start)
    return float(np.median(times[2:]))


def inference_of(model):
    return tf.function(lambda inputs: model(inputs, training=False))


def training_step_of(model):
    """The loss and all gradients; the weights stay as they are."""

    @tf.function
    def step(inputs):
        with tf.GradientTape() as tape:
            outputs = keras.tree.flatten(model(inputs, training=True))
            loss = tf.add_n([tf.reduce_sum(tf.cast(output, tf.float32) ** 2) for output in outputs])
        gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
        return [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]

    return step


def largest_difference(one, other):
    pairs = zip(keras.tree.flatten(one), keras.tree.flatten(other), strict=True)
    return max(float(tf.reduce_max(tf.abs(first - second))) for first, second in pairs)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", help="a .keras file; without one a model is made")
    parser.add_argument("converted", nargs="?", help="where to save the converted model")
    parser.add_argument("--batch", type=int, default=32, help="rows in a batch (32)")
    parser.add_argument("--steps", type=int, default=100, help="time steps, where unknown (100)")
    parser.add_argument("--quick", action="store_true", help="small batches, few calls")
    arguments = parser.parse_args()
    batch, steps, calls = arguments.batch, arguments.steps, 7
    if arguments.quick:
        batch, steps, calls = 4, 10, 2

    model = keras.models.load_model(arguments.model) if arguments.model else example_model()
    converted, report = tf_cudnn_rnn_ops.convert_model(model)
    print(report)
    inputs = example_inputs(model, batch, steps)
    difference = largest_difference(model(inputs), converted(inputs))
    print(f"largest difference of the predictions: {difference:.1e}")
    if arguments.converted:
        converted.save(arguments.converted)
        print(f"saved {arguments.converted}")

    for name, function_of in (("inference", inference_of), ("training step", training_step_of)):
        before, after = (
            seconds_per_call(function_of(one), inputs, calls=calls) for one in (model, converted)
        )
        print(
            f"{name}, batch of {batch}: {1e3 * before:.1f} ms before, {1e3 * after:.1f} ms after, "
            f"{before / after:.1f} times as fast"
        )
    if not difference <= LARGEST_DIFFERENCE:
        raise SystemExit(f"the predictions differ by more than {LARGEST_DIFFERENCE}")


if __name__ == "__main__":
    main()
