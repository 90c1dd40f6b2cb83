"""Events from brokers against the same from a file: read, and learned from; the share of parsing, and what checkpoints cost.

    python benchmarks/streams.py [--tiny]     # prints the table of docs/streams.md

Flat JSON objects of five fields, in librdkafka's mock of Kafka (four partitions, another process), in a Redis server that is
started here, as JSON and as fields, and in a file of NDJSON. Times are the processor's, of the reading process with those of
its client library; the broker's own are not among them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from helpers.brokers import MockKafka, redis_server
from quality_tables import table
from section import Size, main
from timing import interleaved

from onlinevi.adapters.cli import main as onlinevi
from onlinevi.data import Follow, open_stream
from onlinevi.data.formats import ReadOptions, objects_piece

ROWS, PIECE = 100_000, 8192
END = Follow(until_end=True)


def row(k: int) -> dict[str, Any]:
    return {
        "age": k * 37 % 101,
        "income": k * 53 % 9973 / 8,
        "town": f"t{k * k % 23}",
        "n": k % 1000,
        "clicked": "yes" if k % 3 else "no",
    }


def read(address: str) -> None:
    with open_stream(address, follow=END) as stream:
        assert sum(map(len, stream)) > 0


def parse(messages: list[bytes]) -> None:
    for start in range(0, len(messages), PIECE):
        objects_piece(messages[start : start + PIECE], "messages", ReadOptions())


def learn(address: str, folder: Path, *more: str) -> None:
    call = ["run", address, "--target", "clicked", "--rule", "implicit", "--no-hindsight", "--overwrite", "-q", *more]
    end = ["--until-end"] if "://" in address else []
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        assert onlinevi([*call, *end, "--checkpoint", str(folder / "model.ovi")]) == 0


def measure(size: Size) -> dict[str, Any]:
    rows = size.rows(ROWS)
    messages = [json.dumps(row(k)).encode() for k in range(rows)]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "rows.ndjson").write_bytes(b"".join(message + b"\n" for message in messages))
        redis = stack.enter_context(redis_server())
        redis.send("json", messages)
        redis.send("fields", ({name: str(value) for name, value in row(k).items()} for k in range(rows)))
        keeper = subprocess.Popen(
            [sys.executable, __file__, "keep", str(rows)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stack.callback(keeper.communicate)  # whose standard input ends then, and with it the broker
        assert keeper.stdout is not None
        kafka = f"kafka://{keeper.stdout.readline().strip()}/clicks"
        sources = {
            "NDJSON file": str(folder / "rows.ndjson"),
            "Kafka": kafka,
            "Redis, JSON": redis.address("json"),
            "Redis, fields": redis.address("fields"),
        }
        reading: dict[str, Callable[[], object]] = {source: partial(read, where) for source, where in sources.items()}
        reading["parsing alone"] = partial(parse, messages)
        learning: dict[str, Callable[[], object]] = {
            source: partial(learn, where, folder) for source, where in sources.items()
        }
        saving = {source: partial(learn, where, folder, "--every", "1000") for source, where in sources.items()}
        found: dict[str, Any] = {"rows": rows}
        for what, jobs in (("read", reading), ("learned from", learning), ("and saved every 1,000", saving)):
            seconds = interleaved(jobs, min(size.rounds, 4), time.process_time)
            found[f"microseconds an event {what}"] = {name: round(1e6 * taken / rows, 2) for name, taken in seconds.items()}
        print(table_of(found))
        return found


def table_of(found: dict[str, Any]) -> str:
    """What was measured, as docs/streams.md has it."""
    read, learned, saved = (
        found[f"microseconds an event {what}"] for what in ("read", "learned from", "and saved every 1,000")
    )
    header = [
        "from",
        "events a second, read",
        "÷ file",
        "parsing",
        "events a second, learned from",
        "÷ file",
        "a checkpoint, ms",
    ]
    file, parsing = "NDJSON file", read["parsing alone"]
    lines = [
        [
            source,
            f"{1e6 / read[source]:,.0f}",
            f"{read[file] / read[source]:.2f}",
            "" if source == "Redis, fields" else f"{parsing / read[source]:.0%}",
            f"{1e6 / learned[source]:,.0f}",
            f"{learned[file] / learned[source]:.2f}",
            f"{saved[source] - learned[source]:.1f}",
        ]
        for source in learned
    ]
    return table(header, lines)


def keep(rows: int) -> None:
    """A broker with these rows, until standard input ends."""
    broker = MockKafka()
    broker.send("clicks", (json.dumps(row(k)).encode() for k in range(rows)))
    print(broker.host, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(int(sys.argv[2]))
    else:
        main("streams", __doc__, measure)
