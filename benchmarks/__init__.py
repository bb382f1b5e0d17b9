"""Times of the ops and the engine beside those of Keras, PyTorch and ONNX Runtime on a CPU.

`python -m benchmarks --help` from the root of the repository; docs/performance.md says what is
measured. The configurations and the oracles are those of the tests.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
