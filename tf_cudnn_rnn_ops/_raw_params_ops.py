"""raw_ops: the ops on params. The letters of the shapes are explained in raw_ops.py."""

import tensorflow as tf

from tf_cudnn_rnn_ops import _load

_load.load()


def CudnnRNNParamsSize(
    *,
    num_layers,
    num_units,
    input_size,
    T,
    S,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    num_proj=0,
    name=None,
):
    """The number of elements of params, the same for every T and on every device.

    It is the sum over layers and directions of G*H*W_in + G*H*R + 2*G*H, and R*H more where an LSTM
    projects; W_in is I in the first layer (0 with skip_input) and D*R in the others.

    Args:
      num_layers, num_units, input_size: L, H and I, int32 scalars of at least 1.
      T: the element type of params.
      S: tf.int32 or tf.int64, the type of the result.
      rnn_mode, input_mode, direction, num_proj: as those of CudnnRNNV3.
      dropout, seed, seed2: without influence on the result.
      name: a name for the operation.

    Returns:
      params_size: S [1].

    Raises:
      tf.errors.InvalidArgumentError: a size is no scalar or below 1, an attribute does not fit it,
        or the result does not fit S.
    """
    return tf.raw_ops.CudnnRNNParamsSize(
        num_layers=num_layers,
        num_units=num_units,
        input_size=input_size,
        T=T,
        S=S,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        num_proj=num_proj,
        name=name,
    )


def CudnnRNNParamsToCanonical(
    *,
    num_layers,
    num_units,
    input_size,
    params,
    num_params,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    name=None,
):
    """Takes params apart into canonical weights and biases.

    The first version of the inverse of CudnnRNNCanonicalToParams: without projection, so that both
    lists are equally long.

    Args:
      num_layers, num_units, input_size: L, H and I, int32 scalars of at least 1.
      params: [CudnnRNNParamsSize].
      num_params: the length of either list, L*D*2*G.
      rnn_mode, input_mode, direction: as those of CudnnRNNV3.
      dropout, seed, seed2: without influence on the result.
      name: a name for the operation.

    Returns:
      A named tuple of the lists weights and biases; see CudnnRNNParamsToCanonicalV2.

    Raises:
      tf.errors.InvalidArgumentError: a size is no scalar or below 1, or num_params or the length of
        params does not fit the sizes.
    """
    return tf.raw_ops.CudnnRNNParamsToCanonical(
        num_layers=num_layers,
        num_units=num_units,
        input_size=input_size,
        params=params,
        num_params=num_params,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        name=name,
    )


def CudnnRNNParamsToCanonicalV2(
    *,
    num_layers,
    num_units,
    input_size,
    params,
    num_params_weights,
    num_params_biases,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    num_proj=0,
    name=None,
):
    """Takes params apart into canonical weights and biases.

    The lists go through the L*D cells, numbered D*layer + direction. Each cell has G input matrices
    W, then G recurrent matrices R, then, where an LSTM projects, the projection; and G biases that
    go with W, then G that go with R. The order of gates: of an lstm i, f, g, o (input, forget,
    candidate, output), of a gru r, u, n (reset, update, candidate). A gate is W x + R h + both
    biases. The inverse of CudnnRNNCanonicalToParamsV2; differentiable with respect to params.

    Args:
      num_layers, num_units, input_size: L, H and I, int32 scalars of at least 1.
      params: [CudnnRNNParamsSize].
      num_params_weights: the length of weights, L*D*2*G, with a projection L*D*(2*G + 1).
      num_params_biases: the length of biases, L*D*2*G.
      rnn_mode, input_mode, direction, num_proj: as those of CudnnRNNV3.
      dropout, seed, seed2: without influence on the result.
      name: a name for the operation.

    Returns:
      A named tuple of
      weights: the list of matrices; input [H, W_in], where W_in is I in the first layer (0 with
        skip_input) and D*R in the others; recurrent [H, R]; projection [R, H].
      biases: the list of vectors [H].

    Raises:
      tf.errors.InvalidArgumentError: a size is no scalar or below 1, or an attribute or the length
        of params does not fit the sizes.
    """
    return tf.raw_ops.CudnnRNNParamsToCanonicalV2(
        num_layers=num_layers,
        num_units=num_units,
        input_size=input_size,
        params=params,
        num_params_weights=num_params_weights,
        num_params_biases=num_params_biases,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        num_proj=num_proj,
        name=name,
    )


def CudnnRNNCanonicalToParams(
    *,
    num_layers,
    num_units,
    input_size,
    weights,
    biases,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    name=None,
):
    """Puts params together from canonical weights and biases.

    The first version of the op: without projection, so that both lists are equally long.

    Args:
      num_layers, num_units, input_size: L, H and I, int32 scalars of at least 1.
      weights: a list of L*D*2*G matrices; see CudnnRNNParamsToCanonicalV2.
      biases: a list of L*D*2*G vectors [H].
      rnn_mode, input_mode, direction: as those of CudnnRNNV3.
      dropout, seed, seed2: without influence on the result.
      name: a name for the operation.

    Returns:
      params: [CudnnRNNParamsSize].

    Raises:
      tf.errors.InvalidArgumentError: a size is no scalar or below 1, or the length of a list or the
        shape of an entry does not fit the sizes.
    """
    return tf.raw_ops.CudnnRNNCanonicalToParams(
        num_layers=num_layers,
        num_units=num_units,
        input_size=input_size,
        weights=weights,
        biases=biases,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        name=name,
    )


def CudnnRNNCanonicalToParamsV2(
    *,
    num_layers,
    num_units,
    input_size,
    weights,
    biases,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    dropout=0,
    seed=0,
    seed2=0,
    num_proj=0,
    name=None,
):
    """Puts params together from canonical weights and biases.

    The layout of params is the same on every device, but it is the canonical lists that should be
    saved: they mean the same to every library. Differentiable with respect to weights and biases.

    Args:
      num_layers, num_units, input_size: L, H and I, int32 scalars of at least 1.
      weights: a list of L*D*2*G matrices, with a projection L*D*(2*G + 1); their order and shapes
        are told in CudnnRNNParamsToCanonicalV2. With skip_input the first layer's input matrices
        [H, 0] stand in the list too.
      biases: a list of L*D*2*G vectors [H].
      rnn_mode, input_mode, direction, num_proj: as those of CudnnRNNV3.
      dropout, seed, seed2: without influence on the result.
      name: a name for the operation.

    Returns:
      params: [CudnnRNNParamsSize].

    Raises:
      tf.errors.InvalidArgumentError: a size is no scalar or below 1, or an attribute, the length of
        a list or the shape of an entry does not fit the sizes.
    """
    return tf.raw_ops.CudnnRNNCanonicalToParamsV2(
        num_layers=num_layers,
        num_units=num_units,
        input_size=input_size,
        weights=weights,
        biases=biases,
        rnn_mode=rnn_mode,
        input_mode=input_mode,
        direction=direction,
        dropout=dropout,
        seed=seed,
        seed2=seed2,
        num_proj=num_proj,
        name=name,
    )
