"""The benchmark suite without its timings: fair turns, resuming, verdicts, the page from small results, the C reference."""

import json
import time

import bench
import default
import growth
import numpy as np
import page
import pytest
import readme
import reference
import timing
from bars import BARS, MEAN_FIELD, RULES, judge
from made import thin_rows, unit_rows
from plots import draw, fills
from scipy.special import ndtr


def head(section, **numbers):
    machine = {"python": "3", "load at the start": "0.1"}
    return {"section": section, "command": f"python benchmarks/{section}.py", "machine": machine, "seconds": 1.0} | numbers


def passes(**more):
    times = dict.fromkeys(RULES, 100.0) | {f"{rule} in C": 100.0 for rule in RULES} | {"X @ w": 20.0}
    times |= {"VW, cached pass": 900.0, "VW --sgd, cached pass": 500.0} | more
    return {"dim": 54, "rows": dict.fromkeys(times, 1_000), "ns a row": times}


def results():
    dense = passes(**{"SVA in C": 50.0, "River StandardScaler | x": 1.0, "scikit-learn SGD, one call": 401.0})
    own = {"Auto(effort='light')": 1e3, "Auto()": 1e4, "Auto(), 7 classes": 4e4, default.SCALED: 3e3}
    straight, bent = {}, {}
    for dim in map(str, default.DIMS):
        straight[dim], bent[dim] = own, {"Auto()": 12.0, default.FOREST: 1200.0, "rows that the forest got": 9_000.0}
    curve = {"seconds": {"10": 1.0, "100": 10.0, "1000": 100.0}, "exponent": 1.0}
    rates, peaks = {"1 core": {"1": 1.0, "16": 13.0}}, {"100000": 100.0, "10000000": 104.0}
    grown = dict.fromkeys(("events", "features", "stored values"), curve) | {"rates": rates, "caches": {"L1": 3200}}
    grown |= {"threads": {"threads": 2, "cores": 2, "times as fast": 1.9}, "peak MB": {"events": peaks}}
    return {
        "dense": head("dense", cases={"synthetic": dense}, **{"left out": {"River": "not installed"}}),
        "default": head("default", bent=bent, **{"ns a row": straight}),
        "growth": head("growth", **grown),
        "float32": head("float32", **{"left out": {"float32": "no option"}}),
    }


def test_preparation_is_not_timed():
    staged = timing.Staged(lambda: time.sleep(0.05), lambda _: None)
    seconds = timing.interleaved({"staged": staged, "plain": lambda: time.sleep(0.002)}, rounds=2)
    assert seconds["staged"] < 0.002 <= seconds["plain"]


def test_exponents_are_those_of_the_large_half():
    sizes = np.array([1, 10, 100, 1_000, 10_000])
    assert growth.exponent(dict(zip(sizes.tolist(), (1e4 + sizes**1.5).tolist(), strict=True))) < 1.5
    assert growth.exponent({size: 3.0 * size**1.5 if size > 50 else 7.0 for size in sizes.tolist()}) == 1.5


def test_a_section_is_done_while_its_sources_are_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not bench.is_done("dense", tiny=False)
    path = timing.save("dense", {"cases": {}})
    assert bench.is_done("dense", tiny=False)
    assert not bench.is_done("dense", tiny=True)
    path.write_text(path.read_text().replace(timing.sources("dense"), "0.0 other"))
    assert not bench.is_done("dense", tiny=False)


def test_the_suite_goes_on_after_a_failure_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    timing.save("events", {})
    ran = []

    def run(command):
        ran.append(command[1].rsplit("/", 1)[1])
        return type("Done", (), {"returncode": len(ran) % 2})

    monkeypatch.setattr(bench.subprocess, "run", run)
    assert bench.main(["dense", "events", "growth"]) == 1
    assert ran == ["dense.py", "growth.py"]
    assert "failed: dense;" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench.main(["densse"])


def test_every_section_has_a_script_and_a_part_of_the_page():
    assert set(page.WRITERS) == set(bench.SECTIONS) >= {bar.section for bar in BARS}
    assert all((timing.HERE / f"{name}.py").exists() for name in bench.SECTIONS)


def test_the_worst_number_counts_and_what_is_absent_is_not_judged():
    verdicts = {verdict.bar.key: verdict for verdict in judge(results())}
    assert verdicts["c"].worst == ("SVA, synthetic", 2.0)
    assert verdicts["c"].missed_by == pytest.approx(2.0 / 1.2 - 1.0)
    assert verdicts["vw"].worst[1] == 5.0  # the faster of VW's two
    assert verdicts["vw"].met
    assert verdicts["sgd-oga"].met
    assert verdicts["rates"].met
    assert verdicts["forest"].worst == ("d = 5", 100.0)
    assert verdicts["classes"].worst == ("d = 5", 4.0)
    assert verdicts["memory"].met
    assert verdicts["rates-two"].worst is verdicts["river"].worst is verdicts["import"].worst is None
    assert verdicts["river"].why_not == "left out: River"
    assert verdicts["import"].why_not == "no results of it"
    assert verdicts["float32"].why_not == "left out: float32"


