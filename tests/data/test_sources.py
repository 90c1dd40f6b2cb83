"""The protocol of sources: pieces, and the place to go on from behind every row; files keep the positions that they had."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.states import bits

from onlinevi.adapters.cli import main
from onlinevi.data import BadInput, Piece, Position, Reader, ReadOptions, Refused, Skip, open_stream
from onlinevi.runs import Places, Run, Settings, Stopper, load_job
from onlinevi.runs import run as driver

pa = pytest.importorskip("pyarrow")

SAMPLE = Path(__file__).parents[1] / "samples" / "stopped_v1.ovi"
"""The checkpoint of a run over the first 350 of ``old_rows`` and their header, by the version before sources had marks."""
COUNT = 40
BAD = (3, 4, 17, 29, 30, 31, 39)


class Slots:
    """A source of the numbers from 0 on, in pieces of any size; the place behind each is the number itself."""

    name = "slots"

    def __init__(self, seed: int = 0, fails_at: int | None = None) -> None:
        self.rng, self.fails_at, self.open_readers = np.random.default_rng(seed), fails_at, 0

    def open(self, options: ReadOptions, resume: Position | None = None) -> Reader:
        self.open_readers += 1
        return SlotReader(self, 0 if resume is None else resume.place["next"], 0 if resume is None else resume.rows)


class SlotReader(Reader):
    live = True

    def __init__(self, slots: Slots, first: int, first_row: int) -> None:
        self._slots, self._at, self.first_row, self._closed = slots, first, first_row, False

    def __iter__(self) -> Iterator[Piece]:
        while self._at < COUNT:
            if self._slots.fails_at is not None and self._at >= self._slots.fails_at:
                raise BadInput("slots: no more for today")
            first, count = self._at, min(int(self._slots.rng.integers(1, 9)), COUNT - self._at)
            self._at += count
            bad = [Refused("slots", k, None, "bad", str(first + k)) for k in range(count) if first + k in BAD]
            good = [k for k in range(first, first + count) if k not in BAD]
            yield Piece(count, {"n": pa.array(good, pa.int64())}, refused=bad, trail=SlotTrail(first))

    def close(self) -> None:
        self._slots.open_readers -= not self._closed
        self._closed = True


class SlotTrail:
    def __init__(self, first: int) -> None:
        self._first = first

    def behind(self, count: int) -> Any:
        return {"next": self._first + count}

    def place(self, row: int) -> Mapping[str, Any]:
        return {"slot": self._first + row}


@pytest.mark.parametrize("rows", [1, 3, 8, COUNT])
@pytest.mark.parametrize("look", [0, 1, 15, COUNT + 1])
def test_a_source_goes_on_behind_any_row(rows: int, look: int) -> None:
    """Whatever was looked at, and however pieces and batches are cut: from each position the rest comes, and nothing else."""
    slots, seen = Slots(rows), []
    with open_stream(slots, batch_rows=rows, bad=Skip()) as stream:
        stream.peek(look)
        for batch in stream:
            seen += batch.columns["n"].to_pylist()
            assert seen == [k for k in range(seen[-1] + 1) if k not in BAD]
            for stop in (stream.position.rows, int(batch.rows[0])):  # behind the batch, and where a bad row stopped within it
                position = Position.from_json(stream.position._replace(rows=stop).to_json())
                assert position.place == {"next": stop}
                with open_stream(slots, batch_rows=5, bad=Skip(), resume=position) as again:
                    assert [n for rest in again for n in rest.columns["n"].to_pylist()] == [
                        k for k in range(stop, COUNT) if k not in BAD
                    ]
                    assert again.position.rows == COUNT, "the bad one at the end too"
            assert [stream.place(int(row)) for row in batch.rows] == [{"slot": int(row)} for row in batch.rows]
    assert slots.open_readers == 0


def test_bad_rows_behind_the_last_good_one_are_passed() -> None:
    with open_stream(Slots(), bad=Skip()) as stream:
        last = list(stream)[-1]
        position = stream.position
        assert (int(last.rows[-1]), position.place) == (38, {"next": COUNT})
        assert stream.place(39) == {"slot": 39}
    with open_stream(Slots(), bad=Skip(), resume=position) as again:
        assert list(again) == []
        assert again.position.place == {"next": COUNT}, "a stream that has given nothing yet stands where it began"


def test_a_stream_ends_at_a_row_and_lets_go() -> None:
    slots = Slots(4)
    with open_stream(slots, bad=Skip(), end_row=20) as stream:
        assert [n for batch in stream for n in batch.columns["n"].to_pylist()] == [k for k in range(20) if k not in BAD]
        assert slots.open_readers == 0
        assert stream.position.place == {"next": 20}
    broken = Slots(4, fails_at=20)
    with open_stream(broken, bad=Skip()) as stream:
        stream.peek(COUNT)
        with pytest.raises(BadInput, match="no more"):
            list(stream)
        assert stream.position.rows >= 20
    assert broken.open_readers == 0
    with open_stream(broken):  # nothing was read
        assert broken.open_readers == 1
    assert broken.open_readers == 0


def test_places_of_long_ago_are_forgotten() -> None:
    """Or an endless stream would fill the memory."""
    with open_stream(Slots(), bad=Skip(), batch_rows=4) as stream:
        last = [(int(batch.rows[-1]), len(stream._trails._trails)) for batch in stream]
        assert max(kept for _, kept in last) <= 3
        assert (stream.place(0), stream.place(last[-1][0])) == (None, {"slot": 38})


class Garbage(Reader):
    """Pieces of rows that can be read, or of none."""

    name = "garbage"

    def __init__(self, *good: int, size: int = 10) -> None:
        self._good, self._size = good, size

    def open(self, options: ReadOptions, resume: Position | None = None) -> Reader:
        return self

    def __iter__(self) -> Iterator[Piece]:
        for number, good in enumerate(self._good):
            bad = [Refused(self.name, k, None, "bad", "") for k in range(good, self._size)]
            columns = {name: pa.array(range(good)) for name in ("n", "m") if good}
            yield Piece(self._size, columns, refused=bad, trail=SlotTrail(self._size * number))


def test_rows_that_were_all_refused_are_told_of_at_once() -> None:
    """And not kept until a good one comes, which may be never."""
    with open_stream(Garbage(3, 0, 0, 2, 0), bad=Skip()) as stream:
        told = [(len(batch), stream.position.rows, len(stream._trails._trails)) for batch in stream.steps()]
    assert [(count, rows) for count, rows, _ in told] == [(3, 3), (0, 10), (0, 20), (0, 30), (2, 32), (0, 40), (0, 50)]
    assert max(kept for *_, kept in told) <= 2
    nothing = Garbage(*[0] * 9, 1, size=20_000)
    with (
        open_stream(nothing, bad=Skip()) as stream,
        pytest.raises(BadInput, match="none of its first 100,000 rows can be used"),
    ):
        stream.peek()


def test_a_position_of_one_source_is_none_of_another(tmp_path: Path) -> None:
    path = tmp_path / "rows.ndjson"
    path.write_text('{"n": 0}\n')
    with open_stream(Slots(), bad=Skip()) as stream:
        next(stream)
        position = stream.position
    with pytest.raises(BadInput, match="slots was read before"):
        open_stream(path, resume=position)


def old_rows(count: int) -> str:
    rows = ((k * 37 % 101 / 8, k * 53 % 97 - 48, k * k % 7, "yes" if k * 29 % 13 > 6 else "no") for k in range(count))
    return "a,b,town,sold\n" + "".join(f"{a},{b},t{town},{sold}\n" for a, b, town, sold in rows)


def test_files_go_on_from_checkpoints_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows, stopped = Path("rows.csv"), Path("stopped.ovi")
    rows.write_text(old_rows(350))
    kept = load_job(SAMPLE).position
    assert kept is not None
    with open_stream(rows) as stream:
        stream.peek(10)
        list(stream)
        assert stream.position == kept
        assert stream.position.to_json() == kept.to_json()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.read_bytes())))
    with open_stream("-") as stream:
        list(stream)
        assert stream.position[1:] == kept[1:]
    rows.write_text(old_rows(600))
    call = ["run", "rows.csv", "--target", "sold", "--rule", "implicit", "--look", "100", "--no-hindsight", "--resume"]
    stopped.write_bytes(SAMPLE.read_bytes())
    assert main([*call, "--checkpoint", str(stopped)]) == 0
    assert main([*call, "--checkpoint", "whole.ovi"]) == 0
    went_on, whole = load_job(stopped), load_job("whole.ovi")
    assert (went_on.metrics.count, went_on.position) == (600, whole.position)
    assert np.allclose(went_on.state.mean, whole.state.mean, rtol=1e-12, atol=1e-15)  # another machine learned its first rows


SHELF = '''
"""A broker of one's own: the numbers from 0 to 299 on each shelf, at 3 places from one to the next."""
import pyarrow as pa
from onlinevi.data import Broker, Piece, Reader, Scheme


