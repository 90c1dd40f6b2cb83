"""Peers as they were printed: every score that a table has, in its place, beside ours as measured anew."""

import math

import ours
import pytest
import quality
import quality_tables
from bent_streams import ALSO_FIRST, BENT
from ledger import Ledger, Result
from printed import FOLDER, Times, printed, printed_times, together
from scores import HEADLINE
from study_streams import VARIANTS

STUDIES = {study.section: study for study in (quality.FIRST, quality.BENT)}


@pytest.mark.parametrize("section", STUDIES)
def test_all_that_is_printed_is_of_the_study(section):
    study, found = STUDIES[section], printed(FOLDER / f"{section}.csv")
    assert len({result.key for result in found}) == len(found) > 500
    assert len(study.ordered(found)) == len(found)
    for result in found:
        assert result.variant in VARIANTS
        assert result.entrant in [*study.names[result.task], ours.BEFORE]
        score = result.scores.get(HEADLINE[result.task])
        assert score is None or math.isfinite(score)
        assert (score is None) == result.note.startswith(("diverged", "not_printed"))


def test_a_line_is_a_result(tmp_path):
    head = "stream,variant,task,entrant,rows,micros,note,score,error,smoothed,coverage,width\n"
    (tmp_path / "quality.csv").write_text(
        f"{head}toy,raw,classification,VW,1000,5,,0.3,0.1,,,\nboston,raw,regression,VW,506,,diverged,,,,,\n"
    )
    assert printed(tmp_path / "quality.csv") == [
        Result("toy", "raw", "classification", "VW", 1000, pytest.approx(0.005), "", {"log_loss": 0.3, "error": 0.1}),
        Result("boston", "raw", "regression", "VW", 506, 0.0, "diverged", {}),
    ]
    assert printed(tmp_path / "none.csv") == []
    assert printed_times(tmp_path / "none.csv") == {}


def test_what_is_measured_takes_the_place_of_what_was_printed():
    old = [Result("s", "raw", "regression", name, 10, 0.0, "", {"mse": score}) for name, score in (("a", 1.0), ("b", 2.0))]
    new = Result("s", "raw", "regression", "a", 10, 0.5, "", {"mse": 3.0})
    assert together(old, [new]) == [new, old[1]]


def test_ours_alone_renews_a_table(tmp_path):
    """The line of the page, with ours as it is now, and everyone whom the page knows."""
    page, ledger = tmp_path / "page.md", Ledger(tmp_path / "bent.jsonl")
    begin, end = quality_tables.marks("bent")
    page.write_text(f"{begin}\n{end}\n")
    for entrant, score in ((ours.OURS, 60.0), (ours.BEFORE, 100.0)):
        ledger.add(Result("concrete", "raw", "regression", entrant, 1030, 0.1, "", {"mse": score}))
    quality.main(["--write", str(page), "--out", str(tmp_path)])
    text = page.read_text()
    assert "| concrete | raw | 60 | 83.86 | River AMF, standardised (1 not compared) | 0.715 | best | 281.8 | 553.8 |" in text
    assert "Ratio of onlinevi.auto to linear default" in text
    assert "| onlinevi.auto | 1 | 97 | 97 | 0 |" in text
    assert "| River ARF | 53 | 1,565 | 5,120 | 0 |" in text
    lines = [
        line for line in text.splitlines() if line.startswith("| concrete | raw | onlinevi.auto 60; River AMF, standardised")
    ]
    assert len(lines) == 1
    assert "constant 281.8" in lines[0]


def test_a_study_that_nobody_ran_is_not_written(tmp_path):
    assert all(study.written(Ledger(tmp_path / "none.jsonl"), FOLDER) == "" for study in STUDIES.values())


def test_every_stream_that_bends_has_its_peers():
    found = printed(FOLDER / "bent.csv")
    assert {result.stream for result in found if result.entrant != ours.BEFORE} == set(BENT)
    assert {result.stream for result in found if result.entrant == ours.BEFORE} == {*BENT, *ALSO_FIRST}
    times = printed_times(FOLDER / "bent_times.csv")
    assert times["River ARF"] == Times(53, 1565.0, 5120.0, 0)
    assert set(times) == {result.entrant for result in found} - {ours.BEFORE}