def test_the_page_is_made_of_the_results(tmp_path):
    found = tmp_path / "bench"
    found.mkdir()
    for name, each in results().items():
        (found / f"{name}.json").write_text(json.dumps(each))
    written = tmp_path / "docs" / "benchmarks.md"
    page.main(["--results", str(found), "--page", str(written)])
    text = written.read_text()
    assert "| ≤ 1.2 | 2 (SVA, synthetic) | **missed by 67%** |" in text
    assert "On made rows every rule is within the bar." in text, "the note of a bar that is missed"
    assert "River StandardScaler \\| x" in text
    assert "Left out: River; not installed." in text
    assert f"L1, 3 KB, at d = {fills(3200)}" in text
    assert "| River ARF, 10 trees ÷ Auto(), bent rows | 100 | 100 | 100 |" in text
    assert "tiny run" not in text
    images = sorted(path.name for path in (tmp_path / "docs" / "img").iterdir())
    assert images == ["bench-dense.svg", "bench-growth.svg"]
    assert all(f"(img/{image})" in text for image in images)
    again = draw({"dense": results()["dense"]}, tmp_path)
    assert again[0].read_bytes() == (tmp_path / "docs" / "img" / "bench-dense.svg").read_bytes()


def test_a_page_needs_results_and_says_if_they_are_tiny(tmp_path, capsys):
    with pytest.raises(SystemExit):
        page.main(["--results", str(tmp_path)])
    assert "run python benchmarks/bench.py first" in capsys.readouterr().err
    tiny = {name: each | {"tiny": True} for name, each in results().items()}
    assert page.OF_TINY in page.page(tiny, {}, {"c": "Roots."})
    assert "in C, d = 54.** Roots." in page.page(tiny, {}, {"c": "Roots."})


def test_a_note_on_no_bar_is_refused(tmp_path):
    path = tmp_path / "notes.md"
    path.write_text("About.\n\n## c\n\nRoots.\n\n## cc\n\nNo.\n")
    with pytest.raises(ValueError, match="'cc': needs one of c, c-oga"):
        page.notes(path)
    path.write_text("About.\n\n## c\n\nRoots.\n")
    assert page.notes(path) == {"c": "Roots."}
    page.notes(timing.HERE / "notes.md")


def test_notes_quote_what_was_measured():
    said = page.quoting("took {dense/cases/synthetic/ns a row/X @ w} ns, {limits/dense/roots} and {dense/cases}", results())
    assert said == "took 20 ns, (not measured) and (not measured)"


def test_the_readme_has_a_table_of_the_results():
    made = passes(**{"scikit-learn SGD, one call": 150.0, "OGA": 50.0})
    ratios = dict.fromkeys(RULES, 1.5)
    engine = {"÷ C": {"2": ratios, "1000": ratios}, "dense ÷ sparse, a row": ratios}
    table = readme.speed({"dense": {"cases": {"synthetic": made, "Cover Type": made}}, "engine": engine})
    lines = {
        cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in (line.split("|") for line in table.split("\n"))
    }
    assert lines["÷ C, d = 54"] == ["0.5", "1", "1", "1", "1"]
    assert lines["scikit-learn's SGD ÷ it"] == ["3", "1.5", "1.5", "1.5", "1.5"]
    assert lines["÷ C, d = 10,000"] == lines["River's logistic regression ÷ it"] == ["–"] * 5
    text = "before\n\n|  | OGA | x |\n| --- | --- |\n| old | 1 |\n\nafter\n"
    assert readme.with_table(text, table) == f"before\n\n{table}\n\nafter\n"
    with pytest.raises(ValueError, match="0 tables"):
        readme.with_table("none", table)


def test_rows_are_of_length_one_and_as_thin_as_asked():
    X, y = thin_rows(50, 1_000, 7)
    assert np.all(np.diff(X.indptr) == 7)
    assert X.has_canonical_format
    assert np.allclose(X.multiply(X).sum(axis=1), 1.0)
    assert set(y) == set(unit_rows(50, 3)[1]) == {-1.0, 1.0}


def test_the_full_covariance_in_c_is_a_kalman_filter():
    """Against the textbook step in numpy, Σ' = Σ − k·Σx(Σx)ᵀ: no kernel is compiled for it."""
    if reference.library() is None:
        pytest.skip("no C compiler")
    X, y = unit_rows(200, 5)
    mean, covariance, loss = np.zeros(5), np.eye(5), 0.0
    for x, label in zip(X, y, strict=True):
        through = covariance @ x
        variance, a = x @ through, mean @ x
        r = (1.0 - label * a) / np.sqrt(variance)
        curvature = np.exp(-0.5 * r * r) / np.sqrt(2.0 * np.pi * variance)
        loss += max(0.0, 1.0 - label * a)
        covariance = covariance - curvature / (1.0 + curvature * variance) * np.outer(through, through)
        mean = mean + label * ndtr(r) * covariance @ x
    assert reference._full(X, y)() == pytest.approx(np.array([*mean, loss]), rel=1e-9)
    assert set(MEAN_FIELD) < set(reference.RULES)


def test_c_leaves_small_numbers_as_they_are():
    if reference.library() is None:
        pytest.skip("no C compiler")
    assert float(np.float64(5e-324) * np.ones(1)[0]) > 0.0


@pytest.mark.parametrize("bad", ["label", "NaN", "infinity"])
def test_the_same_loop_in_c_refuses_what_ours_refuses(bad):
    if reference.library() is None:
        pytest.skip("no C compiler")
    X, y = unit_rows(200, 54)
    head = X[:100].copy(), y[:100].copy()
    if bad == "label":
        y[100] = 0.0
    else:
        X[100, 3] = np.nan if bad == "NaN" else np.inf
    for _, function, scale in reference.RULES.values():
        stopped, before = (reference._mean_field(function, scale, *rows)() for rows in ((X, y), head))
        np.testing.assert_array_equal(stopped, before)
