"""A run that is killed goes on from its last checkpoint, and ends with the same bits as one that was never stopped."""

# %% A file that takes a while
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from onlinevi.adapters.cli import main

os.chdir(tempfile.mkdtemp())
print("$ cd", Path.cwd(), flush=True)


def shell(command):
    print("$ onlinevi", command)
    main(shlex.split(command))


rng = np.random.default_rng(0)
X = rng.standard_normal((60_000, 3))
y = X @ [1.0, -2.0, 0.5] + rng.logistic(size=len(X)) > 0
rows = "".join(f"{a:.4f},{b:.4f},{c:.4f},{label}\n" for (a, b, c), label in zip(X.tolist(), y.tolist(), strict=True))
Path("clicks.csv").write_text("a,b,c,clicked\n" + rows)

# %% Killed behind its first checkpoint: no time to say goodbye
command = "run clicks.csv --target clicked --rule implicit --out out --predictions said.csv --every 10000 --resume"
print("$ onlinevi", command)
with subprocess.Popen([sys.executable, "-m", "onlinevi", *shlex.split(command)]) as running:
    while not Path("out/model.ovi").exists() and running.poll() is None:
        time.sleep(0.01)
    running.kill()
print("Killed")

# %% The same call goes on
shell(command)

# %% As if nothing had happened
shell("run clicks.csv --target clicked --rule implicit --out whole --predictions whole.csv")
print("the same predictions, to the bit:", Path("said.csv").read_bytes() == Path("whole.csv").read_bytes())
