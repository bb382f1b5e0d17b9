"""The four layers: what is particular to each mode."""

import numbers

import keras

from .base import CudnnRNNBase

_PACKAGE = "tf_cudnn_rnn_ops"


@keras.saving.register_keras_serializable(package=_PACKAGE)
class CudnnLSTM(CudnnRNNBase):
    """Stacked, optionally bidirectional LSTM, optionally with a projection.

    i, f, o = sigmoid(.), g = tanh(.); c' = f c + i g; h' = o tanh(c'); with a projection the
    emitted and recurrent state is P h'. The gates' order in every variable is i, f, g, o. The final
    and initial states of each pseudo-layer are h [batch, num_proj or units], then c [batch, units].

    Args (beside those of `CudnnRNNBase`):
      num_proj: width of the projected output and recurrent state, 1 to `units`; None, 0 and `units`
        mean no projection.
      unit_forget_bias: whether the forget gate's bias starts at one.
      projection_initializer, projection_regularizer, projection_constraint: for the projection
        kernel [num_proj, units], seen transposed.
    """

    rnn_mode = "lstm"
    gates = 4

    def __init__(
        self,
        units,
        num_layers=1,
        direction="unidirectional",
        *,
        num_proj=None,
        unit_forget_bias=True,
        projection_initializer="glorot_uniform",
        projection_regularizer=None,
        projection_constraint=None,
        **kwargs,
    ):
        super().__init__(units, num_layers, direction, **kwargs)
        if num_proj is not None and not (
            isinstance(num_proj, numbers.Integral)
            and not isinstance(num_proj, bool)
            and 0 <= num_proj <= self.units
        ):
            raise ValueError(f"num_proj must be None or 0 to units={self.units}, got {num_proj!r}")
        self.num_proj = None if num_proj is None else int(num_proj)
        self.unit_forget_bias = bool(unit_forget_bias)
        self.projection_initializer = keras.initializers.get(projection_initializer)
        self.projection_regularizer = keras.regularizers.get(projection_regularizer)
        self.projection_constraint = keras.constraints.get(projection_constraint)

    @property
    def projects(self):
        return bool(self.num_proj) and self.num_proj < self.units

    @property
    def output_width(self):
        return self.num_proj if self.projects else self.units

    @property
    def ones_gate(self):
        return 1 if self.unit_forget_bias else None

    def get_config(self):
        return {
            **super().get_config(),
            "num_proj": self.num_proj,
            "unit_forget_bias": self.unit_forget_bias,
            "projection_initializer": keras.initializers.serialize(self.projection_initializer),
            "projection_regularizer": keras.regularizers.serialize(self.projection_regularizer),
            "projection_constraint": keras.constraints.serialize(self.projection_constraint),
        }


@keras.saving.register_keras_serializable(package=_PACKAGE)
class CudnnGRU(CudnnRNNBase):
    """Stacked, optionally bidirectional GRU.

    r, u = sigmoid(.); n = tanh(Wn x + bWn + r (Rn h + bRn)); h' = (1 - u) n + u h, which is
    keras.layers.GRU with reset_after=True and torch.nn.GRU. The gates' order in every variable is
    r, u, n.
    """

    rnn_mode = "gru"
    gates = 3
    both_biases = True


@keras.saving.register_keras_serializable(package=_PACKAGE)
class CudnnRNNTanh(CudnnRNNBase):
    """Stacked, optionally bidirectional simple RNN: h' = tanh(W x + bW + R h + bR)."""

    rnn_mode = "rnn_tanh"
    gates = 1


@keras.saving.register_keras_serializable(package=_PACKAGE)
class CudnnRNNRelu(CudnnRNNBase):
    """Stacked, optionally bidirectional simple RNN: h' = max(0, W x + bW + R h + bR)."""

    rnn_mode = "rnn_relu"
    gates = 1
