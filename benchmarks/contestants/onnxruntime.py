"""ONNX Runtime's LSTM, GRU and RNN nodes: inference only, inputs bound once."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from benchmarks.contestants import FORWARD_NAMES, Unsupported, Work

# ONNX gate -> gate of the canonical order: its lstm has i, o, f, g, its gru z, r, h.
_GATES = {"rnn_relu": (0,), "rnn_tanh": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
_OPSET = 14
_IR_VERSION = 8


def prepare(case, inputs, training, threads):
    if training:
        raise Unsupported("ONNX Runtime's CPU package does not train")
    if case.R < case.H:
        raise Unsupported("ONNX has no projection")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Its threads spin for the next node, but not into another contestant's time.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if case.dtype != "float32":
        raise Unsupported("ONNX Runtime's kernels on a CPU are for float only")
    session = onnxruntime.InferenceSession(
        _model(case, inputs).SerializeToString(), options, ["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, value in _feeds(case, inputs).items():
        binding.bind_cpu_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def call():
        session.run_with_iobinding(binding)
        return binding

    def values(result):
        return dict(zip(FORWARD_NAMES, result.copy_outputs_to_cpu(), strict=False))

    return Work(call, values)


def _feeds(case, inputs):
    feeds = {"input": inputs.input, "input_h": inputs.input_h}
    if case.rnn_mode == "lstm":
        feeds["input_c"] = inputs.input_c
    if case.lengths != "none":
        feeds["sequence_lengths"] = inputs.sequence_lengths
    return feeds


def _model(case, inputs):
    """A model of the case: its inputs and outputs have the ops' names and shapes."""
    lstm = case.rnn_mode == "lstm"
    element = helper.np_dtype_to_tensor_dtype(case.numpy_dtype)
    feeds = _feeds(case, inputs)
    graph_inputs = [
        helper.make_tensor_value_info(
            name, TensorProto.INT32 if name == "sequence_lengths" else element, value.shape
        )
        for name, value in feeds.items()
    ]
    states = (case.L * case.D, case.B)
    shapes = {"output": (case.T, case.B, case.D * case.R), "output_h": (*states, case.R)}
    if lstm:
        shapes["output_c"] = (*states, case.H)
    graph_outputs = [
        helper.make_tensor_value_info(name, element, shape) for name, shape in shapes.items()
    ]

    nodes, initializers = [], []
    shape = np.array([case.T, case.B, case.D * case.R], np.int64)
    initializers.append(numpy_helper.from_array(shape, "output_shape"))
    splits = np.full([case.L], case.D, np.int64)
    initializers.append(numpy_helper.from_array(splits, "splits"))
    kinds = ("h", "c") if lstm else ("h",)
    for kind in kinds:
        pieces = [f"input_{kind}{layer}" for layer in range(case.L)]
        nodes.append(helper.make_node("Split", [f"input_{kind}", "splits"], pieces, axis=0))
    below = "input"
    for layer in range(case.L):
        initializers += _weights(case, inputs, layer)
        nodes.append(_node(case, layer, below, "sequence_lengths" in feeds))
        # From [T, D, B, R] to [T, B, D*R].
        below = "output" if layer == case.L - 1 else f"y{layer}"
        nodes.append(
            helper.make_node("Transpose", [f"Y{layer}"], [f"YT{layer}"], perm=[0, 2, 1, 3])
        )
        nodes.append(helper.make_node("Reshape", [f"YT{layer}", "output_shape"], [below]))
    for kind in kinds:
        pieces = [f"output_{kind}{layer}" for layer in range(case.L)]
        nodes.append(helper.make_node("Concat", pieces, [f"output_{kind}"], axis=0))
    graph = helper.make_graph(nodes, "rnn", graph_inputs, graph_outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
    model.ir_version = _IR_VERSION
    return model


def _node(case, layer, below, has_lengths):
    lstm = case.rnn_mode == "lstm"
    attributes = {
        "hidden_size": case.H,
        "direction": "bidirectional" if case.D == 2 else "forward",
    }
    if case.rnn_mode == "gru":
        attributes["linear_before_reset"] = 1
    elif not lstm:
        function = {"rnn_relu": "Relu", "rnn_tanh": "Tanh"}[case.rnn_mode]
        attributes["activations"] = [function] * case.D
    sources = [below, f"W{layer}", f"R{layer}", f"B{layer}"]
    sources += ["sequence_lengths" if has_lengths else "", f"input_h{layer}"]
    results = [f"Y{layer}", f"output_h{layer}"]
    if lstm:
        sources.append(f"input_c{layer}")
        results.append(f"output_c{layer}")
    kind = {"lstm": "LSTM", "gru": "GRU"}.get(case.rnn_mode, "RNN")
    return helper.make_node(kind, sources, results, **attributes)


def _weights(case, inputs, layer):
    """W [D, G*H, W_in], R [D, G*H, R] and B [D, 2*G*H] of the layer."""
    G = case.G
    parts = {"W": [], "R": [], "B": []}
    for p in range(case.D * layer, case.D * (layer + 1)):
        weights = inputs.weights[p * 2 * G : (p + 1) * 2 * G]
        biases = inputs.biases[p * 2 * G : (p + 1) * 2 * G]
        order = _GATES[case.rnn_mode]
        parts["W"].append(np.concatenate([weights[g] for g in order]))
        parts["R"].append(np.concatenate([weights[G + g] for g in order]))
        parts["B"].append(np.concatenate([biases[b + g] for b in (0, G) for g in order]))
    return [
        numpy_helper.from_array(np.stack(pieces), f"{name}{layer}")
        for name, pieces in parts.items()
    ]
