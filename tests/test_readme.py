"""The Python examples of the README run, one after the other as a reader would."""

import re
from pathlib import Path

from run_ops import run_python

README = Path(__file__).resolve().parent.parent / "README.md"


def test_examples(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    checks = [
        "import numpy",
        "assert result.output.shape == [10, 4, 32] and gradient.shape == [size]",
        "assert [len(weights), len(biases)] == [32, 32]",
        "assert str(report).endswith('(LSTM): converted')",
        "assert numpy.array_equal(layer.kernel_l0, converted.layers[0].kernel_l0)",
        "assert logits.shape == [16, 9]",
        "numpy.testing.assert_allclose(logits, model(inputs), atol=1e-6)",
    ]
    run_python(f"import os; os.chdir({str(tmp_path)!r})\n" + "\n".join(blocks + checks))
