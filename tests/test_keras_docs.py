"""The Python examples of docs/keras.md run, one after the other as a reader would."""

import re
from pathlib import Path

import pytest

from run_ops import run_python

PAGE = Path(__file__).resolve().parent.parent / "docs" / "keras.md"


def test_examples(tmp_path):
    pytest.importorskip("torch")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    checks = [
        "assert [row.converted for row in report] == [True, True]",
        "assert tflite",
        "np.testing.assert_allclose(logits, model.predict([x, n]), atol=1e-6)",
    ]
    run_python(f"import os; os.chdir({str(tmp_path)!r})\n" + "\n".join(blocks + checks))
