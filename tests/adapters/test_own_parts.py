"""A loss and a rule in a package outside the source tree, used from Python, scikit-learn, River and the command line.

Each use has a process of its own, as with people: what was imported once is known to every command of a process.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlinevi as ovi
from onlinevi.adapters.cli import main

PARTS = '''
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import onlinevi as ovi
from onlinevi import ns
from onlinevi.engine import Expected


@dataclass(frozen=True)
class HalfSquared(ovi.Loss):
    """(y − z)²/2."""

    name: ClassVar[str] = "half-squared"
    target: ClassVar[str] = "numbers"

    @staticmethod
    def expected(y, a, v):
        return Expected(0.5 * ((y - a) * (y - a) + v * v), a - y, 1.0)

    @staticmethod
    def valid_label(y):
        return ns.isfinite(y)


@dataclass(frozen=True)
class Margin(HalfSquared):
    """The same of labels −1 and +1; what it predicts is P(+1) − P(−1)."""

    name: ClassVar[str] = "margin"
    target: ClassVar[str] = "classes"

    @staticmethod
    def valid_label(y):
        return (y == -1.0) | (y == 1.0)

    def probability(self, a, v=0.0):
        return np.clip(0.5 + 0.5 * np.asarray(a), 0.0, 1.0)


@dataclass(frozen=True)
class Natural(ovi.Rule):
    """P' = P + rate·γ, mean' = mean − rate·g/P': the step of NGVI, at twice its rate."""

    rate: float = 2.0
    name: ClassVar[str] = "natural"

    @property
    def step_rate(self):
        return ovi.Constant(self.rate)

    def with_rate(self, c):
        return replace(self, rate=c)

    @staticmethod
    def new_belief(belief, gradient, totals, rates, prior):
        variance = belief.std * belief.std / (1.0 + rates.step * gradient.curvature * belief.std * belief.std)
        return ovi.Belief(belief.mean - rates.step * variance * gradient.mean, ns.sqrt(variance))


class Nameless(HalfSquared):
    """What no file can hold: it has no name of its own."""
