"""Credit scoring from a CSV file: numbers, words and holes as they are, in one pass.

The applications are generated: 2,000 of them, of which age, income, the housing and the length of the loan decide.
"""

# %% A file such as a bank has
import csv
import os
import random
import shlex
import tempfile
from pathlib import Path

from onlinevi.adapters.cli import main

os.chdir(tempfile.mkdtemp())
print("$ cd", Path.cwd(), flush=True)


def shell(command):
    print("$ onlinevi", command)
    main(shlex.split(command))


rng = random.Random(0)


def application():
    age, months, housing = rng.uniform(20, 70), rng.choice([12, 24, 36, 48]), rng.choice(["own", "rent", "free"])
    income = round(rng.lognormvariate(10.3, 0.5))
    score = 0.04 * (age - 40) + income / 30_000 - months / 18 + (1.2 if housing == "own" else 0.0)
    paid = "yes" if score + rng.gauss(0, 1) > 0 else "no"
    return [round(age), "" if rng.random() < 0.1 else income, rng.randrange(500, 15_000), months, housing, paid]


with Path("credit.csv").open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["age", "income", "amount", "months", "housing", "paid"])
    rows.writerows(application() for _ in range(2_000))
Path("new.csv").write_text("age,income,amount,months,housing\n61,52000,3000,12,own\n22,,9000,48,rent\n")

# %% Learn, predict, look inside
shell("run credit.csv --target paid --out out")
shell("predict out/model.ovi new.csv")
shell("info out/model.ovi")
