"""A day of advertisements, whose clicks come later and by key: rows wait, and what no click came for is learned as none."""

# %% Who is shown what, and who clicks: most within minutes, and the log of clicks has some twice and some of other pages
import io
import os
import shlex
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from onlinevi.adapters.cli import main

os.chdir(tempfile.mkdtemp())
print("$ cd", Path.cwd(), flush=True)


def shell(command):
    print("$ onlinevi", command)
    main(shlex.split(command))


rng = np.random.default_rng(0)
count = 4000
shown = np.sort(rng.uniform(0, 24 * 3600, count))
size, evening = rng.standard_normal(count), (shown > 18 * 3600) * 1.0
clicks = rng.random(count) < 1 / (1 + np.exp(1.5 - size - evening))
later = shown + rng.exponential(240, count)
twice = clicks & (rng.random(count) < 0.03)
clicked = np.concatenate([np.flatnonzero(clicks), np.flatnonzero(twice), [10**6]])
log = zip(np.concatenate([later[clicks], later[twice] + 5, [40_000]]), clicked, strict=True)

rows = zip(shown, size, np.where(evening, "evening", "day"), strict=True)
text = "".join(f"{when:.0f},ad{number},{own:.3f},{part}\n" for number, (when, own, part) in enumerate(rows))
Path("shown.csv").write_text("when,id,size,part\n" + text)
Path("clicks.csv").write_text("when,id,clicked\n" + "".join(f"{when:.0f},ad{number},1\n" for when, number in sorted(log)))

# %% Each row is predicted when it comes, and learned when its click comes, or as 0 after half an hour without one
run = "run shown.csv --labels clicks.csv --target clicked --key id --time when --drop when --rule implicit --otherwise 0"
shell(f"{run} --within 30m --predictions said.csv -q")

# %% Who waits too little learns too much of nobody clicking
with redirect_stdout(io.StringIO()):
    shell(f"{run} --within 2m --predictions short.csv -q")
for name in ("said.csv", "short.csv"):
    said = np.loadtxt(name, delimiter=",", skiprows=1, usecols=2)
    print(f"{name:9}  said {said[count // 2 :].mean():.1%} on average, and {clicks[count // 2 :].mean():.1%} clicked")
