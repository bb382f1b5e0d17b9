#!/usr/bin/env python3
"""Speaker recognition with a bidirectional CudnnLSTM, from the data to a served model.

The Japanese Vowels set (Kudo, Toyama and Shimbo, 1999): nine men utter the vowels "ae"; 270
utterances to train on, 370 to test on, each of 7 to 29 frames of 12 cepstrum coefficients. Who
speaks?

The script reads the data out of the PyPI wheel of aeon (which it downloads once and does not
install), trains on the utterances at their own lengths, prints the accuracy, draws the learning
curve and the confusion matrix, exports a SavedModel and lets a second process predict with it.
It fails when the accuracy on the test set is below 0.95 or the second process predicts otherwise.

    python examples/japanese_vowels.py [--output FOLDER] [--epochs N]
"""

import argparse
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import matplotlib
import numpy as np
import tensorflow as tf

import tf_cudnn_rnn_ops

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

DATA_PACKAGE = "aeon==1.6.0"
DATA_FOLDER = "aeon/datasets/data/JapaneseVowels"
SPEAKERS = 9
COEFFICIENTS = 12
LEAST_ACCURACY = 0.95
LARGEST_DIFFERENCE = 1e-6


def download(folder):
    """Path of the wheel that holds the data, in `folder`."""
    wheels = sorted(folder.glob("aeon-*.whl"))
    if not wheels:
        print(f"downloading {DATA_PACKAGE} for its data", flush=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:"]
        command += ["--ignore-requires-python", "--dest", str(folder), DATA_PACKAGE]
        subprocess.run(command, check=True)
        wheels = sorted(folder.glob("aeon-*.whl"))
    return wheels[0]


def read_utterances(wheel, part):
    """The part TRAIN or TEST: a list of [frames, 12] arrays and their speakers 0 .. 8.

    In the file each line is an utterance: the 12 coefficients' series, comma-separated and
    parted by colons, then the speaker 1 .. 9.
    """
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{DATA_FOLDER}/JapaneseVowels_{part}.ts").decode()
    utterances, speakers = [], []
    for line in text.split("@data", 1)[1].split():
        *series, speaker = line.split(":")
        columns = [np.array(values.split(","), np.float32) for values in series]
        utterances.append(np.stack(columns, axis=1))
        speakers.append(int(speaker) - 1)
    return utterances, np.array(speakers)


def pad(utterances, mean, deviation):
    """(frames [B, T, 12], sequence_lengths [B]): normalised, zero beyond each length."""
    lengths = np.array([len(each) for each in utterances], np.int32)
    frames = np.zeros([len(utterances), lengths.max(), COEFFICIENTS], np.float32)
    for row, each in zip(frames, utterances, strict=True):
        row[: len(each)] = (each - mean) / deviation
    return frames, lengths


def build_model(units):
    """frames [B, T, 12] and sequence_lengths [B] to one logit per speaker, [B, 9]."""
    frames = keras.Input([None, COEFFICIENTS], name="frames")
    lengths = keras.Input([], dtype="int32", name="sequence_lengths")
    noisy = keras.layers.GaussianNoise(0.3)(frames)
    # The state after each utterance's own last frame, of both directions: [B, 2 * units].
    summary = tf_cudnn_rnn_ops.CudnnLSTM(units, direction="bidirectional")(
        noisy, sequence_lengths=lengths
    )
    summary = keras.layers.Dropout(0.3)(summary)
    logits = keras.layers.Dense(SPEAKERS, name="speaker")(summary)
    return keras.Model([frames, lengths], logits)


class Progress(keras.callbacks.Callback):
    """One line every five epochs."""

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % 5 == 0 or epoch == 0:
            print(
                f"epoch {epoch + 1:3d}   training loss {logs['loss']:.4f}"
                f"   accuracy: training {logs['accuracy']:.3f}, test {logs['val_accuracy']:.3f}",
                flush=True,
            )


def plot_learning_curve(history, path):
    epochs = np.arange(1, len(history["loss"]) + 1)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, key, label in ((left, "loss", "cross-entropy"), (right, "accuracy", "accuracy")):
        axes.plot(epochs, history[key], label="training")
        axes.plot(epochs, history[f"val_{key}"], label="test")
        axes.set_xlabel("epoch")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend()
    left.set_yscale("log")
    right.axhline(LEAST_ACCURACY, color="grey", linestyle="--", linewidth=1)
    right.annotate(
        f"{LEAST_ACCURACY} required", (epochs[-1], LEAST_ACCURACY - 0.02), color="grey", ha="right"
    )
    figure.suptitle("Japanese Vowels, bidirectional CudnnLSTM: learning curve")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def plot_confusion(speakers, predicted, path):
    counts = np.zeros([SPEAKERS, SPEAKERS], int)
    np.add.at(counts, (speakers, predicted), 1)
    names = np.arange(1, SPEAKERS + 1)
    figure, axes = pyplot.subplots(figsize=(6.5, 5.5), layout="constrained")
    image = axes.imshow(counts, cmap="Blues")
    for row in range(SPEAKERS):
        for column in range(SPEAKERS):
            if counts[row, column]:
                light = counts[row, column] > counts.max() / 2
                axes.text(
                    column,
                    row,
                    counts[row, column],
                    ha="center",
                    va="center",
                    color="white" if light else "black",
                )
    axes.set_xticks(range(SPEAKERS), names)
    axes.set_yticks(range(SPEAKERS), names)
    axes.set_xlabel("predicted speaker")
    axes.set_ylabel("true speaker")
    right = int(np.trace(counts))
    axes.set_title(f"Japanese Vowels test set: {right} of {counts.sum()} right")
    figure.colorbar(image, label="utterances")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def predict_in_second_process(saved_model, inputs, folder):
    """What a fresh Python predicts with the SavedModel for `inputs`."""
    request, answer = folder / "request.npz", folder / "answer.npy"
    np.savez(request, frames=inputs[0], sequence_lengths=inputs[1])
    command = [sys.executable, __file__, "--serve", str(saved_model), str(request), str(answer)]
    subprocess.run(command, check=True)
    return np.load(answer)


def serve(saved_model, request, answer):
    """The second process: no Keras layer is built, the op library alone runs the model."""
    model = tf.saved_model.load(saved_model)
    arrays = np.load(request)
    inputs = [tf.constant(arrays["frames"]), tf.constant(arrays["sequence_lengths"])]
    np.save(answer, model.serve(inputs).numpy())


def main(output, epochs, units):
    start = time.time()
    output.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(2)
    wheel = download(output)
    utterances, speakers = read_utterances(wheel, "TRAIN")
    test_utterances, test_speakers = read_utterances(wheel, "TEST")
    every_frame = np.concatenate(utterances)
    mean, deviation = every_frame.mean(axis=0), every_frame.std(axis=0)
    inputs = pad(utterances, mean, deviation)
    test_inputs = pad(test_utterances, mean, deviation)
    lengths = np.concatenate([inputs[1], test_inputs[1]])
    print(
        f"{len(speakers)} utterances to train on, {len(test_speakers)} to test on,"
        f" {lengths.min()} to {lengths.max()} frames of {COEFFICIENTS} coefficients,"
        f" {SPEAKERS} speakers",
        flush=True,
    )

    model = build_model(units)
    model.compile(
        optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, epochs * 17)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    print(f"bidirectional CudnnLSTM of 2 x {units} units, {model.count_params()} parameters")
    trained = model.fit(
        list(inputs),
        speakers,
        batch_size=16,
        epochs=epochs,
        validation_data=(list(test_inputs), test_speakers),
        verbose=0,
        callbacks=[Progress()],
    )
    logits = model.predict(list(test_inputs), batch_size=len(test_speakers), verbose=0)
    predicted = logits.argmax(axis=1)
    accuracy = float(np.mean(predicted == test_speakers))
    print(
        f"test accuracy {accuracy:.4f} ({np.sum(predicted == test_speakers)} of {len(predicted)})"
    )

    plot_learning_curve(trained.history, output / "learning_curve.png")
    plot_confusion(test_speakers, predicted, output / "confusion_matrix.png")
    saved_model = output / "saved_model"
    model.export(saved_model, verbose=False)
    served = predict_in_second_process(saved_model, test_inputs, output)
    difference = float(np.max(np.abs(served - logits)))
    print(f"largest difference of the predictions of a second process: {difference:.2e}")
    print(f"learning_curve.png, confusion_matrix.png and saved_model are in {output}")
    print(f"{time.time() - start:.0f} seconds")
    if accuracy < LEAST_ACCURACY:
        sys.exit(f"error: the test accuracy is below {LEAST_ACCURACY}")
    if not difference <= LARGEST_DIFFERENCE:
        sys.exit(f"error: the predictions differ by more than {LARGEST_DIFFERENCE}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("build/demo"))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--units", type=int, default=64, help="per direction")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(*arguments.serve)
    else:
        main(arguments.output, arguments.epochs, arguments.units)
