"""One front door: a table in, forecasts out, in the kind of table that came.

The flats are generated: what they cost depends on their size, their town and the day.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import onlinevi as ovi

# %% A table as people have them: numbers, names, dates, holes
rng = np.random.default_rng(0)
flats = pd.DataFrame(
    {
        "size": rng.normal(70.0, 20.0, 1000).round(1),
        "town": rng.choice(["Bonn", "Köln", "Ulm"], 1000),
        "listed": pd.date_range("2024-01-01", periods=1000, freq="D"),
    }
)
flats["price"] = (3.0 * flats["size"] + 40.0 * (flats["town"] == "Bonn") + 0.02 * flats.index + rng.normal(0, 5, 1000)).round(
    1
)
flats.loc[rng.choice(1000, 50, replace=False), "size"] = np.nan

# %% Learn, and predict others
model = ovi.fit(flats[:900], target="price", effort="light")
print(model.predict(flats[900:903]).round(1))
print(model.predict({"size": 100.0, "town": "Ulm", "listed": "2026-06-01"})["prediction"] > 300.0)

# %% Go on learning: each row is predicted before its price is used
said = model.learn(flats[900:])
print(f"{len(said)} forecasts, {(said['label'].between(said['lower'], said['upper'])).mean():.0%} of the prices within them")
print(model.certificate.sentence)

# %% The same file that onlinevi run writes
path = Path(tempfile.mkdtemp()) / "model.ovi"
model.save(path)
again = ovi.open(path)
print("the same forecasts:", again.predict(flats).equals(model.predict(flats)))
