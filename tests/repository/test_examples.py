"""Every example runs, and says what the documentation says it says."""

from __future__ import annotations

import io
import re
import runpy
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from helpers.brokers import LACKS_REDIS, redis_is_here
from recipes import PAGE, ROOT, printed, settled, shown
from scipy.stats import norm

from onlinevi import checks, datasets

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "blocks": ["same bits as one pass: True"],
    "certificate": ["the best fixed weights have 0.3500", "and it was 0.0039", "Bound(SVA"],
    "checkpoint": ["1000 events, rows [0, 1000]", "same bits as without a stop: True", "bit: its bytes are not those"],
    "covariance": ["implicit, full                0.283", "difference   0.033 ± 0.1813"],
    "curves": [
        "columns alone   44.2% wrong",
        "100 waves        9.1% wrong",
        "against 103 features (Fourier",
        "columns matter as 15 : 18",
    ],
    "costs": ["was,benign,malignant", "decisions cost", "where the likeliest class would have cost", "'cost_of_guess'"],
    "default": ["below   4.4", "89.9% of the labels", "964 ± 3, the price itself between 950 and 977", "adds -1.05 ± 0.13"],
    "density": [
        "regret 0.0331, certified 0.0873, by theorem 2 before any number came 0.1635",
        "regret -0.0010, certified 0.0835",
    ],
    "drift": ["plain               0.984          0.274", "robust=5            1.026          0.006"],
    "front_door": ["92% of the prices within them", "the same forecasts: True"],
    "kafka_topics": ["resumed behind 400 events", "1 bad row left out", " {'row': ", "'text': 'not JSON'", "'offset': "],
    "redis_streams": ["is away", "is back", "Every one of 600 rows", "30 entries are gone that were not read", "ended with 2"],
    "fleet": ["Fleet(shards=8, rounds=1, events=2000)", "attempts at part-3: 2", "the same bits: True"],
    "serve": ["and all of them are there", "right a day ahead", "the same model in Python: Model(target='up'"],
    "softmax": ["1000 to  1100:  6.0% wrong", "90.3% of the kinds", "by more than 0.053"],
    "student": ["Student  svb    loss 0.3546  regret 0.0152  certified 0.0467", "Gaussian sva    loss 0.3643"],
    "toy": ["certified to 6e-06", "NGVI           0.3515"],
    "units": ["average loss 0.597", "age          0.04776", "log-odds  0.73 ± 0.98"],
}


LONG = {
    "bandit",
    "certificate",
    "checkpoint",
    "compose",
    "costs",
    "covariance",
    "crash",
    "credit",
    "curves",
    "default",
    "drift",
    "front_door",
    "late_labels",
    "quantile",
    "river_pipeline",
    "sensors",
    "serve",
    "shards",
    "sklearn_pipeline",
    "softmax",
    "text",
    "toy",
}
"""They learn from thousands of rows."""
STARTS_PROCESSES = {"crash", "fleet", "redis_streams", "sensors", "serve"}
"""They print past this process: each is one of its own. The others need not start Python and its compiler anew."""
NEEDS = {"serve": "electricity"}
"""Data sets that are fetched where they are not stored."""


def printed_here(example: Path) -> str:
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        runpy.run_path(str(example), run_name="__main__")
    return told.getvalue()


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.compiled] if path.stem in LONG else []) for path in EXAMPLES],
)
def test_example(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if example.stem == "redis_streams" and not redis_is_here():
        pytest.skip(LACKS_REDIS)
    if (data := NEEDS.get(example.stem)) and not datasets.status(data).available:
        pytest.skip(f"the data set {data} is not stored here: docs/data.md says where it is looked for")
    monkeypatch.setenv("ROWS", "600")  # of the service: the whole is a matter of minutes
    monkeypatch.chdir(tmp_path)  # some go to a folder of their own
    output = (printed if example.stem in STARTS_PROCESSES else printed_here)(example)
    recipe = shown().get(example)
    if recipe is None:
        assert all(words in output for words in SAYS[example.stem]), output
    else:
        assert settled(output) == recipe, "python tools/recipes.py writes docs/recipes.md anew"


def test_the_density_of_the_example_is_what_its_closed_form_says() -> None:
    """E of its loss under N(a, v²) by quadrature, and its derivatives: ``checks.loss`` has them."""
    with redirect_stdout(io.StringIO()):
        loss = runpy.run_path(str(ROOT / "examples" / "density.py"))["NormalVariance"]()
    checks.loss(loss, compiled=False)
    assert float(loss(1.5, 0.3).value) == pytest.approx(-norm.logpdf(1.5, scale=np.exp(0.15)))
    with pytest.raises(ValueError, match="from −20 to 20"):
        loss(21.0, 0.0)


def test_recipes_quote_their_examples() -> None:
    recipes = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(recipes) == len(shown()) == 14
    for recipe in recipes:
        source = (ROOT / re.findall(r"\$ python (examples/\w+\.py)", recipe)[0]).read_text(encoding="utf-8")
        for code in re.findall(r"```python\n(.*?)```", recipe, flags=re.DOTALL):
            assert code in source, code
