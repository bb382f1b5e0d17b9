"""raw_ops: the functions, as an interface. What they compute is tested elsewhere."""

import inspect
import re

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tf_cudnn_rnn_ops import raw_ops


@pytest.fixture(params=raw_ops.__all__)
def name(request):
    return request.param


def test_all_ops_are_here():
    assert set(raw_ops.__all__) == {op for op in dir(tf.raw_ops) if op.startswith("CudnnRNN")}


def test_signature(name):
    ours = inspect.signature(getattr(raw_ops, name)).parameters
    stock = inspect.signature(getattr(tf.raw_ops, name)).parameters
    assert {key: each.default for key, each in ours.items()} == {
        key: each.default for key, each in stock.items()
    }
    assert list(ours) == list(stock)
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in ours.values())


def test_positional_arguments_are_refused(name):
    with pytest.raises(TypeError, match="positional"):
        getattr(raw_ops, name)(1, 2, 3)


def test_every_argument_and_result_is_documented(name):
    function = getattr(raw_ops, name)
    text = inspect.getdoc(function)
    assert function.__name__ == name
    head, arguments = text.split("Args:\n")
    arguments, returns = arguments.split("Returns:\n")
    returns, errors = returns.split("Raises:\n")
    assert re.match(r"[A-Z][^\n]*\.\n\n?", head)
    documented = re.findall(r"^  (\w+(?:, \w+)*):", arguments, re.MULTILINE)
    documented = [each for line in documented for each in line.split(", ")]
    assert sorted(documented) == sorted(inspect.signature(function).parameters)
    for result in op_def_registry.get(name).output_arg:
        assert re.search(rf"\b{result.name}\b", returns)
    assert "tf.errors.InvalidArgumentError" in errors


def test_returns_what_tensorflow_returns():
    arguments = {"num_layers": 1, "num_units": 2, "input_size": 3}
    size = raw_ops.CudnnRNNParamsSize(**arguments, T=tf.half, S=tf.int64, name="size")
    assert size.dtype == tf.int64
    assert size.numpy().tolist() == [56]
    lists = raw_ops.CudnnRNNParamsToCanonical(**arguments, params=tf.range(56.0), num_params=8)
    assert type(lists).__name__ == "CudnnRNNParamsToCanonical"
    assert len(lists.weights) == len(lists.biases) == 8


def test_works_in_place_of_stock():
    # The same op: a graph has TensorFlow's own name for it, and nothing of ours.
    with tf.Graph().as_default() as graph:
        raw_ops.CudnnRNNParamsSize(
            num_layers=1, num_units=2, input_size=3, T=tf.half, S=tf.int32, name="size"
        )
        operation = graph.get_operation_by_name("size")
    assert operation.type == "CudnnRNNParamsSize"