'''
DATA = """
import numpy as np
draw = np.random.default_rng(3)
X = draw.standard_normal((80, 2))
y = X @ [1.0, -2.0] + 0.1 * draw.standard_normal(80)
"""
COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from onlinevi.adapters.cli import main

done = []
for call in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        done.append([main(call), out, err])
print(json.dumps([[code, out.getvalue(), err.getvalue()] for code, out, err in done]))
"""
LOSS, RULE = "--loss=parts.own:HalfSquared", "--rule=parts.own:Natural"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").touch()
    (tmp_path / "parts" / "own.py").write_text(PARTS)
    scope: dict[str, np.ndarray] = {}
    exec(DATA, scope)
    rows = [f"{a!r},{b!r},{y!r}" for (a, b), y in zip(scope["X"].tolist(), scope["y"].tolist(), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    return tmp_path


def python(folder: Path, script: str) -> str:
    done = subprocess.run([sys.executable, "-c", DATA + script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def onlinevi(folder: Path, *calls: list[str]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each call; as with the installed command, Python by itself does not see the folder."""
    call = [sys.executable, "-P", "-c", COMMANDS, json.dumps(calls)]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def test_from_python_and_to_a_file(folder: Path) -> None:
    python(
        folder,
        """
import onlinevi as ovi
from parts.own import HalfSquared, Natural
ours = ovi.learn(X, y, loss=ovi.Squared(), rule=ovi.NGVI())
trace = ovi.learn(X, y, loss=HalfSquared(), rule=Natural())
np.testing.assert_allclose(trace.prediction, ours.prediction, rtol=1e-9, atol=1e-12)
np.testing.assert_allclose(trace.loss, 0.5 * ours.loss, rtol=1e-9, atol=1e-12)
learner = ovi.Linear(HalfSquared(), Natural())
state, _ = learner.update_many(learner.init(2), X, y)
ovi.save("own.ovi", learner, state)
saved = ovi.load("own.ovi")
assert (saved.learner, saved.state) == (learner, state)
""",
    )
    with pytest.raises(ovi.checkpoint.CheckpointError, match=r"'HalfSquared'.*import it first .*--import package\.module"):
        ovi.load(folder / "own.ovi")
    python(folder, "import onlinevi as ovi, parts.own; assert ovi.load('own.ovi').state.count == 80")


def test_from_scikit_learn(folder: Path) -> None:
    python(
        folder,
        """
from onlinevi.sklearn import OnlineVIClassifier, OnlineVIRegressor
named = OnlineVIRegressor(loss="parts.own:HalfSquared", rule="parts.own:Natural").fit(X, y)
from parts.own import HalfSquared, Margin, Natural
given = OnlineVIRegressor(loss=HalfSquared(), rule=Natural()).fit(X, y)
ours = OnlineVIRegressor(rule="ngvi").fit(X, y)
assert (named.predict(X) == given.predict(X)).all()
np.testing.assert_allclose(named.predict(X), ours.predict(X), rtol=1e-9, atol=1e-12)
assert (OnlineVIRegressor(loss="half-squared", rule="natural").fit(X, y).predict(X) == given.predict(X)).all()
classes = OnlineVIClassifier(loss="parts.own:Margin", rule="parts.own:Natural").fit(X, y > 0.0)
same = OnlineVIClassifier(loss=Margin(), rule=Natural()).fit(X, y > 0.0)
assert (classes.decision_function(X) == same.decision_function(X)).all()
assert classes.score(X, y > 0.0) > 0.9
for estimator, name in ((OnlineVIRegressor, "Margin"), (OnlineVIClassifier, "HalfSquared")):
    try:
        estimator(loss=f"parts.own:{name}", rule="ngvi").fit(X, y > 0.0)
    except ValueError as error:
        assert "another estimator" in str(error), error
    else:
        raise AssertionError(f"{estimator} took {name}")
""",
    )


def test_from_river(folder: Path) -> None:
    pytest.importorskip("river", reason='river is missing: pip install "onlinevi[river]"')
    python(
        folder,
        """
import onlinevi as ovi
from onlinevi.river import OnlineVIRegressor
from parts.own import HalfSquared, Natural
own, ours = OnlineVIRegressor(HalfSquared(), Natural()), OnlineVIRegressor(ovi.Squared(), ovi.NGVI())
for row, label in zip(X, y):
    row = {"a": row[0], "b": row[1]}
    assert abs(own.predict_one(row) - ours.predict_one(row)) < 1e-9
    for model in (own, ours):
        model.learn_one(row, label)
""",
    )


def predictions(path: Path) -> list[list[float]]:
    with path.open(newline="") as file:
        return [list(map(float, row)) for row in list(csv.reader(file))[1:]]


def test_from_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "rows.csv", "--target", "y", "--no-hindsight"]
    [(code, out, err)] = onlinevi(folder, [*run, LOSS, RULE, "--out", "out", "--predictions", "own.csv", "--json"])
    assert code == 0, err
    monkeypatch.chdir(folder)
    assert main([*run, "--rule", "ngvi", "--predictions", "ours.csv"]) == 0
    own, ours = (np.array(predictions(folder / name)) for name in ("own.csv", "ours.csv"))
    np.testing.assert_allclose(own[1:, :-1], ours[1:, :-1], rtol=1e-9, atol=1e-12)  # row, prediction, std, lower, upper, label
    np.testing.assert_allclose(own[:, -1], 0.5 * ours[:, -1], rtol=1e-9, atol=1e-12)
    assert json.loads(out)["average_loss"] == pytest.approx(own[:, -1].mean())

    assert main(["predict", "out/model.ovi", "rows.csv"]) == 2  # this process has not imported it
    assert "--import package.module" in capsys.readouterr().err
    later = ["predict", "out/model.ovi", "rows.csv", "-o", "later.csv", "--import", "parts.own"]
    (code, _, err), (_, out, _) = onlinevi(folder, later, ["info", "out/model.ovi", "--json"])
    assert code == 0, err
    assert len(predictions(folder / "later.csv")) == 80
    assert json.loads(out)["learner"] | {"missing values": None} == {
        "learner": "parts.own:Natural",
        "loss": "HalfSquared(ridge=0.0, robust=None)",
        "missing values": None,
    }


def test_shards_of_an_own_rule_are_merged_and_it_is_compared(folder: Path) -> None:
    run = ["run", "rows.csv", "--target", "y", "--import", "parts.own", "--loss", "half-squared", "--rule", "natural"]
    rules = "--rules=implicit,ngvi,parts.own:Natural"
    calls = onlinevi(
        folder,
        [*run, "--no-hindsight", "--rows", "0:40", "--out", "one"],
        [*run, "--no-hindsight", "--rows", "40:", "--prepare-like", "one/model.ovi", "--out", "two"],
        ["merge", "one/model.ovi", "two/model.ovi", "-o", "both.ovi"],
        ["compare", "rows.csv", "--target", "y", LOSS, rules, "--json"],
    )
    assert [code for code, _, _ in calls] == [0, 0, 0, 0], calls
    assert "80 events of 2 shards" in calls[2][1]
    standings = json.loads(calls[3][1])["rules"]
    assert {standing["rule"] for standing in standings} == {"implicit", "ngvi", "parts.own:Natural"}
    assert not any(standing["out"] for standing in standings)
    [(code, out, _)] = onlinevi(folder, ["info", "both.ovi", "--import", "parts.own"])
    assert (code, "80 events" in out) == (0, True)


def test_what_cannot_be_had_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for wrong, answer in (
        (["--loss", "parts.own:HalfSquared"], "cannot import 'parts.own'"),
        (["--loss", "half-squared"], "or a class of yours as package.module:Class"),
        (["--rule", "natural"], "needs one of auto, "),
        (["--rule", "onlinevi:Squared"], "needs a class made from onlinevi.Rule"),
        (["--import", "parts.nowhere"], "--import parts.nowhere: cannot be imported"),
    ):
        assert main(["run", str(folder / "rows.csv"), "--target", "y", *wrong]) == 2
        assert answer in capsys.readouterr().err
    [(code, _, err)] = onlinevi(folder, ["run", "rows.csv", "--target", "y", "--loss", "parts.own:Nameless"])
    assert code == 2
    assert 'name: ClassVar[str] = "my-loss"' in err


def test_a_file_imports_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a file names, even beside a learner of ours."""
    assert main(["run", str(folder / "rows.csv"), "--target", "y", "--rule", "ngvi", "--out", str(folder)]) == 0
    saved = ovi.load(folder / "model.ovi")
    saved.extra["settings"]["rule"] = "parts.own:Natural"
    ovi.save(folder / "forged.ovi", saved.learner, saved.state, extra=saved.extra)
    (code, _, err), (imported, _, _) = onlinevi(
        folder, ["info", "forged.ovi"], ["info", "forged.ovi", "--import", "parts.own"]
    )
    assert (code, imported) == (2, 0)
    assert "a file imports nothing by itself: import parts.own first" in err
