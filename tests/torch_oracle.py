"""A Case computed by PyTorch: nn.LSTM, nn.GRU or nn.RNN, packed sequences, autograd.

PyTorch names the same gates in the same order as the canonical lists, so each of its tensors is a
concatenation of canonical pieces. What it lacks is emulated: skip_input by identity matrices, rows
of length 0 by leaving them out of the batch.
"""

import functools

import numpy as np
import torch

FORWARD_NAMES = ("output", "output_h", "output_c")
BACKWARD_NAMES = ("input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop")


def run(case, inputs):
    """Returns a dictionary of NumPy arrays with FORWARD_NAMES and BACKWARD_NAMES, as the ops'."""
    time_major = [inputs.input, inputs.input_h, inputs.input_c]
    backprops = [inputs.output_backprop, inputs.output_h_backprop, inputs.output_c_backprop]
    if not case.time_major:
        time_major = [np.swapaxes(array, 0, 1) for array in time_major]
        backprops = [np.swapaxes(array, 0, 1) if array.size else array for array in backprops]
    x, h, c = time_major
    dy, dh, dc = backprops
    lstm = case.rnn_mode == "lstm"

    module, canonical = make_module(case, inputs)
    rows = np.flatnonzero(inputs.sequence_lengths)
    output = np.zeros((case.T, case.B, case.D * case.R))
    input_backprop = np.zeros(x.shape)
    # A row of length 0 hands its state through, and the gradient of the state back.
    output_h, input_h_backprop = h.copy(), dh.copy()
    output_c = c.copy() if lstm else np.zeros([0])
    input_c_backprop = dc.copy() if lstm else np.zeros(c.shape)

    if rows.size:
        x_t = torch.tensor(x[:, rows], requires_grad=True)
        h_t = torch.tensor(h[:, rows], requires_grad=True)
        c_t = torch.tensor(c[:, rows], requires_grad=True)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x_t, torch.tensor(inputs.sequence_lengths[rows]), enforce_sorted=False
        )
        result, state = module(packed, (h_t, c_t) if lstm else h_t)
        y_t, _ = torch.nn.utils.rnn.pad_packed_sequence(result, total_length=case.T)
        final_h, final_c = state if lstm else (state, None)
        loss = (y_t * torch.tensor(dy[:, rows])).sum()
        loss = loss + (final_h * torch.tensor(dh[:, rows])).sum()
        if lstm:
            loss = loss + (final_c * torch.tensor(dc[:, rows])).sum()
        loss.backward()

        output[:, rows] = y_t.detach().numpy()
        output_h[:, rows] = final_h.detach().numpy()
        input_backprop[:, rows] = x_t.grad.numpy()
        input_h_backprop[:, rows] = h_t.grad.numpy()
        if lstm:
            output_c[:, rows] = final_c.detach().numpy()
            input_c_backprop[:, rows] = c_t.grad.numpy()

    # Of the identity matrices of skip_input no gradient is wanted.
    gradients = [
        np.zeros(shape) if tensor.grad is None else tensor.grad.numpy()[where].reshape(shape)
        for tensor, where, shape in canonical
    ]
    results = [output, output_h, output_c, input_backprop, input_h_backprop, input_c_backprop]
    if not case.time_major:
        results = [np.swapaxes(array, 0, 1) if array.ndim == 3 else array for array in results]
    results.append(np.concatenate([gradient.reshape(-1) for gradient in gradients]))
    return dict(zip(FORWARD_NAMES + BACKWARD_NAMES, results, strict=True))


@functools.cache
def expected(case, seed=0):
    """run() on the case's own inputs, computed once."""
    return run(case, case.make_inputs(seed))


def make_module(case, inputs):
    """The module, and for each canonical weight and bias its (tensor, rows, shape) in it."""
    kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(case.rnn_mode, torch.nn.RNN)
    extra = {}
    if case.rnn_mode in ("rnn_relu", "rnn_tanh"):
        extra["nonlinearity"] = case.rnn_mode.removeprefix("rnn_")
    projects = 0 < case.num_proj < case.H
    if projects:
        extra["proj_size"] = case.num_proj
    module = kind(
        case.I,
        case.H,
        num_layers=case.L,
        bidirectional=case.D == 2,
        dtype=torch.float64,
        **extra,
    )

    G, H = case.G, case.H
    matrices = 2 * G + projects
    gate_rows = [slice(g * H, (g + 1) * H) for g in range(G)]
    weight_places, bias_places = [], []
    with torch.no_grad():
        for p in range(case.L * case.D):
            suffix = f"_l{p // case.D}" + ("_reverse" if p % case.D else "")
            weights = inputs.weights[p * matrices : (p + 1) * matrices]
            biases = inputs.biases[p * 2 * G : (p + 1) * 2 * G]
            w_ih, w_hh = (
                getattr(module, "weight_ih" + suffix),
                getattr(module, "weight_hh" + suffix),
            )
            b_ih, b_hh = getattr(module, "bias_ih" + suffix), getattr(module, "bias_hh" + suffix)
            if weights[0].shape[1] == 0:
                w_ih.copy_(torch.eye(H, dtype=torch.float64).repeat(G, 1))
                weight_places += [(w_ih, slice(0, 0), (H, 0))] * G
            else:
                w_ih.copy_(torch.tensor(np.concatenate(weights[:G])))
                weight_places += [(w_ih, rows, weights[0].shape) for rows in gate_rows]
            w_hh.copy_(torch.tensor(np.concatenate(weights[G : 2 * G])))
            weight_places += [(w_hh, rows, weights[G].shape) for rows in gate_rows]
            if projects:
                w_hr = getattr(module, "weight_hr" + suffix)
                w_hr.copy_(torch.tensor(weights[2 * G]))
                weight_places.append((w_hr, slice(None), weights[2 * G].shape))
            b_ih.copy_(torch.tensor(np.concatenate(biases[:G])))
            b_hh.copy_(torch.tensor(np.concatenate(biases[G:])))
            bias_places += [(b_ih, rows, (H,)) for rows in gate_rows]
            bias_places += [(b_hh, rows, (H,)) for rows in gate_rows]
    return module, weight_places + bias_places
