"""Whole Keras models to the layers of this package and back to Keras' own.

    converted, report = convert_model(model)  # LSTM, GRU, SimpleRNN, Bidirectional become ours
    stock = to_stock_model(converted)  # and back, for converters that know no custom layer

Both return a copy with the weights carried over and leave the given model as it is.
"""

import dataclasses
import warnings

import keras

from tf_cudnn_rnn_ops.layers import CudnnRNNBase
from tf_cudnn_rnn_ops.weights import from_keras, to_keras, why_not

_STOCK = (keras.layers.RNN, keras.layers.Bidirectional)


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What happened to one recurrent layer.

    Attributes:
      path: names of the models and layers that hold it and its own, joined by "/".
      kind: its class.
      converted: whether it was replaced.
      note: why not, or what to know about the replacement; may be empty.
    """

    path: str
    kind: str
    converted: bool
    note: str

    def __str__(self):
        outcome = "converted" if self.converted else "not converted"
        return f"{self.path} ({self.kind}): {outcome}" + (f"; {self.note}" if self.note else "")


class Report(list):
    """A `Conversion` for each recurrent layer of a model; prints one in a line."""

    @property
    def converted(self):
        """The layers that were replaced."""
        return [row for row in self if row.converted]

    @property
    def skipped(self):
        """The layers that were not."""
        return [row for row in self if not row.converted]

    def __str__(self):
        return "\n".join(map(str, self)) or "no recurrent layers"


def convert_model(model, *, ignore_dropout=False):
    """A copy of a Keras model that runs its recurrent layers through the CudnnRNN ops.

    Every LSTM, GRU, SimpleRNN and Bidirectional that `weights.why_not` has nothing against is
    replaced, also in nested Sequential and functional models and inside TimeDistributed.
    Predictions stay the same within rounding; only where a layer of one direction returns sequences
    for a masked input, the outputs of masked steps are zero, whereas Keras repeats the last valid
    one.

    Args:
      model: a built Sequential or functional model.
      ignore_dropout: also convert layers with Keras' dropout or recurrent_dropout, which then have
        none any more. Predictions are the same; training is not.

    Returns:
      The new model, compiled as the old one if that is compiled and Keras can repeat it (with a
      fresh optimizer; a warning if not), and a `Report`.

    Raises:
      ValueError: the model is a subclassed one, or is not built.
    """
    rewriter = _ToOurs(ignore_dropout)
    return rewriter.copy(model), rewriter.report


def to_stock_model(model):
    """A copy of a Keras model with stock Keras layers in place of this package's.

    TFLite's and ONNX' converters and processes without this package can use the result. A layer
    with num_layers > 1 becomes as many layers, sequence_lengths become a mask.

    Args:
      model: a built Sequential or functional model.

    Raises:
      ValueError: a layer that Keras cannot express (see `weights.to_keras`), the model is a
        subclassed one, or is not built.
    """
    return _ToStock().copy(model)


class _Copier:
    """Copies a model, layer by layer; subclasses say what takes the place of a layer."""

    def __init__(self):
        self._pending = []
        self._stacks = {}
        self._path = []

    def replace(self, layer):
        """New, built layers in place of `layer`, or None to copy it as it is."""
        raise NotImplementedError

    def call(self, stack, *args, **kwargs):
        """Calls a replacement with the arguments of the replaced layer's call."""
        raise NotImplementedError

    def copy(self, model):
        if not isinstance(model, keras.Model):
            raise ValueError(f"model must be a keras.Model, got {type(model).__name__}")
        if not isinstance(model, (keras.Sequential, keras.Function)):
            raise ValueError(
                f"{type(model).__name__} is a subclassed model, whose call() cannot be copied; "
                "convert its layers one by one (tf_cudnn_rnn_ops.weights)"
            )
        if not model.built:
            raise ValueError(f"{model.name} is not built; call it once, or give it a keras.Input")
        result = self._copy_model(model)
        for old, new in self._pending:
            new.set_weights(old.get_weights())
            if hasattr(new, "finalize_state"):
                new.finalize_state()
        if model.compiled:
            _compile_like(result, model)
        return result

    def _copy_model(self, model):
        if isinstance(model, keras.Sequential):
            return self._copy_sequential(model)
        # Keras compiles the clone of a compiled model, and fails where it cannot repeat that.
        compiled, model.compiled = model.compiled, False
        try:
            return keras.models.clone_model(
                model, clone_function=self._copy_layer, call_function=self._call_layer
            )
        finally:
            model.compiled = compiled

    def _copy_sequential(self, model):
        given = model.inputs[0]
        layers = [keras.Input(batch_shape=given.shape, dtype=given.dtype, name=given.name)]
        for layer in model.layers:
            new = self._copy_layer(layer)
            layers += self._stacks.get(id(new), [new])
        return keras.Sequential(layers, name=model.name)

    def _copy_layer(self, layer):
        self._path.append(layer.name)
        try:
            new = self._copy_or_replace(layer)
        finally:
            self._path.pop()
        return new

    def _copy_or_replace(self, layer):
        if isinstance(layer, (keras.Sequential, keras.Function)):
            return self._copy_model(layer)
        if not isinstance(layer, keras.Layer):  # a function of keras.ops
            return type(layer).from_config(layer.get_config())
        stack = self.replace(layer)
        if stack is not None:
            # Keras wants one layer for one; the rest of the stack follows when it is called.
            self._stacks[id(stack[0])] = stack
            return stack[0]
        if type(layer) is keras.layers.TimeDistributed:
            return self._copy_time_distributed(layer)
        if type(layer) is keras.layers.Bidirectional:
            new = self._copy_bidirectional(layer)
            if new is not None:
                return new
        if type(layer) is keras.layers.Lambda:
            # The function is the one in hand, not something out of a file.
            return keras.layers.Lambda.from_config(layer.get_config(), safe_mode=False)
        new = type(layer).from_config(layer.get_config())
        if layer.weights:
            self._pending.append((layer, new))
        return new

    def _copy_time_distributed(self, layer):
        inner = self._copy_layer(layer.layer)
        stack = self._stacks.get(id(inner), [inner])
        if len(stack) > 1:
            inner = keras.Sequential(stack, name=layer.layer.name)
        config = layer.get_config()
        del config["layer"]
        return keras.layers.TimeDistributed(inner, **config)

    def _copy_bidirectional(self, layer):
        """A Bidirectional whose two layers are replaced one by one, or None."""
        both = [self.replace(one) for one in (layer.forward_layer, layer.backward_layer)]
        if None in both or any(len(stack) > 1 for stack in both):
            return None
        (forward,), (backward,) = both
        config = layer.get_config()
        del config["layer"], config["backward_layer"]
        new = keras.layers.Bidirectional(forward, backward_layer=backward, **config)
        # It makes its own forward layer of the given one's configuration.
        self._pending.append((forward, new.forward_layer))
        return new

    def _call_layer(self, layer, *args, **kwargs):
        stack = self._stacks.get(id(layer))
        if stack is None:
            return layer(*args, **kwargs)
        return self.call(stack, *args, **kwargs)


