"""What was acknowledged is there, once: behind kills, losses of power and a full disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.power_loss import main as lose_power
from helpers.served import asked, new_folder, rows, same_jobs

from onlinevi.adapters.serve.history import History
from onlinevi.adapters.serve.journal import connect
from onlinevi.adapters.serve.keeper import DiskFull, Keeper

HELPERS = Path(__file__).parents[2] / "helpers"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_a_service_that_is_killed_loses_nothing_that_it_acknowledged() -> None:
    run = [sys.executable, str(HELPERS / "killed_service.py"), "20"]
    environment = os.environ | {"ONLINEVI_ENGINE": "compiled"}
    found = json.loads(subprocess.run(run, capture_output=True, text=True, env=environment, check=True, timeout=240).stdout)
    assert found["kills"] == 20
    assert found["acknowledged"] > 100
    assert (found["lost"], found["learned_twice"], found["replays_to_the_same_bits"]) == (0, 0, 1)


def test_a_loss_of_power_takes_nothing_that_was_acknowledged() -> None:
    found = lose_power(60)
    assert found["acknowledged"] > 300
    assert (found["lost"], found["in_part"], found["damaged"]) == (0, 0, 0)


def test_a_journal_that_does_not_wait_for_the_disk_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated disk does lose what was not synced."""
    from onlinevi.adapters.serve.journal import Journal

    of_all = Journal._all

    def hasty(self: Any, statement: str, values: Any = ()) -> list[Any]:
        return of_all(self, statement.replace("synchronous=FULL", "synchronous=OFF"), values)

    monkeypatch.setattr(Journal, "_all", hasty)
    assert lose_power(10)["lost"] > 0


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    new_folder(tmp_path / "m")
    opened: list[Any] = []

    def small(path: Path) -> Any:
        opened.append(connect(path))
        opened[-1].execute("PRAGMA max_page_count=40")
        return opened[-1]

    keeper = Keeper(tmp_path / "m", connection=small)
    events = [asked(row | {"b": row["b"] * 100}, f"e{k}") for k, row in enumerate(rows(800))]
    groups = [events[start : start + 20] for start in range(0, 800, 20)]
    refused = next(k for k, group in enumerate(groups) if isinstance(keeper.learn(group).exception(), DiskFull))
    before, learned = keeper.published, events[: 20 * refused]
    assert before.number == len(learned) > 40
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(History, "recover")  # memory has all that was learned: nothing is to be read again
        with pytest.raises(DiskFull, match="nothing of it was learned"):
            keeper.learn(events[len(learned) : len(learned) + 20]).result()
    assert keeper.published.number == before.number
    assert keeper.predict([{"a": 1.0, "b": "u"}])[1]
    keeper.ask(lambda history: history.journal._on.execute("PRAGMA max_page_count=100000")).result()
    keeper.learn(events[len(learned) :]).result()
    job = keeper.published.job
    assert job is not None
    keeper.close()
    plain = History(new_folder(tmp_path / "plain"))
    plain.take(events[:20])
    plain.take(events[20:])
    assert plain.job is not None
    assert same_jobs(job, plain.job)
    plain.close()


def test_a_model_whose_files_are_damaged_says_so_and_the_others_are_served(tmp_path: Path) -> None:
    from helpers.served import served

    from onlinevi.adapters.serve.history import JOURNAL
    from onlinevi.client import ServiceError

    for name in ("good", "bad"):
        history = History(new_folder(tmp_path / name))
        history.take([asked(row) for row in rows(30)])
        history.close()
    (tmp_path / "bad" / JOURNAL).write_bytes(b"no database at all" * 500)
    with served(tmp_path) as client:
        about = {one["name"]: one for one in client.models()}
        assert about["good"]["ready"]
        assert "damaged" in about["bad"]["failure"]
        assert client["good"].predict({"a": 1.0, "b": "u"})["probability"] > 0.0
        client._patience = 0.0
        with pytest.raises(ServiceError, match=r"503.*damaged"):
            client["bad"].learn({"a": 1.0, "b": "u"}, label="yes")
        with pytest.raises(ServiceError, match="503"):
            client.call("GET", "/v2/health/ready")
