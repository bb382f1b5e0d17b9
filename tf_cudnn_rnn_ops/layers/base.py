"""The common base of the four layers."""

import numbers
import random
import warnings

import keras
import tensorflow as tf

from . import forward, pseudo_layers, variables, xla
from .inputs import read as read_sequences
from .inputs import reverse, valid_steps
from .states import StateVariables, join, take_apart, zeros
from .states import read as read_states

_DIRECTIONS = ("unidirectional", "bidirectional")
_DTYPES = ("float16", "bfloat16", "float32", "float64")
_INPUT_MODES = ("linear_input", "skip_input", "auto_select")


class CudnnRNNBase(keras.layers.Layer):
    """Stacked recurrent layers in one CudnnRNNV3 op.

    B batch, T time steps, I features, L num_layers, D directions, R the output width of one
    direction (num_proj of a projecting LSTM, else units).

    Args:
      units: size of the hidden (cell) state, at least 1.
      num_layers: number of stacked layers L, at least 1.
      direction: "unidirectional" (D=1) or "bidirectional" (D=2). Each layer above the first reads
        both directions of the one below.
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate instead
        of multiplying it by a kernel, which requires I == units and no projection; "auto_select":
        skip_input where that is possible.
      dropout: probability, 0 <= dropout < 1, of dropping an element between two layers while
        training. The input of the first layer and the output of the last are never dropped, so it
        has no effect with num_layers=1 (a warning says so).
      seed: integer of 64 bits for the dropout; None draws one from Python's `random`, which
        keras.utils.set_random_seed seeds.
      time_major: inputs and outputs are [T, B, .] instead of [B, T, .]. States are [B, .] either
        way.
      return_sequences: return the output of all steps, not only the last.
      return_state: return the final states too.
      stateful: start from the last call's final states; needs a static batch size.
      go_backwards: read each row from its last valid step to its first. Sequences come back in the
        order in which they were read, at the end of the time axis, with the padding before them
        (which is the layout that keras.layers.Bidirectional expects of its backward layer).
      zero_output_for_mask: whether the sequences' padded steps are zero. False repeats the output
        of each row's last valid step in them, which is what keras.layers.LSTM does by default.
        Always zero: bidirectional layers, the padding that go_backwards puts in front, rows of
        length 0.
      use_bias: whether there are biases.
      kernel_initializer, recurrent_initializer, bias_initializer: applied to each gate's matrix
        [inputs, units], or vector, on its own; a list gives one initializer for each gate.
      kernel_regularizer, recurrent_regularizer, kernel_constraint, recurrent_constraint: applied to
        the transposed variable [inputs, gates*units], which is the shape of Keras' kernels.
      bias_regularizer, bias_constraint: applied to the bias variable [2, gates*units].
      **kwargs: name, dtype (a policy), trainable, activity_regularizer.

    Call arguments:
      inputs: [B, T, I], or [T, B, I] if time_major, or a RaggedTensor [B, (T), I].
      sequence_lengths: None or [B] integers in 0..T. None: a mask says, or each row has T steps.
      mask: None or booleans [B, T] ([T, B] if time_major), right-padded in each row. A mask
        attached to the inputs by the layers before is used when neither this nor sequence_lengths
        is given.
      initial_state: None (zeros) or L*D states ([B, R]; in an LSTM h [B, R] and c [B, units] in
        turn), flat or nested, ordered by layer, then direction. They are cast to the compute dtype.
      training: whether dropout is applied.

    Attributes of a built layer:
      input_size: I.
      skips_input: whether the first layer has no kernel.
      kernel_l0, recurrent_kernel_l0, bias_l0, projection_kernel_l0, kernel_l0_reverse, ...,
        kernel_l1, ...: the variables, as `pseudo_layers` describes them.

    Returns:
      The output [B, T, D*R] ([T, B, D*R] if time_major; ragged for ragged inputs) or, without
      return_sequences, [B, D*R]: the top layer's final state of each direction,
      which for the forward direction is the output of each row's last valid step. A row without
      valid steps returns its initial state. With return_state a tuple: that, and the final states
      in the order of initial_state.
    """

    rnn_mode = None
    gates = None
    both_biases = False
    projects = False
    num_proj = None
    ones_gate = None

    def __init__(
        self,
        units,
        num_layers=1,
        direction="unidirectional",
        *,
        input_mode="linear_input",
        dropout=0.0,
        seed=None,
        time_major=False,
        return_sequences=False,
        return_state=False,
        stateful=False,
        go_backwards=False,
        zero_output_for_mask=True,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        kernel_regularizer=None,
        recurrent_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        recurrent_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _one_of("dtype", self.compute_dtype, _DTYPES)
        self.units = _positive("units", units)
        self.num_layers = _positive("num_layers", num_layers)
        self.direction = _one_of("direction", direction, _DIRECTIONS)
        self.input_mode = _one_of("input_mode", input_mode, _INPUT_MODES)
        if not (isinstance(dropout, numbers.Real) and 0.0 <= dropout < 1.0):
            raise ValueError(f"dropout must be at least 0 and less than 1, got {dropout!r}")
        self.dropout = float(dropout)
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                f"{self.name}: dropout={dropout} has no effect with num_layers=1; it works "
                "between layers",
                stacklevel=3,
            )
        if seed is not None and not (
            isinstance(seed, numbers.Integral) and -(2**63) <= seed < 2**63
        ):
            raise ValueError(f"seed must be None or an integer of 64 bits, got {seed!r}")
        self.seed = None if seed is None else int(seed)
        self._dropout_seed = random.randint(1, 2**31 - 1) if seed is None else self.seed
        self.time_major = bool(time_major)
        self.return_sequences = bool(return_sequences)
        self.return_state = bool(return_state)
        self.stateful = bool(stateful)
        self.go_backwards = bool(go_backwards)
        self.zero_output_for_mask = bool(zero_output_for_mask)
        self.use_bias = bool(use_bias)
        for argument, given in (
            ("kernel_initializer", kernel_initializer),
            ("recurrent_initializer", recurrent_initializer),
            ("bias_initializer", bias_initializer),
        ):
            setattr(self, argument, variables.get_initializer(given, self.gates, argument))
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.recurrent_constraint = keras.constraints.get(recurrent_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)

        self.supports_masking = True
        # The CudnnRNN ops have no XLA kernels; Keras asks this at compile(), before the layer is
        # built.
        self.supports_jit = False
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self._states = None

    @property
    def num_directions(self):
        return 2 if self.direction == "bidirectional" else 1

    @property
    def output_width(self):
        """R, the width of one direction's output."""
        return self.units

    @property
    def state_size(self):
        """The width of each state, in the flat order."""
        one = [self.output_width, self.units] if self.rnn_mode == "lstm" else [self.units]
        return one * (self.num_layers * self.num_directions)

    @property
    def pseudo_layers(self):
        """The variables of a built layer, a `PseudoLayer` for each layer and direction."""
        return [
            pseudo_layers.get_variables(self, pseudo_layer)
            for pseudo_layer in range(self.num_layers * self.num_directions)
        ]

    @property
    def states(self):
        """The state variables of a stateful, built layer, in the flat order, else None."""
        return None if self._states is None else list(self._states.values)

    def build(self, input_shape):
        input_shape = tuple(input_shape)
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                f"{self.name}: inputs must be of rank 3 with a known last dimension, "
                f"got shape {input_shape}"
            )
        self.input_size = input_shape[-1]
        can_skip = self.input_size == self.units and not self.projects
        if self.input_mode == "skip_input" and not can_skip:
            raise ValueError(
                f"{self.name}: input_mode='skip_input' requires inputs of width units={self.units} "
                f"and no projection, got width {self.input_size} and num_proj={self.num_proj}"
            )
        self.skips_input = can_skip and self.input_mode != "linear_input"
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: self.input_size})

        for pseudo_layer in range(self.num_layers * self.num_directions):
            pseudo_layers.add_variables(self, pseudo_layer)

        if self.stateful:
            batch = input_shape[self._batch_axis]
            if batch is None:
                raise ValueError(
                    f"{self.name}: stateful=True requires a static batch size, got inputs of shape "
                    f"{input_shape}; give keras.Input a batch_size"
                )
            self._states = StateVariables(self.state_size, batch, self.compute_dtype)

    @tf.autograph.experimental.do_not_convert
    def call(self, inputs, sequence_lengths=None, mask=None, initial_state=None, training=None):
        xla.refuse(self.name)
        sequences = read_sequences(
            inputs,
            sequence_lengths,
            mask,
            time_major=self.time_major,
            dtype=self.compute_dtype,
            layer=self.name,
        )
        x = sequences.values
        if self.go_backwards:
            x = reverse(x, sequences, time_major=self.time_major)
        lstm, batch_axis = self.rnn_mode == "lstm", self._batch_axis
        h, c = self._initial_state(x, initial_state)
        outputs = self._run(x, h, c, sequences.lengths, bool(training))
        final = take_apart(*outputs[1:], lstm=lstm, batch_axis=batch_axis)
        if self._states is not None:
            self._states.assign(final)

        if self.return_sequences:
            result = self._sequences_result(outputs[0], final, sequences)
        elif self.num_directions == 1:
            result = final[-2 if lstm else -1]
        else:
            hidden = final[0::2] if lstm else final
            result = tf.concat(hidden[-2:], axis=-1)
        return (result, *final) if self.return_state else result

    def _initial_state(self, x, initial_state):
        """input_h and input_c of the op."""
        batch = x.shape[self._batch_axis]
        lstm, batch_axis = self.rnn_mode == "lstm", self._batch_axis
        if initial_state is not None:
            states = read_states(
                initial_state,
                self.state_size,
                batch=batch,
                dtype=self.compute_dtype,
                layer=self.name,
            )
        elif self._states is None:
            batch = tf.shape(x)[batch_axis] if batch is None else batch
            return zeros(
                self.state_size, batch, self.compute_dtype, lstm=lstm, batch_axis=batch_axis
            )
        elif batch is not None and batch != self._states.batch:
            raise ValueError(
                f"{self.name}: a stateful layer built for batches of {self._states.batch} rows "
                f"was called with {batch}"
            )
        else:
            states = [tf.convert_to_tensor(variable) for variable in self._states.values]
        return join(states, lstm=lstm, batch_axis=batch_axis)

    def _run(self, x, h, c, lengths, training):
        weights, biases = pseudo_layers.canonical_lists(self)
        attrs = {
            "rnn_mode": self.rnn_mode,
            "input_mode": "skip_input" if self.skips_input else "linear_input",
            "direction": self.direction,
            "num_proj": self.num_proj if self.projects else 0,
        }
        params = forward.pack_params(
            weights,
            biases,
            num_layers=self.num_layers,
            num_units=self.units,
            input_size=self.input_size,
            attrs=attrs,
        )
        attrs["time_major"] = self.time_major
        if not training:
            return forward.infer(x, h, c, params, lengths, attrs=attrs)
        # Without dropout the backend has no random state to set up.
        drops = self.dropout > 0 and self.num_layers > 1
        return forward.train(
            x,
            h,
            c,
            params,
            lengths,
            attrs=attrs,
            dropout=self.dropout if drops else 0.0,
            seed=self._dropout_seed if drops else 0,
            seed2=_replica() if drops else 0,
        )

    def _sequences_result(self, output, final, sequences):
        if sequences.ragged:
            return tf.RaggedTensor.from_tensor(output, lengths=sequences.lengths)
        time_axis = 1 - self._batch_axis
        if sequences.given and self.go_backwards:
            # Padding first: turn each row's valid steps around, then the whole time axis.
            aligned = reverse(output, sequences, time_major=self.time_major)
            output = tf.reverse(aligned, [time_axis])
        elif sequences.given and not self.zero_output_for_mask and self.num_directions == 1:
            last = final[-2 if self.rnn_mode == "lstm" else -1]
            last = tf.where(sequences.lengths[:, tf.newaxis] > 0, last, tf.zeros_like(last))
            valid = valid_steps(sequences.lengths, tf.shape(output)[time_axis], self.time_major)
            output = tf.where(valid[:, :, tf.newaxis], output, tf.expand_dims(last, time_axis))
        if sequences.mask is not None:
            output._keras_mask = self._output_mask(sequences.mask)
        return output

    def _output_mask(self, mask):
        return keras.ops.flip(mask, 1 - self._batch_axis) if self.go_backwards else mask

    @property
    def _batch_axis(self):
        return 1 if self.time_major else 0

    def compute_output_shape(self, input_shape):
        batch = input_shape[self._batch_axis]
        width = self.num_directions * self.output_width
        if not self.return_sequences:
            output = (batch, width)
        else:
            output = (*input_shape[:2], width)
        if not self.return_state:
            return output
        return (output, *((batch, size) for size in self.state_size))

    def compute_output_spec(
        self, inputs, sequence_lengths=None, mask=None, initial_state=None, training=None
    ):
        shapes = self.compute_output_shape(inputs.shape)
        ragged = self.return_sequences and getattr(inputs, "ragged", False)
        if not self.return_state:
            return keras.KerasTensor(shapes, dtype=self.compute_dtype, ragged=ragged)
        return (
            keras.KerasTensor(shapes[0], dtype=self.compute_dtype, ragged=ragged),
            *(keras.KerasTensor(shape, dtype=self.compute_dtype) for shape in shapes[1:]),
        )

    def compute_mask(self, inputs, previous_mask):
        mask = keras.tree.flatten(previous_mask)[0] if previous_mask is not None else None
        if mask is not None:
            mask = self._output_mask(mask) if self.return_sequences else None
        if self.return_state:
            return [mask] + [None] * len(self.state_size)
        return mask

    def get_initial_state(self, batch_size):
        """Zeros in the flat order of the states.

        Args:
          batch_size: an integer or a scalar tensor.
        """
        return [tf.zeros([batch_size, size], self.compute_dtype) for size in self.state_size]

    def reset_state(self, states=None):
        """Sets the states of a stateful layer.

        Args:
          states: None for zeros, or tensors in the order and of the shapes of the states.

        Raises:
          ValueError: the layer is not stateful or not built, or the states do not fit.
        """
        if self._states is None:
            raise ValueError(f"{self.name}: only a stateful, built layer has states to reset")
        if states is not None:
            states = read_states(
                states,
                self.state_size,
                batch=self._states.batch,
                dtype=self.compute_dtype,
                layer=self.name,
            )
        self._states.assign(states)

    # Keras' older name for the same.
    reset_states = reset_state

    def get_config(self):
        config = super().get_config()
        for argument in (
            "units",
            "num_layers",
            "direction",
            "input_mode",
            "dropout",
            "seed",
            "time_major",
            "return_sequences",
            "return_state",
            "stateful",
            "go_backwards",
            "zero_output_for_mask",
            "use_bias",
        ):
            config[argument] = getattr(self, argument)
        for kind in ("kernel", "recurrent", "bias"):
            initializer = getattr(self, f"{kind}_initializer")
            regularizer = getattr(self, f"{kind}_regularizer")
            constraint = getattr(self, f"{kind}_constraint")
            config[f"{kind}_initializer"] = variables.serialize_initializer(initializer)
            config[f"{kind}_regularizer"] = keras.regularizers.serialize(regularizer)
            config[f"{kind}_constraint"] = keras.constraints.serialize(constraint)
        return config


def _replica():
    """The replica's number, so that replicas draw different dropout masks from one seed."""
    context = tf.distribute.get_replica_context()
    if context is None:
        return 0
    replica = tf.get_static_value(context.replica_id_in_sync_group)
    return 0 if replica is None else int(replica)


def _positive(argument, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{argument} must be an integer of at least 1, got {value!r}")
    return int(value)


def _one_of(argument, value, allowed):
    if value not in allowed:
        raise ValueError(f"{argument} must be one of {', '.join(allowed)}, got {value!r}")
    return value
