"""Quantile forecasting: how much to have ready so that nine hours in ten it is enough.

The orders are generated: a day's rhythm that gets stronger over half a year, and noise that is skewed.
"""

# %% Half a year of hours
import numpy as np

import onlinevi as ovi

rng, hours = np.random.default_rng(0), np.arange(4_400)
angle = 2 * np.pi * hours / 24
usual = 200 + (20 + hours / 100) * np.sin(angle) + 40 * (hours // 24 % 7 >= 5)
orders = usual + 40 * (rng.gamma(2.0, size=len(hours)) - 2.0)
X = np.column_stack([np.sin(angle), np.cos(angle), hours // 24 % 7 >= 5])

# %% Every forecast is made before its hour
ready = ovi.auto(X, orders, loss=ovi.Pinball(0.9)).prediction

# %% Against a rule of thumb: what was enough in nine tenths of the last four weeks
weeks = 4 * 7 * 24
thumb = np.array([np.quantile(orders[max(0, hour - weeks) : hour], 0.9) if hour else 0.0 for hour in hours])
for start, stop in ((0, 400), (400, 4_400)):
    now = orders[start:stop]
    for name, amount in (("rule of thumb", thumb[start:stop]), ("forecast", ready[start:stop])):
        cost = np.where(now > amount, 9 * (now - amount), amount - now).mean()  # a miss costs nine times a left-over
        print(f"hours {start:>3} to {stop:>4}, {name:<13}: enough in {np.mean(now <= amount):.0%}, costs {cost:4.0f} an hour")
