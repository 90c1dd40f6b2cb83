"""The one thread that writes: it outlives callers who go away, steps that fail, and disks that are full at a bad moment."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.served import asked, new_folder, rows, same_jobs

from onlinevi.adapters.serve import history as history_module
from onlinevi.adapters.serve import keeper as keeper_module
from onlinevi.adapters.serve.folder import Folder
from onlinevi.adapters.serve.history import Asked, History
from onlinevi.adapters.serve.journal import DamagedJournal, Journal
from onlinevi.adapters.serve.keeper import Keeper, Limits, Overloaded, Unavailable


@pytest.fixture
def events() -> list[Asked]:
    return [asked(row, f"e{k}") for k, row in enumerate(rows(200))]


@pytest.fixture
def keeper(tmp_path: Path, events: list[Asked]) -> Iterator[Keeper]:
    keeper = Keeper(new_folder(tmp_path / "m"))
    keeper.learn(events[:20]).result()
    yield keeper
    keeper.close()


def test_who_goes_away_stops_nobody_else(keeper: Keeper, events: list[Asked]) -> None:
    """A page that is closed, or a call that is cancelled, while it waits for the writer."""
    go_on = threading.Event()
    busy = keeper.ask(lambda history: go_on.wait(20))
    gone = keeper.learn(events[20:30])
    stays = keeper.learn(events[30:40])
    looked = keeper.ask(lambda history: history.number)
    assert gone.cancel()
    assert looked.cancel()
    go_on.set()
    assert busy.result(20)
    assert [answer.number for answer in stays.result(20)] == list(range(21, 31))
    assert keeper.queued == 0
    assert keeper.learn(events[20:30]).result(20)[0].status == "learned"


def test_a_step_that_fails_is_taken_back(
    keeper: Keeper, events: list[Asked], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An error behind the commit must not stay in the journal, where each replay would meet it."""
    of_all = History._learn

    def failing(self: History, job: Any, encoded: Any, before: int, number: int) -> Any:
        if number > 20:
            raise ArithmeticError("no such step")
        return of_all(self, job, encoded, before, number)

    with monkeypatch.context() as patched:
        patched.setattr(History, "_learn", failing)
        with pytest.raises(ArithmeticError, match="no such step"):
            keeper.learn(events[20:30]).result()
    assert keeper.failure is None
    assert keeper.published.number == 20
    assert keeper.learn(events[20:30]).result()[0].number == 21
    whole = History(new_folder(tmp_path / "whole"))
    whole.take(events[:20])
    whole.take(events[20:30])
    assert same_jobs(keeper.published.job, whole.job)  # type: ignore[arg-type]
    whole.close()