def _compile_like(copy, model):
    with warnings.catch_warnings():
        # Keras settled jit_compile for the old layers and settles it again for the new ones.
        warnings.filterwarnings("ignore", message="Model doesn't support `jit_compile=True`")
        try:
            copy.compile_from_config(model.get_compile_config())
            return
        except (TypeError, ValueError) as error:
            reason = str(error).splitlines()[0]
    warnings.warn(f"the copy of {model.name} is not compiled: {reason}", stacklevel=4)


class _ToOurs(_Copier):
    def __init__(self, ignore_dropout):
        super().__init__()
        self.report = Report()
        self._ignore_dropout = ignore_dropout
        self._makes_masks = False

    def copy(self, model):
        if isinstance(model, keras.Model):
            self._makes_masks = any(map(_makes_masks, model._flatten_layers()))
        return super().copy(model)

    def replace(self, layer):
        if not isinstance(layer, _STOCK):
            self._report_inner(layer)
            return None
        reason = why_not(layer, ignore_dropout=self._ignore_dropout)
        if reason is None:
            new = from_keras(layer, ignore_dropout=self._ignore_dropout)
            self._row(layer, True, "")
            return [new]
        if type(layer) is not keras.layers.Bidirectional or not self._halves_convertible(layer):
            self._row(layer, False, reason)
        return None

    def _halves_convertible(self, layer):
        """Whether the wrapper stays and its two layers are replaced (and reported) one by one."""
        return all(
            why_not(one, ignore_dropout=self._ignore_dropout) is None
            for one in (layer.forward_layer, layer.backward_layer)
        )

    def _copy_bidirectional(self, layer):
        return super()._copy_bidirectional(layer) if self._halves_convertible(layer) else None

    def call(self, stack, inputs, initial_state=None, mask=None, training=None):
        # Keras' order of the positional arguments; ours is another.
        given = {"initial_state": initial_state, "mask": mask, "training": training}
        given = {name: value for name, value in given.items() if value is not None}
        if initial_state is not None and mask is None and self._makes_masks:
            # Beside an initial state Keras' layers overlook the mask attached to their inputs.
            ones = keras.ops.ones_like(inputs[:, :, 0], dtype="int32")
            given["sequence_lengths"] = keras.ops.sum(ones, axis=1)
        return stack[0](inputs, **given)

    def _row(self, layer, converted, note):
        # The two layers of a Bidirectional are no steps of the path.
        inner = [] if self._path[-1] == layer.name else [layer.name]
        path = "/".join(self._path + inner)
        self.report.append(Conversion(path, type(layer).__name__, converted, note))

    def _report_inner(self, layer):
        """Reports recurrent layers that a layer makes for itself, which cannot be reached."""
        if isinstance(layer, (keras.layers.TimeDistributed, CudnnRNNBase)):
            return
        for inner in layer._flatten_layers(include_self=False):
            if isinstance(inner, _STOCK):
                note = f"{type(layer).__name__} makes it in its own code"
                self.report.append(
                    Conversion(
                        "/".join([*self._path, inner.name]), type(inner).__name__, False, note
                    )
                )


