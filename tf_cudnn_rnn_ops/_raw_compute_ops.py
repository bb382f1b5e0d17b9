"""raw_ops: forward and backprop. The letters of the shapes are explained in raw_ops.py."""

import tensorflow as tf

from tf_cudnn_rnn_ops import _load

_load.load()


def CudnnRNN(
    *,
    input,
    input_h,
    input_c,
    params,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    is_training=True,
    name=None,
):
    """Runs a recurrent network over whole sequences, all rows of the batch equally long.

    The first version of the op: time-major, no `sequence_lengths`, no projection. `CudnnRNNV3` does
    the same and more.

    Args:
      input: [T, B, I].
      input_h: [L*D, B, H], the states to begin with.
      input_c: [L*D, B, H], the LSTM's cell states to begin with. Other modes ignore it, whatever
        its shape.
      params: [CudnnRNNParamsSize], weights and biases.
      rnn_mode: "rnn_relu", "rnn_tanh", "lstm" or "gru".
      input_mode: "linear_input", "skip_input" or "auto_select"; see `CudnnRNNV3`.
      direction: "unidirectional" or "bidirectional".
      dropout: probability, in [0, 1), that a value passed from one layer to the next is dropped.
      seed, seed2: the two halves of the seed of dropout.
      is_training: whether to drop values and to keep what the gradient needs.
      name: a name for the operation.

    Returns:
      A named tuple of
      output: [T, B, D*H].
      output_h: [L*D, B, H], the states after the last step.
      output_c: [L*D, B, H]; of other modes than lstm [0].
      reserve_space: [?], for CudnnRNNBackprop; [0] when is_training is false.

    Raises:
      tf.errors.InvalidArgumentError: a shape or an attribute does not fit.
    """
    return tf.raw_ops.CudnnRNN(
        input=input,
        input_h=input_h,
        input_c=input_c,
        params=params,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        is_training=is_training,
        name=name,
    )


def CudnnRNNV2(
    *,
    input,
    input_h,
    input_c,
    params,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    is_training=True,
    name=None,
):
    """CudnnRNN with one more output, `host_reserved`.

    Args:
      input: [T, B, I].
      input_h: [L*D, B, H], the states to begin with.
      input_c: [L*D, B, H], the LSTM's cell states to begin with; ignored by other modes.
      params: [CudnnRNNParamsSize], weights and biases.
      rnn_mode, input_mode, direction, dropout, seed, seed2, is_training: as those of CudnnRNN.
      name: a name for the operation.

    Returns:
      A named tuple of
      output, output_h, output_c, reserve_space: as those of CudnnRNN.
      host_reserved: int8 [?], in host memory, for CudnnRNNBackpropV2; empty unless the device
        needs it.

    Raises:
      tf.errors.InvalidArgumentError: a shape or an attribute does not fit.
    """
    return tf.raw_ops.CudnnRNNV2(
        input=input,
        input_h=input_h,
        input_c=input_c,
        params=params,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        is_training=is_training,
        name=name,
    )


def CudnnRNNV3(
    *,
    input,
    input_h,
    input_c,
    params,
    sequence_lengths,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    num_proj=0,
    is_training=True,
    time_major=True,
    name=None,
):
    """Runs a recurrent network over a batch of sequences, each with a length of its own.

    A network of L layers in D directions has L*D cells; their states are numbered D*layer +
    direction, forward before backward. A row of length n is computed as if it were alone and had n
    steps: the backward direction begins at its step n-1, its outputs beyond n are zero, and
    output_h and output_c are the states at its own last step. Length 0 hands the states through.

    Args:
      input: [T, B, I], or [B, T, I] when time_major is false. T and B may be 0.
      input_h: [L*D, B, R], or [B, L*D, R]: the states to begin with. L comes from here.
      input_c: [L*D, B, H], or [B, L*D, H]: the LSTM's cell states to begin with. Other modes ignore
        it, whatever its shape.
      params: [CudnnRNNParamsSize], weights and biases; CudnnRNNCanonicalToParamsV2 makes it.
      sequence_lengths: int32 [B], each in [0, T], in any order.
      rnn_mode: "rnn_relu", "rnn_tanh", "lstm" or "gru".
      input_mode: "linear_input": the first layer multiplies its input by weights. "skip_input": it
        adds its input to every gate as it is, which takes I = H and no projection. "auto_select":
        skip_input where that is possible, else linear_input.
      direction: "unidirectional" or "bidirectional".
      dropout: probability, in [0, 1), that a value passed from one layer to the next is dropped
        while training; values kept are scaled by 1 / (1 - dropout).
      seed, seed2: the two halves of the seed of dropout. Each call of one node draws anew; a
        program that runs twice draws the same.
      num_proj: width of the state that an LSTM projects its output to, at most H; 0 and H:
        no projection.
      is_training: whether to drop values and to keep what the gradient needs. The gradient of an op
        with is_training=False is refused; is_training=True with dropout=0 has the same values.
      time_major: whether time or the batch is the first dimension of input and output, and
        likewise L*D or the batch that of the states.
      name: a name for the operation.

    Returns:
      A named tuple of
      output: [T, B, D*R], or [B, T, D*R]: the last layer's states, forward before backward.
      output_h: shaped as input_h, the states at each row's last step.
      output_c: shaped as input_c; of other modes than lstm [0].
      reserve_space: [?], opaque, for CudnnRNNBackpropV3; [0] when is_training is false.
      host_reserved: int8 [?], in host memory, likewise; empty unless the device needs it.

    Raises:
      tf.errors.InvalidArgumentError: a shape, a length or an attribute does not fit.
    """
    return tf.raw_ops.CudnnRNNV3(
        input=input,
        input_h=input_h,
        input_c=input_c,
        params=params,
        sequence_lengths=sequence_lengths,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        num_proj=num_proj,
        is_training=is_training,
        time_major=time_major,
        name=name,
    )


