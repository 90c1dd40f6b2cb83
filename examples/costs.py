"""Decide by what mistakes cost, and leave open what is not clear: tumours to be looked at where the set has both names."""

# %% The tumours, and what a wrong word costs: to call a malignant one benign, twenty times as much
import os
import shlex
import tempfile
from pathlib import Path

from onlinevi.adapters.cli import main

os.chdir(tempfile.mkdtemp())
print("$ cd", Path.cwd(), flush=True)


def shell(command):
    print("$ onlinevi", command)
    main(shlex.split(command))


Path("costs.csv").write_text("was,benign,malignant\nbenign,0,1\nmalignant,20,0\n")
print(Path("costs.csv").read_text(), end="")
shell("data --write breast.csv")

# %% One pass: the likeliest, the set that holds the answer as often as asked, and what is decided
shell("run breast.csv --target diagnosis --rule implicit --cost costs.csv --out out --predictions said.csv --quiet")
shell("run breast.csv --target diagnosis --rule implicit --cost costs.csv --abstain --coverage 0.99 --quiet")
rows = Path("said.csv").read_text().splitlines()
print(rows[0])
print(next(row for row in rows[100:] if row.split(",")[1] != row.split(",")[4]))

# %% The same in Python
import onlinevi as ovi  # noqa: E402

costs = {"benign": {"benign": 0, "malignant": 1}, "malignant": {"benign": 20, "malignant": 0}}
model = ovi.fit("breast.csv", target="diagnosis", rule="implicit", cost=costs)
print({name: round(model.metrics[name], 3) for name in ("coverage", "set_size", "cost", "cost_of_guess")})
