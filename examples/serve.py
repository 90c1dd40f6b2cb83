"""Electricity prices through the service: each half hour is predicted, and its label comes a while later.

Needs the extra ``serve`` and the Electricity data (``onlinevi data`` says where it is looked for). The service runs in a
process of its own, is killed half way through, and goes on with what it had acknowledged.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path

import onlinevi as ovi
from onlinevi.client import Client

ROWS, FIRST, LATE = int(os.environ.get("ROWS", "3000")), 100, 48  # a day of half hours

stream = ovi.datasets.load("electricity")
models = Path(tempfile.mkdtemp())
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]


def started():
    call = [sys.executable, "-m", "onlinevi", "serve", str(models), "--port", str(port), "--quiet"]
    return subprocess.Popen([*call, "--new", "price-moves", "--target", "up", "--effort", "light"])


# %% Each row is predicted under an id, and its label follows a day later
rows = [dict(zip(stream.names, x, strict=True)) for x in stream.X[:ROWS].tolist()]
labels = ["yes" if y > 0 else "no" for y in stream.y[:ROWS]]
service = started()
with Client(f"http://127.0.0.1:{port}", patience=120) as client:
    model, waiting, right = client["price-moves"], deque(), 0
    model.learn_many([{"row": rows[k], "label": labels[k], "id": f"{k}"} for k in range(FIRST)])
    for start in range(FIRST, ROWS, 10):
        numbers = range(start, min(start + 10, ROWS))
        said = model.predict_many([rows[k] for k in numbers], ids=[f"{k}" for k in numbers])
        right += sum(one["prediction"] == labels[k] for one, k in zip(said, numbers, strict=True))
        waiting.extend(numbers)
        while len(waiting) > LATE:
            late = [waiting.popleft() for _ in range(10)]
            model.learn_many([{"id": f"{k}", "label": labels[k]} for k in late])
        if start == FIRST + 10 * (ROWS // 20):
            before = model.about()["events"]
            service.kill()
            service.wait()
            service = started()
            assert model.about()["events"] == before
            print(f"killed behind {before:,} events, and all of them are there")
    print(f"right a day ahead: {right / (ROWS - FIRST):.1%} of {ROWS - FIRST:,}")
    print(model.certificate()["sentence"])
    print("the same model in Python:", ovi.open(model.download(models / "price-moves.ovi")))
service.send_signal(signal.SIGTERM)
service.wait()
