"""Whole Keras models to our layers and back, and the way on to TFLite."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import layer_cases
from tf_cudnn_rnn_ops import CudnnGRU, CudnnLSTM, CudnnRNNTanh, convert_model, to_stock_model
from tf_cudnn_rnn_ops.layers import CudnnRNNBase

L = keras.layers
LENGTHS = [6, 3, 1, 5]


def x_of(width=4, seed=0):
    return layer_cases.padded_batch(LENGTHS, 6, width, seed)


def kinds(model):
    """Class names of all layers, nested ones too."""
    names = []
    for layer in model.layers:
        inner = getattr(layer, "layer", layer)
        names += kinds(inner) if hasattr(inner, "layers") else [type(inner).__name__]
    return names


def assert_same_predictions(one, other, arguments, tolerance=1e-5):
    first, second = one.predict(arguments, verbose=0), other.predict(arguments, verbose=0)
    for left, right in zip(keras.tree.flatten(first), keras.tree.flatten(second), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=tolerance)


def sequential_model():
    return keras.Sequential(
        [
            keras.Input((None, 4), name="frames"),
            L.Masking(),
            L.LSTM(5, return_sequences=True, name="first"),
            L.Bidirectional(L.GRU(3, return_sequences=True), name="second"),
            L.Bidirectional(L.SimpleRNN(3, activation="relu"), merge_mode="sum", name="third"),
            L.RepeatVector(2),
            L.SimpleRNN(4, go_backwards=True, name="fourth"),
            L.BatchNormalization(),
            L.Dense(2),
        ],
        name="classifier",
    )


def test_sequential_models():
    model = layer_cases.randomize(sequential_model())
    before = model.get_weights()
    converted, report = convert_model(model)
    assert kinds(converted) == [
        "Masking",
        "CudnnLSTM",
        "CudnnGRU",
        "Bidirectional",
        "RepeatVector",
        "CudnnRNNTanh",
        "BatchNormalization",
        "Dense",
    ]
    assert converted.get_layer("second").direction == "bidirectional"
    assert type(converted.get_layer("third").forward_layer).__name__ == "CudnnRNNRelu"
    assert_same_predictions(model, converted, x_of())
    assert not report.skipped
    third = model.get_layer("third")  # Keras numbers the names of its two layers in a process.
    assert [row.path for row in report] == [
        "first",
        "second",
        f"third/{third.forward_layer.name}",
        f"third/{third.backward_layer.name}",
        "fourth",
    ]
    assert (converted.name, converted.inputs[0].name) == ("classifier", "frames")
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    converted.get_layer("first").kernel_l0.assign_add(np.ones((20, 4)))
    assert_same_predictions(model, sequential_copy(model, before), x_of(), 0)

    stock = to_stock_model(convert_model(model)[0])
    assert kinds(stock) == kinds(model)
    assert_same_predictions(model, stock, x_of())


def sequential_copy(model, weights):
    copy = keras.models.clone_model(model)
    copy.set_weights(weights)
    return copy


def functional_model():
    x = keras.Input((None, 4), name="x")
    states = [keras.Input((5,), name=name) for name in ("h", "c")]
    masked = L.Masking()(x)
    inner_input = keras.Input((None, 4))
    inner = keras.Model(inner_input, L.GRU(4, return_sequences=True, name="deep")(inner_input))
    nested = keras.Sequential(
        [keras.Input((None, 4)), inner, L.SimpleRNN(4, return_sequences=True, name="flat")],
        name="nested",
    )
    shared = L.LSTM(5, return_sequences=True, return_state=True, name="shared")
    first, *final = shared(nested(masked), states)
    second, *final = shared(L.Dense(4)(first), initial_state=final)
    kept = L.LSTM(3, activation="relu", name="kept")(second)
    dropping = L.GRU(3, dropout=0.2, name="dropping")(second)
    outputs = L.Concatenate()([kept, dropping, final[0], L.Flatten()(second[:, -1:, :])])
    return keras.Model([x, *states], [outputs, keras.ops.mean(masked, axis=1)], name="functional")


def test_functional_models():
    """Nested, shared, with states, with layers that stay, with functions of keras.ops."""
    model = layer_cases.randomize(functional_model(), scale=0.3)
    rng = np.random.default_rng(1)
    states = [rng.standard_normal((4, 5)).astype(np.float32) for _ in range(2)]
    converted, report = convert_model(model)
    assert_same_predictions(model, converted, [x_of(), *states])
    outcome = {row.path.split("/")[-1]: row for row in report}
    assert {name: row.converted for name, row in outcome.items()} == {
        "deep": True,
        "flat": True,
        "shared": True,
        "kept": False,
        "dropping": False,
    }
    assert outcome["deep"].path.startswith("nested/")
    assert "activation is relu" in outcome["kept"].note
    assert "ignore_dropout=True" in outcome["dropping"].note
    assert "kept (LSTM): not converted; activation is relu, not tanh" in str(report)
    assert "shared (LSTM): converted" in str(report)
    assert {row.kind for row in report.skipped} == {"LSTM", "GRU"}

    without, report = convert_model(model, ignore_dropout=True)
    assert [row.path for row in report.skipped] == ["kept"]
    assert_same_predictions(model, without, [x_of(), *states])


def test_masked_steps_are_as_before():
    """Also where they show: Keras repeats the last valid output in them."""
    model = keras.Sequential(
        [keras.Input((6, 4)), L.Masking(), L.LSTM(3, return_sequences=True), L.Flatten()]
    )
    with_zeros = keras.Sequential(
        [
            keras.Input((6, 4)),
            L.Masking(),
            L.LSTM(3, return_sequences=True, zero_output_for_mask=True),
            L.Flatten(),
        ]
    )
    for one in (model, with_zeros):
        layer_cases.randomize(one)
        converted, _ = convert_model(one)
        assert_same_predictions(one, converted, x_of())
        assert_same_predictions(one, to_stock_model(converted), x_of())
    assert np.abs(model(x_of()) - with_zeros(x_of())).max() > 0.01


def test_wrappers():
    inner = keras.Sequential([keras.Input((6, 4)), L.GRU(3, return_sequences=True), L.LSTM(2)])
    model = keras.Sequential(
        [
            keras.Input((3, 6, 4)),
            L.TimeDistributed(inner, name="outer"),
            L.TimeDistributed(L.Dense(4)),
            L.LSTM(2),
        ]
    )
    layer_cases.randomize(model)
    converted, report = convert_model(model)
    assert kinds(converted) == ["CudnnGRU", "CudnnLSTM", "Dense", "CudnnLSTM"]
    assert len(report.converted) == 3
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 4)).astype(np.float32)
    assert_same_predictions(model, converted, x)
    assert_same_predictions(model, to_stock_model(converted), x)


@keras.saving.register_keras_serializable(package="tests")
class Block(keras.layers.Layer):
    """A layer that makes a recurrent layer in its own code."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.rnn = L.GRU(3, name="hidden")

    def build(self, input_shape):
        self.rnn.build(input_shape)

    def call(self, inputs):
        return self.rnn(inputs)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], 3)


