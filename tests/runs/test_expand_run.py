"""``onlinevi run --expand``: settings are kept, a run resumed ends alike, and what is told speaks of features and columns."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.run_files import write_rows

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.guarantees import hindsight
from onlinevi.runs.checkpoint import load_job
from onlinevi.runs.settings import Settings

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

LEARNER = ["--target", "sold", "--rule", "implicit", "--loss", "hinge"]


def bits(path: Path) -> tuple[bytes, bytes]:
    state = ovi.load(path).state
    return state.alone().array.tobytes(), state.inputs.array.tobytes()


@pytest.mark.parametrize("expand", ["splines(knots=4), products", "fourier(count=20, scale=(0.5, 1.0))"])
def test_a_run_stopped_and_resumed_ends_with_the_same_bits(expand: str, tmp_path: Path) -> None:
    """Towns join as they come: sparse rows, and further columns."""
    rows, broken = tmp_path / "rows.csv", tmp_path / "broken.csv"
    write_rows(rows, 60)
    lines = rows.read_text().splitlines()
    broken.write_text("\n".join([*lines[:40], "1,2", *lines[40:]]) + "\n")
    call = ["run", str(broken), *LEARNER, "--expand", expand, "--look", "10", "--no-hindsight"]
    assert main([*call, "--checkpoint", str(tmp_path / "m.ovi")]) == 2
    assert load_job(tmp_path / "m.ovi").state.count == 39
    assert main([*call, "--checkpoint", str(tmp_path / "m.ovi"), "--bad-rows", "skip", "--resume"]) == 0
    assert main([*call, "--checkpoint", str(tmp_path / "whole.ovi"), "--bad-rows", "skip"]) == 0
    assert bits(tmp_path / "m.ovi") == bits(tmp_path / "whole.ovi")
    job = load_job(tmp_path / "m.ovi")
    assert job.settings.expand == expand
    assert job.state.space.dim > job.state.space.start + 1
    assert main([*call[:2], *LEARNER, "--checkpoint", str(tmp_path / "m.ovi"), "--resume"]) == 2, "without the map"


def test_what_is_told_of_a_run_speaks_of_features_and_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = write_rows(tmp_path / "rows.csv", 150)
    call = ["run", str(tmp_path / "rows.csv"), *LEARNER, "--drop", "town", "--expand", "products", "--family", "full"]
    assert main([*call, "--out", str(tmp_path / "o")]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "o" / "model.ovi"), "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert facts["features"] == ["intercept", "a", "a²", "b", "a·b", "b²"]
    assert len(facts["mean"]) == 6
    assert {one["name"] for one in facts["weights"]} == {"a", "b"}
    assert all(one["importance"] > 0.0 for one in facts["weights"])
    assert "6 features (Products(order=2" in facts["certificate"]["sentence"]
    assert main(["info", str(tmp_path / "o" / "model.ovi")]) == 0
    printed = capsys.readouterr().out
    assert "How much each column matters" in printed
    assert "Weights in the units" not in printed
    assert main(["predict", str(tmp_path / "o" / "model.ovi"), str(tmp_path / "rows.csv")]) == 0
    document = json.loads((tmp_path / "o" / "run.json").read_text())
    assert document["head"]["settings"]["features"] == "products"
    assert document["posterior"] is None
    _, Z = ovi.Inputs(missing=True).update_many(ovi.Inputs(missing=True).init(2), X)
    space = load_job(tmp_path / "o" / "model.ovi").state.space
    best = hindsight(space.of(Z), y, loss=ovi.Hinge(), box=20.0)
    assert document["regret"]["observed"][-1] == pytest.approx(facts["average_loss"] - best.value, abs=1e-5)


def test_maps_that_make_no_sense_are_refused_before_the_first_row() -> None:
    for settings, why in (
        ({"expand": "fourier"}, "auto chooses its columns itself"),
        ({"expand": "fourie", "rule": "implicit"}, "needs one of .*fourier, relu"),
        ({"expand": "beside", "rule": "implicit"}, "cannot be made"),
        ({"expand": "fourier(count=7)", "rule": "implicit"}, "in pairs"),
        ({"expand": "fourier(7)", "rule": "implicit"}, "settings have names"),
        ({"expand": "fourier(size=8)", "rule": "implicit"}, "unexpected keyword argument 'size'"),
        ({"expand": "fourier(count=__import__('os'))", "rule": "implicit"}, "cannot be made|needs names at commas"),
        ({"expand": "fourier(count=8", "rule": "implicit"}, "cannot be made .* never closed"),
        ({"expand": "", "rule": "implicit"}, "needs names at commas"),
    ):
        with pytest.raises(ValueError, match=why):
            Settings("y", **settings)  # type: ignore[arg-type]
    wide = Settings("y", rule="implicit", family="full", expand="splines")
    wide.check_width(500)
    with pytest.raises(ValueError, match="5,400 columns have"):
        wide.check_width(600)


def test_a_file_imports_no_map_by_itself(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", 30)
    call = ["run", str(tmp_path / "rows.csv"), *LEARNER, "--expand", "products", "--checkpoint", str(tmp_path / "m.ovi")]
    assert main(call) == 0
    saved = ovi.load(tmp_path / "m.ovi")
    for given in ("antigravity:Map", "products, antigravity:Map", "onlinevi:Products, antigravity:Map(seed=1)"):
        saved.extra["settings"]["expand"] = given
        ovi.save(tmp_path / "n.ovi", saved.learner, saved.state, extra=saved.extra)
        with pytest.raises(ovi.learners.CheckpointError, match="import antigravity first"):
            load_job(tmp_path / "n.ovi")
    assert "antigravity" not in sys.modules


def test_every_class_has_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    lines = [f"{a!r},{b!r},{'xyz'[int(np.digitize(a * a + b * b, [1.0, 2.5]))]}" for a, b in X.tolist()]
    (tmp_path / "r.csv").write_text("a,b,sold\n" + "\n".join(lines) + "\n")
    call = ["run", str(tmp_path / "r.csv"), *LEARNER, "--expand", "products", "--out", str(tmp_path / "o")]
    assert main(call) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "o" / "model.ovi"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["weights"]) == 6
    assert {one["class"] for one in facts["weights"]} == {"x", "y", "z"}
    assert "of each class against the rest: no fixed weights of the 6 features" in facts["certificate"]["sentence"]
