"""Models behind HTTP under load: ours, which keeps every event on disk, and a pipeline of River's behind FastAPI, which
pickles itself after every event or keeps nothing.

    python benchmarks/serve.py [--seconds 4] [--repeats 3] [--loads 8x16,8x64] [--rest 50] [--first]

Events of eight features, from as many connections as said, each of which waits for its answer before it sends again; one more
connection predicts a row at a time while they learn. Events acknowledged a second of the clock, and of the service's processor
time; milliseconds to an answer. The loader takes its part of the same processors. Loopback only, Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from onlinevi.adapters.serve.server import listen

CONNECTIONS, BATCHES, FEATURES = (1, 8, 32), (1, 16, 64), 8
DIFFERENT = 16
"""Calls that a connection sends in turn."""


class Service(NamedTuple):
    name: str
    serve: Callable[[socket.socket, Path], None]


class Measured(NamedTuple):
    events_a_second: float
    of_processor: float
    """Events a second of the service's own processor time: what is left of a busy machine's noise."""
    learn_p50: float
    learn_p99: float
    predict_p50: float
    predict_p99: float
    refused: float
    """The part of the calls that were told to come back."""


def onlinevi_with(rule: str, effort: str, queued: int = 20_000) -> Callable[[socket.socket, Path], None]:
    """Ours, with one model."""

    def serve(listening: socket.socket, folder: Path) -> None:
        from onlinevi.adapters.serve import Folder, Limits, create_app
        from onlinevi.adapters.serve.server import Server, until_stopped
        from onlinevi.runs import Settings

        models = Folder(folder, Limits(queued=queued))
        models.make("m", Settings("y", task="classes", rule=rule, effort=effort))  # type: ignore[arg-type]
        until_stopped(Server(create_app(models)), listening, models)

    return serve


def river_with(pickles: bool) -> Callable[[socket.socket, Path], None]:
    """A pipeline of River's as people serve it: one process, a lock, and a pickle after every event or none at all."""

    def serve(listening: socket.socket, folder: Path) -> None:
        import pickle

        import uvicorn
        from fastapi import FastAPI
        from river.linear_model import LogisticRegression
        from river.preprocessing import StandardScaler

        app, model, lock = FastAPI(), StandardScaler() | LogisticRegression(), threading.Lock()

        @app.post("/models/m/learn")
        def learn(body: dict[str, Any]) -> Any:
            with lock:
                for event in body.get("events") or [body]:
                    model.learn_one(event["row"], event["label"] == "yes")
                    if pickles:
                        (folder / "model.pickle").write_bytes(pickle.dumps(model))
            return {"learned": len(body.get("events") or [body])}

        @app.post("/models/m/predict")
        def predict(body: dict[str, Any]) -> Any:
            return {"probability": model.predict_proba_one(body["row"]).get(True, 0.5)}

        uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])

    return serve


def request(path: str, document: Any) -> bytes:
    body = json.dumps(document).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Connection:
    """A connection that sends whole requests and waits for whole answers."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, content: bytes) -> int:
        """The status of the answer."""
        self._socket.sendall(content)
        read = b""
        while b"\r\n\r\n" not in read:
            read += self._socket.recv(65_536)
        head, _, rest = read.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(rest) < length:
            rest += self._socket.recv(65_536)
        return int(head[9:12])


def event(draw: random.Random) -> dict[str, Any]:
    row = {f"x{j}": draw.gauss(0.0, 1.0) for j in range(FEATURES)}
    return {"row": row, "label": "yes" if sum(row.values()) + draw.gauss(0.0, 1.0) > 0.0 else "no"}


def learn(port: int, connections: int, batch: int, seconds: float, rest: float = 0.0) -> tuple[list[float], int]:
    """Learn by so many connections, each with calls of so many events and a rest behind each: the seconds of each call, and
    how many were refused."""

    def calls_of(k: int) -> list[bytes]:
        draw = random.Random(k)
        made = [{"events": [event(draw) for _ in range(batch)]} if batch > 1 else event(draw) for _ in range(DIFFERENT)]
        return [request("/models/m/learn", each) for each in made]

    def one(calls: list[bytes]) -> tuple[list[float], int]:
        connection, times, refused = Connection(port), list[float](), 0
        while (began := time.perf_counter()) < end:
            if connection.call(calls[len(times) % len(calls)]) == 200:
                times.append(time.perf_counter() - began)
            else:
                refused += 1
            time.sleep(rest)
        return times, refused

    prepared = [calls_of(k) for k in range(connections)]
    end = time.perf_counter() + seconds
    with ThreadPoolExecutor(connections) as threads:
        found = list(threads.map(one, prepared))
    return [time_ for times, _ in found for time_ in times], sum(refused for _, refused in found)


def predict(port: int, seconds: float) -> list[float]:
    """Predict a row now and then: the seconds of each call."""
    draw, connection, times = random.Random(-1), Connection(port), list[float]()
    call, end = request("/models/m/predict", {"row": event(draw)["row"]}), time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        assert connection.call(call) == 200
        times.append(time.perf_counter() - began)
        time.sleep(0.01)
    return times


def processor_seconds(process: int) -> float:
    """What a process has used of processors, its threads together."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def load(service: int, port: int, connections: int, batch: int, seconds: float, rest: float) -> Measured:
    """Learn by so many connections, and predict beside them, from a process of its own each."""
    used = processor_seconds(service)
    with ProcessPoolExecutor(2, get_context("fork")) as processes:
        learning = processes.submit(learn, port, connections, batch, seconds, rest)
        waits, (calls, refused) = processes.submit(predict, port, seconds).result(), learning.result()
    used = processor_seconds(service) - used
    calls, waits = sorted(calls), sorted(waits)

    def at(times: list[float], part: float) -> float:
        return 1e3 * times[min(int(part * len(times)), len(times) - 1)] if times else float("nan")

    quantiles = (at(times, part) for times in (calls, waits) for part in (0.5, 0.99))
    events = len(calls) * batch
    return Measured(events / seconds, events / max(used, 1e-9), *quantiles, refused / max(refused + len(calls), 1))


