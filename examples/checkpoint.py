"""Stop and go on: the default learner is saved between two days of a stream, and a damaged copy of the file is refused."""

import tempfile
from pathlib import Path

import numpy as np

import onlinevi as ovi

rng = np.random.default_rng(0)
X = rng.standard_normal((2_000, 3)) * [1.0, 1e3, 1e-3]
y = X @ [2.0, -1e-3, 500.0] + 0.1 * rng.standard_normal(2_000)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.ovi"
    learner = ovi.Auto(loss=ovi.Squared())
    monday, _ = learner.update_many(learner.init(3), X[:1_000], y[:1_000])
    ovi.save(path, learner, monday, extra={"rows": [0, 1_000], "columns": ["a", "b", "c"]})

    saved = ovi.load(path)  # in another process, on another day
    print(f"{path.stat().st_size / 1000:.0f} kB, {saved.state.count} events, rows {saved.extra['rows']}")
    tuesday, _ = saved.learner.update_many(saved.state, X[1_000:], y[1_000:])
    straight, _ = learner.update_many(monday, X[1_000:], y[1_000:])
    print("same bits as without a stop:", bool((tuesday.mean == straight.mean).all() and tuesday.loss == straight.loss))

    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    try:
        ovi.load(path)
    except ovi.checkpoint.CheckpointError as error:
        print("one flipped bit:", str(error).partition("model.ovi: ")[2])
