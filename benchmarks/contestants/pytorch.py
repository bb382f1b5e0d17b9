"""PyTorch's nn.LSTM, nn.GRU and nn.RNN, eager as they are mostly used; lengths as packed sequences.

The same class in double (tests/torch_oracle.py) is what every contestant's values are held against.
"""

import numpy as np
import torch

import torch_oracle
from benchmarks.contestants import BACKWARD_NAMES, FORWARD_NAMES, Work


def prepare(case, inputs, training, threads):
    del threads  # Set for the process.
    lstm = case.rnn_mode == "lstm"
    module, canonical = torch_oracle.make_module(case, inputs)
    dtype = torch.from_numpy(inputs.input).dtype
    module = module.to(dtype).train(training).requires_grad_(training)
    parameters = list(module.parameters())

    def tensor(array):
        return torch.tensor(array, requires_grad=training)

    x, h = tensor(inputs.input), tensor(inputs.input_h)
    states = (h, tensor(inputs.input_c)) if lstm else (h,)
    lengths = None if case.lengths == "none" else torch.tensor(inputs.sequence_lengths)
    backprops = [torch.tensor(inputs.output_backprop), torch.tensor(inputs.output_h_backprop)]
    if lstm:
        backprops.append(torch.tensor(inputs.output_c_backprop))

    def forward():
        sequence = x
        if lengths is not None:
            sequence = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, final = module(sequence, states if lstm else h)
        if lengths is not None:
            output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=case.T)
        return [output, *(final if lstm else [final])]

    def infer():
        with torch.inference_mode():
            return forward()

    def train():
        results = forward()
        sources = [x, *states, *parameters]
        return results + list(torch.autograd.grad(results, sources, backprops))

    outputs = 1 + len(states)

    def values(result):
        result = [each.detach().numpy() for each in result]
        named = dict(zip(FORWARD_NAMES, result[:outputs], strict=False))
        if training:
            named.update(zip(BACKWARD_NAMES, result[outputs : 2 * outputs], strict=False))
            gradients = dict(zip(map(id, parameters), result[2 * outputs :], strict=True))
            parts = [gradients[id(parameter)][rows] for parameter, rows, _ in canonical]
            named["params_backprop"] = np.concatenate([part.reshape(-1) for part in parts])
        return named

    return Work(train if training else infer, values)