def test_what_cannot_be_reached():
    model = keras.Sequential([keras.Input((6, 4)), Block(name="block")])
    converted, report = convert_model(model)
    (row,) = report
    assert (row.path, row.converted) == ("block/hidden", False)
    assert row.note == "Block makes it in its own code"
    assert_same_predictions(model, converted, x_of())

    class Subclassed(keras.Model):
        def call(self, inputs):
            return inputs

    with pytest.raises(ValueError, match="Subclassed is a subclassed model"):
        convert_model(Subclassed())
    with pytest.raises(ValueError, match="is not built"):
        convert_model(keras.Sequential([L.LSTM(2)]))
    with pytest.raises(ValueError, match="must be a keras.Model, got LSTM"):
        convert_model(L.LSTM(2))
    for convert in (convert_model, to_stock_model):
        with pytest.raises(ValueError, match="must be a keras.Model, got str"):
            convert("model.keras")
    assert str(convert_model(keras.Sequential([keras.Input((2,)), L.Dense(1)]))[1]) == (
        "no recurrent layers"
    )


def test_training_goes_on():
    model = sequential_model()
    model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    model.fit(x_of(), np.ones((4, 2)), verbose=0)
    converted, _ = convert_model(model)
    assert converted.compiled and not converted.jit_compile
    losses = [
        one.fit(x_of(), np.ones((4, 2)), epochs=1, verbose=0).history["loss"][0]
        for one in (model, converted)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_functions_of_the_user():
    """A Lambda is copied; a loss that Keras does not know leaves the copy uncompiled."""

    def loss(targets, outputs):
        return keras.ops.mean((targets - outputs) ** 2)

    x = keras.Input((6, 4))
    functional = keras.Model(x, L.LSTM(2)(L.Lambda(lambda values: 2 * values)(x)))
    sequential = keras.Sequential([keras.Input((6, 4)), L.Lambda(lambda v: -v), L.GRU(2)])
    for model in (functional, sequential):
        model.compile("sgd", loss)
        with pytest.warns(UserWarning, match="is not compiled: "):
            converted, report = convert_model(model)
        assert model.compiled and not converted.compiled and len(report.converted) == 1
        assert_same_predictions(model, converted, x_of())


def test_layers_with_adapted_state():
    normalization = L.Normalization()
    normalization.adapt(x_of() * 3 + 1)
    model = keras.Sequential([keras.Input((6, 4)), normalization, L.LSTM(2)])
    assert_same_predictions(model, convert_model(model)[0], x_of())


def test_stateful_models():
    model = keras.Sequential([keras.Input((None, 4), batch_size=4), L.GRU(3, stateful=True)])
    layer_cases.randomize(model)
    converted, _ = convert_model(model)
    for _ in range(2):
        assert_same_predictions(model, converted, x_of())
    stock = to_stock_model(converted)
    stock.layers[-1].reset_state()
    converted.layers[-1].reset_state()
    for _ in range(2):
        assert_same_predictions(stock, converted, x_of())


def our_models():
    x, n = keras.Input((None, 4)), keras.Input((), dtype="int32")
    states = [keras.Input((3,)) for _ in range(8)]
    sequences, *final = CudnnLSTM(
        3,
        2,
        "bidirectional",
        dropout=0.2,
        return_sequences=True,
        return_state=True,
        zero_output_for_mask=False,
    )(x, sequence_lengths=n, initial_state=states)
    top = CudnnGRU(2, input_mode="auto_select")(sequences, sequence_lengths=n)
    return keras.Model([x, n, *states], [top, sequences, *final])


def test_our_stacks_become_keras_layers():
    model = layer_cases.randomize(our_models())
    stock = to_stock_model(model)
    assert not any(isinstance(layer, CudnnRNNBase) for layer in stock.layers)
    assert [type(layer).__name__ for layer in stock.layers].count("Bidirectional") == 2
    assert sum(isinstance(layer, L.Dropout) for layer in stock.layers) == 1
    rng = np.random.default_rng(0)
    arguments = [x_of(), np.array(LENGTHS, np.int32)]
    arguments += [rng.standard_normal((4, 3)).astype(np.float32) for _ in range(8)]
    assert_same_predictions(model, stock, arguments)
    arguments[0][1, 3:] = 100
    assert_same_predictions(model, stock, arguments)


@pytest.mark.parametrize("mode", layer_cases.MODES)
@pytest.mark.parametrize("options", [{}, {"num_layers": 3}, {"go_backwards": True}], ids=str)
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_our_layers_become_keras_layers(mode, options, direction):
    layer = layer_cases.CLASSES[mode](3, direction=direction, return_sequences=True, **options)
    model = keras.Sequential([keras.Input((None, 4)), L.Masking(), layer, L.Dense(2)])
    layer_cases.randomize(model)
    assert_same_predictions(model, to_stock_model(model), x_of())


def test_what_keras_cannot_express():
    for layer, message in (
        (CudnnLSTM(3, num_proj=2), "has no projection"),
        (CudnnRNNTanh(3, time_major=True), "batch-major"),
        (CudnnGRU(3, 2, go_backwards=True), "no counterpart"),
    ):
        with pytest.raises(ValueError, match=message):
            to_stock_model(keras.Sequential([keras.Input((6, 4)), layer]))


def test_tflite():
    """The converter knows every op of the model, and TFLite's result is ours."""
    model = keras.Sequential(
        [
            keras.Input((6, 4), batch_size=4),
            CudnnLSTM(3, 2, "bidirectional", dropout=0.1, return_sequences=True),
            CudnnGRU(2),
        ]
    )
    layer_cases.randomize(model)
    converter = tf.lite.TFLiteConverter.from_keras_model(to_stock_model(model))
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x_of())
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(output, model(x_of()), atol=1e-6)


def test_the_example(tmp_path):
    example = os.path.join(os.path.dirname(__file__), "..", "examples", "convert_keras_model.py")
    model = sequential_model()
    model.save(tmp_path / "model.keras")
    done = subprocess.run(
        [sys.executable, example, tmp_path / "model.keras", tmp_path / "ours.keras", "--quick"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "first (LSTM): converted" in done.stdout
    assert "largest difference of the predictions" in done.stdout
    assert "times as fast" in done.stdout
    assert_same_predictions(model, keras.models.load_model(tmp_path / "ours.keras"), x_of())
