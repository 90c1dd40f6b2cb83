"""What is learned is what the journal says, to the bit: in any groups, after any stop, and behind a rollback."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path

import pytest
from helpers.served import asked, new_folder, rows, same_jobs

from onlinevi.adapters.serve.history import JOURNAL, Asked, History
from onlinevi.adapters.serve.journal import DamagedJournal
from onlinevi.adapters.serve.lines import as_line
from onlinevi.runs import Job


def learned(path: Path, events: list[Asked], sizes: random.Random | None = None, every: int = 1000) -> History:
    """The history of these events, which come in groups of random sizes, or all together."""
    history = History(new_folder(path), every=every)
    history.take(events[:20])  # by which columns are known
    start = 20
    while start < len(events):
        stop = start + (len(events) if sizes is None else sizes.randint(1, 40))
        history.take(events[start:stop])
        start = stop
    return history


def job_of(history: History) -> Job:
    assert history.job is not None
    return history.job


@pytest.fixture
def events() -> list[Asked]:
    return [asked(row, f"e{k}") for k, row in enumerate(rows(300))]


def test_any_groups_give_the_same_bits(tmp_path: Path, events: list[Asked]) -> None:
    whole = learned(tmp_path / "whole", events)
    for seed in range(3):
        parts = learned(tmp_path / f"parts{seed}", events, random.Random(seed))
        assert same_jobs(job_of(whole), job_of(parts))


@pytest.mark.parametrize("every", [30, 1000])
def test_a_model_that_is_opened_again_knows_the_same(tmp_path: Path, events: list[Asked], every: int) -> None:
    history = learned(tmp_path / "m", events, random.Random(1), every)
    history.close()  # and no snapshot at the end, as after a loss of power
    again = History(tmp_path / "m", every=every)
    assert (again.replayed < 70) == (every == 30)
    assert same_jobs(job_of(history), job_of(again))
    more = [asked(row, f"f{k}") for k, row in enumerate(rows(50, seed=5))]
    again.take(more)
    assert same_jobs(job_of(again), job_of(learned(tmp_path / "n", events + more)))


def test_numbers_beside_texts_are_the_same_when_they_are_learned_again(tmp_path: Path) -> None:
    """A column of texts such as 14.524,84, to which some clients send numbers: what was acknowledged is not refused later."""
    given = [f"{k}.00{k % 10},5" if k % 3 else 1.001 * k for k in range(30)]
    events = [asked({"x": x, "y": "no" if k % 2 else "yes"}, f"e{k}") for k, x in enumerate(given)]
    history = History(new_folder(tmp_path / "m"))
    history.take([event for event, x in zip(events, given, strict=True) if isinstance(x, str)])
    answers = [history.take([event])[0] for event, x in zip(events, given, strict=True) if isinstance(x, float)]
    assert {answer.status for answer in answers} == {"learned"}
    history.close()
    assert same_jobs(job_of(history), job_of(History(tmp_path / "m")))


def test_a_damaged_snapshot_falls_back_to_the_one_before_it(tmp_path: Path, events: list[Asked]) -> None:
    history = learned(tmp_path / "m", events, random.Random(1), every=50)
    history.close()
    newest = max((tmp_path / "m" / "snapshots").iterdir())
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    again = History(tmp_path / "m", every=50)
    assert list(again.damaged) == [newest.name]
    assert again.replayed > 300 - int(newest.stem)
    assert same_jobs(job_of(history), job_of(again))
    assert int(newest.stem) not in again.snapshots  # so that a new one is written there


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (
            "UPDATE events SET row = replace(row, 'yes', 'no') WHERE number = (SELECT max(number) FROM events)",
            "event 300 is not",
        ),
        ("DELETE FROM events WHERE number = 290", "event 290 is not"),
        ("UPDATE events SET row = replace(row, '0', '1') WHERE number = 3", "event 3 is not"),
        ("UPDATE events SET id = 'x' WHERE number = 295", "event 295 is not"),
        ("DELETE FROM facts WHERE name = 'settings'", "has no settings"),
        ("UPDATE facts SET value = '{' WHERE name = 'settings'", "its settings cannot be read"),
        ("UPDATE events SET sum = 17 WHERE number = 300", "the sum of an event cannot be read"),
        ("UPDATE events SET row = CAST(x'ff' AS TEXT) WHERE number = 290", "the file is damaged"),
    ],
)
def test_a_damaged_journal_is_refused_with_what_is_wrong(tmp_path: Path, events: list[Asked], damage: str, why: str) -> None:
    events[-1] = asked({"a": 0.5, "b": "u", "y": "yes"}, "e299")
    history = learned(tmp_path / "m", events[:270], every=250)
    history.take(events[270:])
    history.close()
    with sqlite3.connect(tmp_path / "m" / JOURNAL) as journal:
        journal.execute(damage)
    journal.close()
    with pytest.raises(DamagedJournal, match=why):
        _ = History(tmp_path / "m").settings


@pytest.mark.parametrize("lost", ["DELETE FROM events WHERE number > 250", "UPDATE events SET sum = x'00' WHERE number > 260"])
def test_a_journal_that_lost_what_a_snapshot_knows_is_refused(tmp_path: Path, events: list[Asked], lost: str) -> None:
    """Its end is missing, as of a copy without the file beside it; the snapshot stays where it is."""
    history = learned(tmp_path / "m", events, random.Random(1), every=20)
    newest = history.snapshots[-1]
    history.close()
    with sqlite3.connect(tmp_path / "m" / JOURNAL) as journal:
        journal.execute(lost)
    journal.close()
    with pytest.raises(DamagedJournal, match=r"ends at event 250|event 261 is not"):
        History(tmp_path / "m")
    assert (tmp_path / "m" / "snapshots" / f"{newest:012d}.ovi").exists()
    (tmp_path / "m" / JOURNAL).unlink()
    with pytest.raises(DamagedJournal, match="is not there"):
        History(tmp_path / "m")


def test_pages_that_were_overwritten_are_found(tmp_path: Path, events: list[Asked]) -> None:
    learned(tmp_path / "m", events).close()
    path = tmp_path / "m" / JOURNAL
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(DamagedJournal, match="damaged"):
        History(tmp_path / "m")


def test_what_is_refused_leaves_no_trace(tmp_path: Path, events: list[Asked]) -> None:
    """A bad cell and a missing label are never written down; a step that would overflow is, and refused again by a replay."""
    clean, messy = History(new_folder(tmp_path / "clean")), History(new_folder(tmp_path / "messy"))
    clean.take(events[:20])
    messy.take(events[:20])
    bad = [
        Asked(None, json.dumps({"a": "much", "b": "new name", "y": "yes"})),
        Asked("x1", json.dumps({"a": 1.0, "b": "u", "y": None})),
        Asked("x2", None, "yes"),
        Asked("e3", json.dumps({"a": 17.0, "b": "u", "y": "yes"}), "yes"),
    ]
    clean.take(events[20:60])
    answers = messy.take([*events[20:40], *bad, *events[40:60], events[5]])
    assert [one.status for one in answers[20:24]] == ["refused", "refused", "unknown", "conflict"]
    assert answers[-1].status == "known"
    assert answers[-1].number == 6
    assert answers[20].column == "a"
    assert same_jobs(job_of(clean), job_of(messy))
    assert messy.number == clean.number == 60


def test_a_step_that_would_overflow_is_refused_and_stays_so(tmp_path: Path, events: list[Asked]) -> None:
    history = History(new_folder(tmp_path / "m", rule="ngvi", expand="products"))
    history.take(events[:20])
    answer, after = history.take([Asked(None, json.dumps({"a": 1e300, "b": "u", "y": "yes"})), events[20]])
    assert after.status == "learned"
    before, count = job_of(history), job_of(history).metrics.count
    assert count == 21 + (answer.status == "learned")
    history.close()
    again = History(tmp_path / "m")
    assert same_jobs(before, job_of(again))


def test_the_same_id_again_changes_nothing(tmp_path: Path, events: list[Asked]) -> None:
    once, twice = History(new_folder(tmp_path / "once")), History(new_folder(tmp_path / "twice"))
    once.take(events[:50])
    twice.take([*events[:20], events[3]])
    again = twice.take([*events[20:50], *events[10:30], events[49]])
    assert [one.status for one in again[30:]] == ["known"] * 21
    assert same_jobs(job_of(once), job_of(twice))


def test_a_label_finds_the_row_that_waits(tmp_path: Path, events: list[Asked]) -> None:
    direct, late = History(new_folder(tmp_path / "direct")), History(new_folder(tmp_path / "late"))
    direct.take(events[:40])
    late.take(events[:20])
    for one in events[20:40]:
        row = json.loads(one.line or "")
        label = row.pop("y")
        assert late.wait([(str(one.id), json.dumps(row, sort_keys=True))])[0].status == "learned"
        assert late.take([Asked(one.id, None, label)])[0].status == "learned"
        assert late.take([Asked(one.id, None, label)])[0].status == "known"
        assert late.take([Asked(one.id, None, "other")])[0].status == "conflict"
    assert late.journal.waiting == 0
    assert same_jobs(job_of(direct), job_of(late))


def test_an_event_whose_label_came_alone_is_the_same_with_its_row(tmp_path: Path) -> None:
    """Whatever the target is called, and wherever it stands among the columns."""
    history = History(new_folder(tmp_path / "m", target="clicked"))
    history.take([Asked(None, as_line({"hours": k % 7, "clicked": k % 7 > 3})) for k in range(30)])
    history.wait([("late", as_line({"hours": 5}))])
    whole = Asked("late", as_line({"hours": 5, "clicked": True}), True)
    assert [one.status for one in history.take([Asked("late", None, True), whole])] == ["learned", "known"]
    assert history.take([whole])[0].status == "known"
    assert history.take([Asked("late", None, 1)])[0].status == "conflict"
    assert history.take([whole._replace(line=as_line({"hours": 6, "clicked": True}))])[0].status == "conflict"


def test_a_rollback_is_as_if_the_rest_had_not_come(tmp_path: Path, events: list[Asked]) -> None:
    history = learned(tmp_path / "m", events, random.Random(2), every=40)
    assert history.roll_back(130) == 170
    assert same_jobs(job_of(history), job_of(learned(tmp_path / "short", events[:130])))
    assert max(history.snapshots) <= 130
    history.take(events[130:200])
    history.close()
    again = History(tmp_path / "m", every=40)
    assert same_jobs(job_of(again), job_of(learned(tmp_path / "long", events[:200])))
    again.roll_back(0)
    assert again.job is None
    again.take(events[:60])
    assert same_jobs(job_of(again), job_of(learned(tmp_path / "anew", events[:60])))


def test_a_model_file_goes_on(tmp_path: Path, events: list[Asked]) -> None:
    from onlinevi.runs import pack_job

    whole = learned(tmp_path / "whole", events[:100])
    first = learned(tmp_path / "first", events[:60])
    folder = tmp_path / "next"
    folder.mkdir()
    History.begin(folder, first.settings, pack_job(job_of(first)))
    following = History(folder)
    following.take(events[60:100])
    assert same_jobs(job_of(whole), job_of(following))
    following.close()
    assert same_jobs(job_of(whole), job_of(History(folder)))


def test_old_snapshots_thin_out(tmp_path: Path, events: list[Asked]) -> None:
    history = learned(tmp_path / "m", events, every=1000)
    for _ in range(3):
        history.every = 5
        history.take([Asked(None, one.line, one.label) for one in events[:100]])
    kept = history.snapshots
    assert len(kept) < 20
    assert kept == sorted(int(path.stem) for path in (tmp_path / "m" / "snapshots").iterdir())
