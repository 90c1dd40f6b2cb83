"""Shards side by side, as one model: processes, a certificate of all, a worker that is killed, and new rows behind it."""

# %% Rows in eight files, each with a town that the others lack
import os
import signal
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import onlinevi as ovi

FOLDER = Path(tempfile.gettempdir()) / "onlinevi-fleet"


def write(folder):
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number in range(8):
        X = rng.standard_normal((250, 2)) * [1.0, 100.0]
        up = X[:, 0] - X[:, 1] / 100.0 + 0.5 * rng.standard_normal(250) > 0.0
        lines = [f"{a:.4f},{b:.2f},town {number},{label}" for (a, b), label in zip(X, up, strict=True)]
        (folder / f"part-{number}.csv").write_text("a,b,town,up\n" + "\n".join(lines) + "\n")


def killed_once(marker, path):
    """A source whose worker is killed the first time that it is asked."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path


def main():
    # %% One call; workers import this file, so what it does stands under main
    write(FOLDER)
    leaf = ovi.Linear(ovi.Logistic(), ovi.Implicit(), ovi.FullCovariance(box=None))
    learner = ovi.Prepare(ovi.Inputs(), leaf)
    fleet = ovi.learn_shards(learner, FOLDER / "part-*.csv", target="up", workers=2)
    print(fleet, "from", len({shard.name for shard in fleet.shards}), "files")
    print("columns", [fleet.job.schema.name(place) for place in range(4)], "…")

    # %% What all of them paid, against one set of weights
    live = fleet.certificate
    print(f"average loss {fleet.state.average_loss:.3f}; no weights up to length 3 beat it by more than", end=" ")
    print(f"{live.within(3.0) / live.count:.3f} a row")

    # %% A worker that dies costs time, and not a bit of the result
    paths = sorted(FOLDER.glob("part-*.csv"))
    sources = {str(path): partial(killed_once, FOLDER / "killed", path) if path.stem[-1] == "3" else path for path in paths}
    again = ovi.learn_shards(learner, sources, target="up", workers=2)
    print("attempts at part-3:", again.shards[3].attempts)
    print("the same bits:", again.state.alone().array.tobytes() == fleet.state.alone().array.tobytes())


if __name__ == "__main__":
    main()
