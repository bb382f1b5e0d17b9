"""Keras' layers, the tf.function compiled by XLA."""

from benchmarks.contestants import keras


def prepare(case, inputs, training, threads):
    return keras.prepare(case, inputs, training, threads, jit_compile=True)