def CudnnRNNBackprop(
    *,
    input,
    input_h,
    input_c,
    params,
    output,
    output_h,
    output_c,
    output_backprop,
    output_h_backprop,
    output_c_backprop,
    reserve_space,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    name=None,
):
    """The gradient of CudnnRNN.

    Args:
      input, input_h, input_c, params: the inputs of the forward op.
      output, output_h, output_c: its outputs. Other modes than lstm ignore output_c.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of these, of the same
        shapes. Other modes than lstm ignore output_c_backprop.
      reserve_space: the forward op's, as it made it with is_training=True. It stays as it is, so
        that it can be used again.
      rnn_mode, input_mode, direction, dropout, seed, seed2: the forward op's.
      name: a name for the operation.

    Returns:
      A named tuple of input_backprop, input_h_backprop, input_c_backprop and params_backprop, the
      gradients of the four inputs, shaped as these. input_c_backprop is zero unless rnn_mode is
      lstm.

    Raises:
      tf.errors.InvalidArgumentError: a shape or an attribute does not fit, or reserve_space is not
        of a forward op of this configuration and these shapes.
    """
    return tf.raw_ops.CudnnRNNBackprop(
        input=input,
        input_h=input_h,
        input_c=input_c,
        params=params,
        output=output,
        output_h=output_h,
        output_c=output_c,
        output_backprop=output_backprop,
        output_h_backprop=output_h_backprop,
        output_c_backprop=output_c_backprop,
        reserve_space=reserve_space,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        name=name,
    )


def CudnnRNNBackpropV2(
    *,
    input,
    input_h,
    input_c,
    params,
    output,
    output_h,
    output_c,
    output_backprop,
    output_h_backprop,
    output_c_backprop,
    reserve_space,
    host_reserved,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    name=None,
):
    """The gradient of CudnnRNNV2.

    Args:
      input, input_h, input_c, params: the inputs of the forward op.
      output, output_h, output_c: its outputs.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of these, of the same
        shapes.
      reserve_space, host_reserved: the forward op's, as it made them with is_training=True.
      rnn_mode, input_mode, direction, dropout, seed, seed2: the forward op's.
      name: a name for the operation.

    Returns:
      A named tuple of input_backprop, input_h_backprop, input_c_backprop and params_backprop, as
      those of CudnnRNNBackprop.

    Raises:
      tf.errors.InvalidArgumentError: a shape or an attribute does not fit, or reserve_space is not
        of a forward op of this configuration and these shapes.
    """
    return tf.raw_ops.CudnnRNNBackpropV2(
        input=input,
        input_h=input_h,
        input_c=input_c,
        params=params,
        output=output,
        output_h=output_h,
        output_c=output_c,
        output_backprop=output_backprop,
        output_h_backprop=output_h_backprop,
        output_c_backprop=output_c_backprop,
        reserve_space=reserve_space,
        host_reserved=host_reserved,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        name=name,
    )


def CudnnRNNBackpropV3(
    *,
    input,
    input_h,
    input_c,
    params,
    sequence_lengths,
    output,
    output_h,
    output_c,
    output_backprop,
    output_h_backprop,
    output_c_backprop,
    reserve_space,
    host_reserved,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    num_proj=0,
    time_major=True,
    name=None,
):
    """The gradient of CudnnRNNV3.

    Args:
      input, input_h, input_c, params, sequence_lengths: the inputs of the forward op.
      output, output_h, output_c: its outputs. Other modes than lstm ignore output_c.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of these, of the same
        shapes. What output_backprop holds beyond a row's length counts for nothing. Other modes
        than lstm ignore output_c_backprop.
      reserve_space, host_reserved: the forward op's, as it made them with is_training=True. They
        stay as they are, so that they can be used again.
      rnn_mode, input_mode, direction, dropout, seed, seed2, num_proj, time_major: the forward op's.
      name: a name for the operation.

    Returns:
      A named tuple of
      input_backprop: shaped as input; zero beyond each row's length.
      input_h_backprop: shaped as input_h; a row of length 0 hands output_h_backprop through.
      input_c_backprop: shaped as input_c; zero unless rnn_mode is lstm.
      params_backprop: shaped as params.

    Raises:
      tf.errors.InvalidArgumentError: a shape, a length or an attribute does not fit, or
        reserve_space is not of a forward op of this configuration, these shapes and lengths.
    """
    return tf.raw_ops.CudnnRNNBackpropV3(
        input=input,
        input_h=input_h,
        input_c=input_c,
        params=params,
        sequence_lengths=sequence_lengths,
        output=output,
        output_h=output_h,
        output_c=output_c,
        output_backprop=output_backprop,
        output_h_backprop=output_h_backprop,
        output_c_backprop=output_c_backprop,
        reserve_space=reserve_space,
        host_reserved=host_reserved,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        num_proj=num_proj,
        time_major=time_major,
        name=name,
    )