def _makes_masks(layer):
    """Whether a layer attaches masks to its outputs, not only hands them on."""
    custom = not type(layer).__module__.startswith("keras.")
    return isinstance(layer, keras.layers.Masking) or getattr(layer, "mask_zero", False) or custom


class _ToStock(_Copier):
    def replace(self, layer):
        if not isinstance(layer, CudnnRNNBase):
            return None
        return to_keras(layer)

    def call(
        self, stack, inputs, sequence_lengths=None, mask=None, initial_state=None, training=None
    ):
        attached = getattr(inputs, "_keras_mask", None)
        if sequence_lengths is not None:
            mask = _mask_of(inputs, sequence_lengths)
        elif mask is None and initial_state is not None:
            # Keras passes an attached mask on only where the inputs are the one tensor given.
            mask = attached
        states = keras.tree.flatten(initial_state) if initial_state is not None else None
        output, final, recurrent = inputs, [], 0
        depth = sum(not isinstance(layer, keras.layers.Dropout) for layer in stack)
        for layer in stack:
            kwargs = {} if training is None else {"training": training}
            if isinstance(layer, keras.layers.Dropout):
                output = layer(output, **kwargs)
                continue
            if mask is not None:
                kwargs["mask"] = mask
            if states is not None:
                each = len(states) // depth
                kwargs["initial_state"] = states[recurrent * each : (recurrent + 1) * each]
            recurrent += 1
            output = layer(output, **kwargs)
            if isinstance(output, (list, tuple)):
                output, *one = output
                final += one
        return (output, *final) if final else output


def _steps(inputs):
    """[1 or B, T] int32: the number of each step of [B, T, I] inputs."""
    ops = keras.ops
    if inputs.shape[1] is not None:
        return ops.expand_dims(ops.arange(inputs.shape[1], dtype="int32"), 0)
    return ops.cumsum(ops.ones_like(inputs[:, :, 0], dtype="int32"), axis=1) - 1


def _mask_of(inputs, sequence_lengths):
    """[B, T] booleans, True in the first sequence_lengths[b] steps of each row b."""
    lengths = keras.ops.expand_dims(keras.ops.cast(sequence_lengths, "int32"), 1)
    return keras.ops.less(_steps(inputs), lengths)
