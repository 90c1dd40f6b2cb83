"""Whenever the machine stops, the old checkpoint or the new one is there; and what saving does to files and memory."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from helpers.checkpoints import LINEARS, begun, little_memory, rows_for
from helpers.states import same_bits

import onlinevi as ovi


class Stopped(OSError):
    """As if the power had gone."""


def test_a_failure_at_any_moment_leaves_the_old_file_or_the_new_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = LINEARS[2]
    old, (new, _) = begun(one), one.update_many(begun(one), *rows_for(one))
    ovi.save(path, one, old)
    calls = {"left": 0}

    def step(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            calls["left"] -= 1
            if calls["left"] == 0:
                raise Stopped(function.__name__)
            return function(*arguments, **options)

        return counted

    class Failing(io.BufferedRandom):
        write = step(io.BufferedRandom.write)  # type: ignore[assignment]
        flush = step(io.BufferedRandom.flush)  # type: ignore[assignment]

    monkeypatch.setattr(os, "fdopen", lambda handle, mode: Failing(io.FileIO(handle, "r+b")))
    for function in (os.open, os.fsync, os.replace):
        monkeypatch.setattr(os, function.__name__, step(function))
    failures = 0
    while True:
        calls["left"] = failures + 1
        try:
            ovi.save(path, one, new)
            break
        except Stopped:
            failures += 1
        loaded = ovi.load(path).state
        assert same_bits(loaded, old) or same_bits(loaded, new)
        assert os.listdir(path.parent) == [path.name]  # noqa: PTH208
    assert failures > 20
    assert same_bits(ovi.load(path).state, new)


KILLED_WHILE_SAVING = """
import os, random, signal, sys, time, numpy as np, onlinevi as ovi
learner, path, last = ovi.Linear(ovi.Squared(), ovi.NGVI(), ovi.FullCovariance()), sys.argv[1], 0
plan, array = learner.init(200).plan, learner.init(200).array.copy()
def save(count):
    array[:1] = count
    ovi.save(path, learner, ovi.State(array.copy(), plan))
began = time.perf_counter()
save(0)
pace = time.perf_counter() - began
random.seed(0)
for _ in range(40):
    heard, tells = os.pipe()
    if (child := os.fork()) == 0:
        while True:
            last += 1
            save(last)
            os.write(tells, b".")
    for _ in range(random.randrange(3)):  # saves that the child says are done; it is killed in a later one
        assert os.read(heard, 1) == b"."
        last += 1
    time.sleep(random.uniform(0.0, pace))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(heard), os.close(tells)
    count = ovi.load(path).state.count
    assert count >= last
    last = count
print(last)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_a_process_killed_while_saving_leaves_a_file_that_loads(path: Path) -> None:
    run = [sys.executable, "-c", KILLED_WHILE_SAVING, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 10


@pytest.mark.skipif(sys.platform == "win32", reason="has no umask")
def test_permissions_are_those_of_a_new_file_or_of_the_one_replaced(path: Path) -> None:
    one = LINEARS[0]
    before = os.umask(0o027)
    try:
        ovi.save(path, one, begun(one))
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        ovi.save(path, one, begun(one))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.with_name("latest")
    link.symlink_to(path)
    ovi.save(link, LINEARS[0], begun(LINEARS[0]))
    assert link.is_symlink()
    assert ovi.load(path).learner == LINEARS[0]


def test_saving_a_large_state_takes_no_second_copy_of_it(path: Path) -> None:
    one = ovi.Linear(ovi.Hinge(), ovi.OGA(0.1))
    state = one.init(1_000_000)
    size = state.array.nbytes
    with little_memory(size // 2):
        ovi.save(path, one, state)
    with little_memory(2 * size):
        loaded = ovi.load(path)
    assert same_bits(loaded.state, state)


def test_fields_of_a_plan_are_those_of_a_learner() -> None:
    """What makes the default's pool savable: each plan knows all that its learner was made of."""
    plan = begun(LINEARS[0]).plan
    assert {item.name for item in fields(ovi.Linear)} <= {item.name for item in fields(plan)}
