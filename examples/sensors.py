"""A sensor stream from standard input: each reading predicted before it is known, through a change and with gaps.

The readings are generated. At half of the stream the machine is serviced, and what its load costs changes.
"""

# %% A machine that writes a line of JSON a minute
import json
import math
import os
import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

os.chdir(tempfile.mkdtemp())
print("$ cd", Path.cwd(), flush=True)
rng = random.Random(0)


def reading(minute):
    load, outside = rng.uniform(0, 100), 15 + 10 * math.sin(minute / 230) + rng.gauss(0, 1)
    watts = 800 + (9 if minute < 1_500 else 6) * load - 12 * outside + rng.gauss(0, 20)
    missing = rng.random() < 0.05
    return {"load": None if missing else load, "outside": outside, "mode": "day" if outside > 15 else "night", "watts": watts}


# %% Into the pipe as they come
command = "run - --target watts --predictions said.ndjson"
print("$ tail -f readings.ndjson | onlinevi", command)
with subprocess.Popen([sys.executable, "-m", "onlinevi", *shlex.split(command)], stdin=subprocess.PIPE, text=True) as learning:
    for minute in range(3_000):
        print(json.dumps(reading(minute)), file=learning.stdin)

# %% What was said before each reading was seen
said = [json.loads(line) for line in Path("said.ndjson").read_text().splitlines()]
for start, stop in ((100, 1_500), (1_500, 1_550), (1_550, 3_000)):
    rows = said[start:stop]
    off = sorted(abs(row["prediction"] - row["label"]) for row in rows)[len(rows) // 2]
    inside = sum(row["lower"] <= row["label"] <= row["upper"] for row in rows) / len(rows)
    print(f"minutes {start:>4} to {stop:>4}: half of the errors below {off:3.0f} W, {inside:.0%} inside the 90% interval")