def test_a_snapshot_that_cannot_be_written_loses_no_answer(
    tmp_path: Path, events: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(new_folder(tmp_path / "m"), Limits(snapshot_every=10))

    def full(path: Path, job: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(history_module, "save_job", full)
        assert [answer.number for answer in keeper.learn(events[:20]).result()] == list(range(1, 21))
    assert keeper.published.number == 20
    keeper.learn(events[20:35]).result()
    assert keeper.ask(lambda history: history.snapshots).result() == [35]
    keeper.close()


def test_a_writer_that_cannot_go_on_refuses_what_waits(
    keeper: Keeper, events: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def broken(history: History) -> None:
        go_on.wait(20)
        history.whole = False
        raise RuntimeError("out of step")

    def unreadable(self: History) -> None:
        raise ValueError("cannot be read")

    monkeypatch.setattr(History, "recover", unreadable)
    first, second = keeper.ask(broken), keeper.learn(events[20:30])
    go_on.set()
    with pytest.raises(Unavailable, match=r"out of step.*cannot be read"):
        first.result(20)
    with pytest.raises(Unavailable, match="cannot be read"):
        second.result(20)
    with pytest.raises(Unavailable, match="cannot be read"):
        keeper.learn(events[20:30])


def test_nobody_is_refused_for_what_another_one_sent(tmp_path: Path, events: list[Asked]) -> None:
    """Names that make more features than there may be, in one group with events of others."""
    keeper, go_on = Keeper(new_folder(tmp_path / "m", expand="products", max_categories=10_000)), threading.Event()
    keeper.learn(events[:20]).result()
    busy = keeper.ask(lambda history: go_on.wait(20))
    many = [Asked(None, json.dumps({"a": 1.0, "b": f"name {k}", "y": "yes"})) for k in range(3000)]
    calls = [keeper.learn(own) for own in (events[20:30], many, events[30:40])]
    go_on.set()
    assert busy.result(20)
    assert [calls[0].result(20)[-1].number, calls[2].result(20)[-1].number] == [30, 40]
    with pytest.raises(ValueError, match="keep fewer columns"):
        calls[1].result(20)
    keeper.close()


def test_a_journal_that_is_damaged_meanwhile_is_told_of(
    keeper: Keeper, events: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is met when nobody asks."""

    def unreadable(self: History, most: int, seconds: float) -> int:
        raise DamagedJournal("the file is damaged")

    monkeypatch.setattr(History, "purge", unreadable)
    monkeypatch.setattr(keeper_module, "PURGE_EVERY", 0.0)
    assert keeper.learn(events[20:30]).result(20)[0].status == "learned"
    end = time.monotonic() + 20.0
    while keeper.failure is None and time.monotonic() < end:
        time.sleep(0.01)
    with pytest.raises(Unavailable, match="the file is damaged"):
        keeper.learn(events[30:40])


def test_questions_that_wait_are_bounded(keeper: Keeper) -> None:
    go_on = threading.Event()
    asked = [keeper.ask(lambda history: go_on.wait(20)) for _ in range(keeper_module.QUESTIONS)]
    with pytest.raises(Overloaded, match="questions wait"):
        keeper.ask(lambda history: history.number)
    go_on.set()
    assert all(one.result(20) for one in asked)
    assert keeper.ask(lambda history: history.number).result(20) == 20


def test_rows_that_wait_and_labels_share_a_group(keeper: Keeper, events: list[Asked]) -> None:
    go_on = threading.Event()
    busy = keeper.ask(lambda history: go_on.wait(20))
    waits = [keeper.wait([(f"w{k}", '{"a": 1.0, "b": "u"}')]) for k in range(5)]
    learns = [keeper.learn(events[20 + 5 * k : 25 + 5 * k]) for k in range(4)]
    go_on.set()
    assert busy.result(20)
    assert [one.result(20)[0].status for one in waits] == ["learned"] * 5
    assert [one.result(20)[0].number for one in learns] == [21, 26, 31, 36]
    assert keeper.counts.commits == 2
    assert keeper.learn([Asked("w3", None, "yes")]).result(20)[0].status == "learned"


def test_a_group_is_closed_when_all_that_call_are_in_it(
    keeper: Keeper, events: list[Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a call that does not come; one that calls alone waits for nobody."""
    monkeypatch.setattr(keeper_module, "GATHER", 20.0)
    monkeypatch.setattr(keeper_module, "LONGEST", 20.0)
    keeper.learn(events[20:22]).result(10)
    go_on = threading.Event()
    busy = keeper.ask(lambda history: go_on.wait(10))
    both = [keeper.learn(events[k : k + 1]) for k in (22, 23)]
    go_on.set()
    assert busy.result(10)
    assert [one.result(10)[0].number for one in both] == [23, 24]
    before = keeper.counts.commits
    first = keeper.learn(events[24:25])
    time.sleep(0.05)
    assert not first.done()
    second = keeper.learn(events[25:26])
    assert [first.result(10)[0].number, second.result(10)[0].number] == [25, 26]
    assert keeper.counts.commits == before + 1


@pytest.mark.parametrize("rule", ["implicit", "auto"])
def test_a_row_by_itself_takes_a_short_way_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    keeper = Keeper(new_folder(tmp_path / "m", rule=rule, weight="w"))
    keeper.learn([asked({**row, "w": 1 + k % 2}) for k, row in enumerate(rows(30))]).result()
    asked_for = [{"b": "u", "a": 0.25}, {"a": None, "b": "v"}, {"a": 3, "w": 2}, {"b": "never met", "a": 1.0}, {"a": "x"}]
    quick = [keeper.predict([row]) for row in asked_for]
    monkeypatch.setattr(keeper_module, "predict_one", lambda *given: False)
    assert quick == [keeper.predict([row]) for row in asked_for]
    assert quick[-1][2]
    keeper.close()


def test_rows_are_learned_from_as_their_lines_are(tmp_path: Path) -> None:
    """In whatever order their columns came, and some without one."""
    made = [{name: row[name] for name in ("b", "y", "a") if row[name] is not None} for row in rows(60)]
    histories = [History(new_folder(tmp_path / name)) for name in ("lines", "rows")]
    for start in (0, 30):
        part = made[start : start + 30]
        histories[0].take([asked(row) for row in part])
        histories[1].take([asked(row)._replace(row=row) if k % 3 else asked(row) for k, row in enumerate(part)])
    assert same_jobs(*[history.job for history in histories])  # type: ignore[arg-type]
    for history in histories:
        history.close()


def test_a_row_waits_until_its_time_or_until_too_many_wait(tmp_path: Path) -> None:
    """Rows whose labels came long ago take no room: the oldest go only where more wait than may."""
    journal = Journal(tmp_path / "journal.sqlite")
    with journal.writing():
        journal.wait("slow", "{}", 1000.0)
        for k in range(50):
            journal.wait(f"quick{k}", "{}", 1001.0 + k)
            journal.add(f"quick{k}", "{}", 1001.0 + k)
        assert journal.purge(10, 0.0) == 0
        assert journal.waiting == 1
        for k in range(10):
            journal.wait(f"next{k}", "{}", 2000.0 + k)
        assert journal.purge(10, 0.0) == 1
        assert journal.waiting_line("slow") is None
        assert journal.purge(10, 2004.5) == 5
        assert journal.waiting_line("next4") is None
        assert journal.waiting_line("next5") is not None
        assert journal.purge(10, 9000.0) == 5
    assert journal.waiting == 0
    journal.close()
    assert Journal(tmp_path / "journal.sqlite").waiting == 0


def test_a_transaction_that_is_undone_keeps_the_count_of_rows_that_wait(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    with journal.writing():
        journal.wait("one", "{}", 0.0)

    def learn_twice() -> None:
        with journal.writing():
            journal.add("one", "{}", 0.0)
            journal.add("one", "{}", 0.0)

    with pytest.raises(sqlite3.IntegrityError):
        learn_twice()
    assert (journal.waiting, journal.count) == (1, 0)
    journal.close()


def test_a_model_that_was_half_made_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / ".new-abc").mkdir()
    (tmp_path / ".new-abc" / "journal.sqlite").write_bytes(b"")
    folder = Folder(tmp_path)
    assert folder.models == {}
    assert not (tmp_path / ".new-abc").exists()
    folder.close()


def test_a_model_whose_journal_is_gone_is_not_passed_over(tmp_path: Path) -> None:
    (new_folder(tmp_path / "m") / "journal.sqlite").unlink()
    folder = Folder(tmp_path)
    assert "is not there" in str(folder["m"].failure)
    folder.close()


def test_metrics_that_are_published_stay_as_they_are(keeper: Keeper, events: list[Asked]) -> None:
    before = keeper.published
    count, loss = before.count, before.average_loss
    keeper.learn(events[20:60]).result()
    assert (before.count, before.average_loss) == (count, loss)
    assert keeper.published.count == 60
