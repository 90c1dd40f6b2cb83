"""Every example runs, and says what the documentation says it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SAYS = {
    "blocks": ["same bits as one pass: True"],
    "certificate": ["the best fixed weights have 0.3500", "and it was 0.0039", "Bound(SVA"],
    "checkpoint": ["1000 events, rows [0, 1000]", "same bits as without a stop: True", "bit: its bytes are not those"],
    "covariance": ["implicit, full                0.283", "difference   0.033 ± 0.1813"],
    "default": ["below   4.4", "89.9% of the labels", "964 ± 3, the price itself between 950 and 977", "adds -1.05 ± 0.13"],
    "drift": ["plain               0.984          0.274", "robust=5            1.026          0.006"],
    "own_loss": ["weights"],
    "sklearn_pipeline": ["one pass: accuracy 0.974", "log-loss 0.080", "to the bit: True"],
    "river_pipeline": ["Accuracy: 87.74%", "{'score': None}  0.31"],
    "toy": ["certified to 6e-06", "NGVI           0.3515"],
    "units": ["average loss 0.597", "age          0.04776", "log-odds  0.73 ± 0.98"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(example)], capture_output=True, text=True, check=True)
    assert all(words in done.stdout for words in SAYS[example.stem]), done.stdout
