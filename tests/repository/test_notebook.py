"""The notebook runs from its first cell to its last, and what a notebook shows is HTML that holds no more than it should.

Cells are run by Python itself, as a kernel would: a kernel and its client would weigh more than all that the tests need.
"""

from __future__ import annotations

import ast
import json
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from recipes import ROOT

import onlinevi as ovi

NOTEBOOK = ROOT / "examples" / "first_hour.ipynb"


def shown_by(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # type: ignore[attr-defined]


def test_the_notebook_runs() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells)
    names: dict[str, Any] = {}
    values = [shown_by("".join(cell["source"]), names) for cell in cells]
    kept, parts, said, words, certified, one = values[2], values[3], values[4], values[5], values[6], values[7]
    assert kept["id"].tolist() == ["flat 300", "flat 301", "flat 302", "flat 303"]
    assert list(parts.columns) == ["score", "base", "from_size", "from_town", "from_listed"]
    assert len(said) == 3
    assert words.endswith("400 rows learned from")
    assert "fixed weights" in certified.sentence
    assert one["lower"] < one["prediction"] < one["upper"]
    assert values[1]._repr_html_().startswith("<div><strong>Model</strong>")


class Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"style"}
        assert "color" not in str(attrs), "a ground of any colour"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def trace() -> ovi.Trace:
    X = np.random.default_rng(0).standard_normal((40, 2))
    return ovi.learn(X, np.sign(X[:, 0]), loss=ovi.Hinge(), rule=ovi.SVB())


def test_what_notebooks_show_is_escaped_and_without_scripts(trace: ovi.Trace) -> None:
    evil = "<script>alert(1)</script>"
    rows = [{"a": float(k % 7), evil: "x" * (k % 2), "y": evil if k % 7 > 3 else "no"} for k in range(60)]
    model = ovi.fit(rows, target="y", rule="implicit")
    several = ovi.fit([row | {"y": "abc"[k % 3]} for k, row in enumerate(rows)], target="y", rule="implicit")
    begun = trace.learner.init(2)
    shown = [model, ovi.Model(evil), model.certificate, model.state, several, several.state, trace, trace.state, begun]
    shown += [trace.forecast, trace.forecast.row(0), ovi.certificate(trace), ovi.certificate(unbounded())]
    shown += [several.learner.forecast(several.state, np.zeros((2, several.job.schema.width)))]
    for one in shown:
        page = Reader(one._repr_html_())
        assert not page.open
        assert set(page.tags) <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    page = Reader(model._repr_html_())
    assert evil in page.text
    assert "category" in page.text
    assert "within(radius)" in Reader(ovi.certificate(unbounded())._repr_html_()).text


def unbounded() -> Any:
    learner = ovi.Linear(ovi.Squared(), ovi.Implicit(), ovi.FullCovariance(box=None))
    return learner.update_many(learner.init(1), np.ones((5, 1)), np.ones(5))[0]


def test_traces_and_forecasts_as_tables(trace: ovi.Trace) -> None:
    frame = trace.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["prediction"].tolist() == trace.forecast.prediction.tolist()
    assert frame["average_loss"].tolist() == trace.average_loss.tolist()
    assert isinstance(trace.to_frame("polars"), pl.DataFrame)
    assert isinstance(trace.to_frame("pyarrow"), pa.Table)
    one = trace.forecast.row(3).to_frame()
    assert one["prediction"].tolist() == trace.forecast.prediction[3:4].tolist()
    X = np.random.default_rng(1).standard_normal((60, 2))
    several = ovi.OneVsRest(ovi.Linear(ovi.Logistic(), ovi.SVB()), 3)
    _, told = several.update_many(several.init(2), X, np.arange(60) % 3)
    table = told.forecast.to_frame()
    assert table.filter(like="probability_").shape == (60, 3)
    assert {"step", "loss", "prediction_0"} <= {*told.to_frame().columns}
    thinned = ovi.learn(X, np.sign(X[:, 0]), loss=ovi.Hinge(), rule=ovi.SVB(), record="none")
    assert len(thinned.to_frame()) == 0
    with pytest.raises(ValueError, match="needs 'pandas', 'polars', 'pyarrow'"):
        trace.to_frame("excel")