def measured(
    service: Service, loads: Iterable[tuple[int, int]], seconds: float, rest: float
) -> Iterator[tuple[str, Measured]]:
    """Loads, by connections and events a call, on one service in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        child = os.fork()
        if child == 0:
            try:
                service.serve(listening, Path(folder))
            finally:
                os._exit(0)
        try:
            for size in (1, 16, 128):  # begins, and compiles
                learn(port, 1, size, 1.0)
            predict(port, 1.0)
            for connections, batch in loads:
                yield f"{connections} × {batch}", load(child, port, connections, batch, seconds, rest)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def medians(runs: Iterable[Iterable[tuple[str, Measured]]]) -> Iterator[tuple[str, Measured]]:
    """Of several runs on services of their own, each figure's median by itself."""
    for one in zip(*runs, strict=True):
        yield one[0][0], Measured(*(statistics.median(figures) for figures in zip(*(each for _, each in one), strict=True)))


SERVICES = (
    Service("onlinevi, one rule (implicit)", onlinevi_with("implicit", "default")),
    Service("onlinevi, default, light", onlinevi_with("auto", "light")),
    Service("onlinevi, default", onlinevi_with("auto", "default")),
    Service("River + FastAPI, pickled after each event", river_with(pickles=True)),
    Service("River + FastAPI, nothing kept", river_with(pickles=False)),
)


OVERLOADED = Service("onlinevi, one rule, a queue of 1,000 rows", onlinevi_with("implicit", "default", queued=1000))
"""Thirty-two connections with a hundred events a call ask for more than three times what may wait, and come back at once,
though they are told to wait a second."""


def loads_of(text: str) -> list[tuple[int, int]]:
    """Connections and events a call: 8x16,8x64."""
    return [(int(connections), int(batch)) for connections, _, batch in (one.partition("x") for one in text.split(","))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    normal = ",".join(f"{connections}x{batch}" for connections in CONNECTIONS for batch in BATCHES)
    parser.add_argument("--loads", type=loads_of, default=normal, help="connections x events a call, at commas")
    parser.add_argument("--rest", type=float, default=0.0, metavar="MS", help="between two calls of a connection (default: 0)")
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="the medians of so many runs (default: 1)")
    parser.add_argument("--only", metavar="TEXT", default="", help="services that have this in their names")
    parser.add_argument("--first", action="store_true", help="before all other work of the machine; needs root")
    options = parser.parse_args()
    if options.first:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    print(f"Load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print("| service | connections × events a call | events a second | of its processor time | learn p50, ms | p99 ", end="")
    print("| predict p50, ms | p99 | refused |\n|---|---|---|---|---|---|---|---|---|")
    every = [*((one, options.loads) for one in SERVICES), (OVERLOADED, [(1, 1), (32, 100)])]
    for service, loads in (one for one in every if options.only in one[0].name):
        runs = [list(measured(service, loads, options.seconds, options.rest / 1e3)) for _ in range(options.repeats)]
        for name, one in medians(runs):
            rates, times = (f"{value:,.0f}" for value in one[:2]), (f"{value:.1f}" for value in one[2:6])
            print(f"| {' | '.join((service.name, name, *rates, *times, f'{one.refused:.0%}'))} |", flush=True)
    print(f"Load behind it: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    sys.exit(main())
