"""A run over a broker's events, killed again and again at random moments and resumed: the bits of one that nobody disturbed.

    python tests/helpers/killed_brokers.py kafka 60000 500
    python tests/helpers/killed_brokers.py redis 60000 500

The broker lives in this process, or is a server that it starts; a second process makes the runs, as forks of itself, and kills
them. Predictions go to the broker too: none may be missing, and one that comes twice has to say the same.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from helpers.brokers import MockKafka, RedisServer, redis_server
from helpers.killed import BATCH, BEYOND, PHASES, fork, killed, mark_phases

import onlinevi as ovi
from onlinevi.adapters.cli import main

BAD = 997
"""The last row of so many is no JSON."""


def row(k: int) -> dict[str, Any]:
    return {
        "age": k * 37 % 101,
        "income": k * 53 % 997 / 8,
        "town": f"t{k * k % 23}",
        "clicked": "yes" if k * 29 % 13 > 6 else "no",
    }


def messages(count: int) -> list[bytes]:
    return [b"no row" if k % BAD == BAD - 1 else json.dumps(row(k)).encode() for k in range(count)]


def run(address: str, said: str, dead: str, checkpoint: Path, *more: str) -> int:
    call = ["run", address, "--target", "clicked", "--rule", "implicit", "--checkpoint", str(checkpoint), "--until-end", *more]
    return main([*call, "--predictions", said, "--bad-rows", dead])


def play(address: str, outlets: list[str], folder: Path, kills: int) -> Counter[str]:
    """The whole run, and the one that is killed; how many kills fell in which phase."""
    (folder / "few.ndjson").write_bytes(b"".join(message + b"\n" for message in messages(300)))
    assert main(["run", str(folder / "few.ndjson"), "--target", "clicked", "--rule", "implicit"]) == 0, (
        "compiles what all need"
    )
    assert os.waitpid(fork(partial(run, address, *outlets[:2], folder / "whole.ovi")), 0)[1] == 0
    mark_phases()
    draw, found = random.Random(0), Counter(dict.fromkeys(PHASES[:3], 0))
    work = partial(run, address, *outlets[2:], folder / "broken.ovi", "--every", str(BATCH), "--resume")
    for _ in range(kills):
        phases = draw.randrange(12)
        found[killed(work, lambda count, _, most=phases: count >= most, draw.uniform(0.0, BEYOND))] += 1  # type: ignore[misc]
    assert os.waitpid(fork(work), 0)[1] == 0
    return found


def bits(checkpoint: Path) -> tuple[Any, ...]:
    """All that a run has learned and counted, but for the clock."""
    _, state, extra, _ = ovi.load(checkpoint)
    del extra["clock"], extra["notes"]
    return state.alone().array.tobytes(), state.inputs.array.tobytes(), json.dumps(extra, sort_keys=True)


def sent(broker: MockKafka | RedisServer, outlets: list[str]) -> dict[str, int]:
    """Of what was sent: how much, how much of it twice or more, and what differs from the run that nobody disturbed."""
    whole, whole_dead, broken, broken_dead = (broker.read(outlet) for outlet in outlets)
    once, again = dict(whole), dict(broken)
    assert len(once) == len(whole)
    missing = once.keys() ^ again.keys() | dict(whole_dead).keys() ^ dict(broken_dead).keys()
    other = sum(once[key] != value for key, value in broken) + sum(
        dict(whole_dead)[key] != value for key, value in broken_dead
    )
    return {"predictions": len(again), "sent twice": len(broken) - len(again), "missing": len(missing), "other": other}


def found(kind: str, events: int, kills: int) -> dict[str, Any]:
    """Play it against a broker; what came of it."""
    outlets = ["said", "dead", "said_again", "dead_again"]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        broker = MockKafka() if kind == "kafka" else stack.enter_context(redis_server())
        broker.send("clicks", messages(events))
        for outlet in outlets:
            broker.prepare(outlet)
        addresses = [broker.address("clicks"), *map(broker.address, outlets)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
        call = [sys.executable, __file__, "play", name, str(kills), *addresses]
        done = subprocess.run(call, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        folder = Path(name)
        same = bits(folder / "whole.ovi") == bits(folder / "broken.ovi")
        phases = json.loads(done.stdout.splitlines()[-1])
        return {
            "broker": kind,
            "events": events,
            "kills": sum(phases.values()),
            "same bits": same,
            **sent(broker, outlets),
            **phases,
        }


if __name__ == "__main__":
    told = sys.stdout
    if sys.argv[1] == "play":
        _, _, place, count, events_at, *others = sys.argv
        with Path(os.devnull).open("w") as sys.stdout:
            print(json.dumps(play(events_at, others, Path(place), int(count))), file=told)
    else:
        print(json.dumps(found(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