class Shelf(Broker):
    schemes = {"shelf": Scheme(7000, "board", "SHELF_PASSWORD")}

    def open(self, options, resume=None):
        return Numbers(0 if resume is None else resume.place, 0 if resume is None else resume.rows)


class Numbers(Reader):
    def __init__(self, at, first_row):
        self.at, self.first_row = at, first_row

    def __iter__(self):
        while self.at < 900:
            places = range(self.at, min(self.at + 60, 900), 3)
            self.at = places.stop
            columns = {"n": pa.array(places), "odd": pa.array([place % 2 > 0 for place in places])}
            yield Piece(len(places), columns, trail=Trail(places))


class Trail:
    def __init__(self, places):
        self.places = places

    def behind(self, count):
        return self.places[0] + 3 * count

    def place(self, row):
        return {"board": "numbers", "at": self.places[row]}
'''


class Killed(BaseException):
    """Where a kill falls."""


def test_a_broker_of_ones_own_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named by ``--import``, and has what others have: checkpoints on the way, resuming, messages."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shelf_of_ours.py").write_text(SHELF)
    call = ["run", "shelf://here/numbers", "--import", "shelf_of_ours", "--target", "odd", "--rule", "implicit", "-q"]
    call += ["--look", "100", "--every", "70", "--resume"]
    assert main([*call, "--checkpoint", "whole.ovi"]) == 0
    save = driver.save_job

    def killed(path: Path, job: Any) -> None:
        save(path, job)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(driver, "save_job", killed)
        for _ in range(2):
            with pytest.raises(Killed):
                main([*call, "--checkpoint", "parts.ovi"])
    assert load_job(Path("parts.ovi")).position.place == 3 * 140  # type: ignore[union-attr]
    assert main([*call, "--checkpoint", "parts.ovi"]) == 0
    assert bits(load_job(Path("parts.ovi")).state) == bits(load_job(Path("whole.ovi")).state)
    capsys.readouterr()
    assert main([*call, "--checkpoint", "no.ovi", "--predictions", "shelf://here/said"]) == 2
    assert "shelf://here:7000/said: is only read from" in capsys.readouterr().err
    assert main(["run", "shelf://me:hush@here/numbers", "--target", "odd"]) == 2
    assert "(SHELF_PASSWORD)" in capsys.readouterr().err


def test_a_run_takes_a_source_of_ones_own(tmp_path: Path) -> None:
    with Run(Settings("n", rule="implicit"), Places(Garbage(8, 9), tmp_path / "m.ovi", bad_rows="skip", every=5)) as run:
        assert run.go(Stopper()) == ("end", None)
    assert load_job(tmp_path / "m.ovi").position.place == {"next": 20}  # type: ignore[union-attr]
