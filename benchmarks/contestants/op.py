"""Ours: CudnnRNNV3 and its gradient inside a tf.function."""

import tensorflow as tf

from benchmarks import configurations
from benchmarks.contestants import BACKWARD_NAMES, FORWARD_NAMES, Work
from tf_cudnn_rnn_ops import raw_ops


def prepare(case, inputs, training, threads):
    del threads  # TensorFlow's pools have been set for the process.
    lstm = case.rnn_mode == "lstm"
    # Arguments of the function, not constants in it, which would be folded.
    names = ("input", "input_h", "input_c", "params")
    tensors = [tf.constant(getattr(inputs, name)) for name in names]
    lengths = tf.constant(inputs.sequence_lengths)
    backprops = [tf.constant(value) for value in inputs.backprops().values()]
    # output_c and input_c exist for lstm only.
    outputs = 3 if lstm else 2
    wanted = [0, 1, 2, 3] if lstm else [0, 1, 3]

    def forward(x, h, c, params, lengths):
        result = raw_ops.CudnnRNNV3(
            input=x,
            input_h=h,
            input_c=c,
            params=params,
            sequence_lengths=lengths,
            is_training=training,
            **case.attributes(),
        )
        return [result.output, result.output_h, result.output_c][:outputs]

    @tf.function(autograph=False)
    def infer(*arguments):
        return forward(*arguments)

    @tf.function(autograph=False)
    def train(x, h, c, params, lengths, *backprops):
        sources = [(x, h, c, params)[index] for index in wanted]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = forward(x, h, c, params, lengths)
        return results + tape.gradient(results, sources, output_gradients=backprops[:outputs])

    facts = {}
    if training:
        result = raw_ops.CudnnRNNV3(**inputs.forward(), **case.attributes())
        bound = configurations.reserve_bound(case, inputs.sequence_lengths)
        facts["reserve_share"] = int(tf.size(result.reserve_space)) / bound

    def call():
        if training:
            return train(*tensors, lengths, *backprops)
        return infer(*tensors, lengths)

    keys = FORWARD_NAMES[:outputs]
    if training:
        keys += tuple(BACKWARD_NAMES[index] for index in wanted)

    def values(result):
        return {key: tensor.numpy() for key, tensor in zip(keys, result, strict=True)}

    return Work(call, values, facts=facts)
