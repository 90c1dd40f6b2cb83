"""Parts of the default on made streams that show one thing each: real extremes, an abrupt change, mixed classes.

``python experiments/default_parts.py`` prints the figures that docs/choosing.md gives of them; River's are left out where it
is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

import onlinevi as ovi
from onlinevi.learners.default import recipe

Stream = tuple[np.ndarray, np.ndarray]


def river(count: int, seed: int, keeps: float = 0.9, wild: float = 0.1) -> Stream:
    """The flow of the next day from those of three days, the rain of two, and the season."""
    rng, days = np.random.default_rng(seed), np.arange(count + 10)
    wet = rng.random(count + 10) < 0.3
    rain = np.where(wet, rng.gamma(0.4, 10, count + 10), 0) * (1 + 0.8 * np.sin(days / 58))
    flow, fast = np.zeros(count + 10), 0.0
    flow[0] = 10.0
    for day in range(1, count + 10):
        fast = 0.6 * fast + 0.4 * rain[day]
        slow, gust = keeps * flow[day - 1] + (1 - keeps) * 5.0, wild * flow[day - 1] * rng.standard_normal()
        flow[day] = max(0.1, slow + 0.8 * fast * np.sqrt(1 + 0.02 * flow[day - 1]) + gust)
    season = np.arange(count) / 58
    past = [flow[9 - k : count + 9 - k] for k in range(3)] + [rain[9 : count + 9], rain[8 : count + 8]]
    return np.column_stack([*past, np.sin(season), np.cos(season)]), flow[10:]


def bursts(count: int, seed: int) -> Stream:
    """e to the power of what wanders and jumps now and then, from its last five values."""
    rng, level = np.random.default_rng(seed), np.zeros(count + 5)
    for t in range(1, count + 5):
        level[t] = 0.97 * level[t - 1] + 0.25 * rng.standard_normal() + (rng.random() < 0.02) * rng.exponential(1.0)
    values = np.exp(level)
    return np.column_stack([values[4 - k : count + 4 - k] for k in range(5)]), values[5:]


def heavy(count: int, seed: int, dim: int) -> Stream:
    """A straight line in columns with heavy tails, noise of std 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2.5, (count, dim))
    return X, X @ rng.standard_normal(dim) + rng.standard_normal(count)


def abrupt(seed: int, count: int = 10_000) -> Stream:
    """A straight line whose weights are drawn anew half-way, noise of std 1."""
    rng = np.random.default_rng(seed)
    X, early = rng.standard_normal((count, 5)), np.arange(count) < count // 2
    first, second = rng.standard_normal((2, 5))
    return X, np.where(early, X @ first, X @ second) + rng.standard_normal(count)


def shapes(count: int = 6_000, seed: int = 4) -> Stream:
    """Three classes, each a mixture of two of three shapes, in 21 columns with noise and 19 of noise alone."""
    rng = np.random.default_rng(seed)
    base = np.cumsum(rng.standard_normal((3, 21)), axis=1)
    base -= base.mean(axis=1)[:, None]
    base *= 2 / base.std()
    y, part = rng.integers(0, 3, count), rng.random(count)[:, None]
    X = part * base[y] + (1 - part) * base[(y + 1) % 3] + rng.standard_normal((count, 21))
    return np.hstack([X, rng.standard_normal((count, 19))]), y


EXTREMES: dict[str, Callable[[], Stream]] = {
    "river": lambda: river(8_000, 1),
    "quick river": lambda: river(8_000, 2, 0.7, 0.05),
    "slow river": lambda: river(4_000, 3, 0.95, 0.02),
    "bursts": lambda: bursts(8_000, 1),
    "bursts, fewer rows": lambda: bursts(3_000, 2),
    "heavy tails": lambda: heavy(4_000, 1, 6),
    "heavy tails, 15 columns": lambda: heavy(2_000, 2, 15),
}
Change = Callable[[Sequence[ovi.Learner]], list[ovi.Learner]]


def bent_alone(learners: Sequence[ovi.Learner]) -> list[ovi.Learner]:
    """Without those that see columns as they were before bending."""
    return [one for one in learners if not (isinstance(one, ovi.Expand) and isinstance(one.map, ovi.Unbent))]


def squared_error(stream: Stream, change: Change | None = None) -> float:
    """Of the default, or of one with other learners in its pool."""
    (X, y), inputs = stream, ovi.Inputs()
    pool = recipe.pool(recipe.Chosen(ovi.Squared(), "default"), X.shape[1] + 1)
    learner = ovi.Prepare(inputs, pool if change is None else replace(pool, learners=change(pool.learners)))
    trace = learner.update_many(learner.init(X.shape[1]), X, y)[1]
    return float(np.mean(np.square(trace.prediction - y)))


def of_river(stream: Stream) -> float:
    """The same of River's linear regression behind its scaler."""
    from river import linear_model, preprocessing

    model, total = preprocessing.StandardScaler() | linear_model.LinearRegression(), 0.0
    for x, label in zip((dict(enumerate(row)) for row in stream[0].tolist()), stream[1].tolist(), strict=True):
        total += (model.predict_one(x) - label) ** 2
        model.learn_one(x, label)
    return total / len(stream[1])


def classes(stream: Stream) -> dict[str, float]:
    """Log loss of all classes: of the default, of learners on the columns alone, and of all learners heard only together."""
    X, y = stream
    chosen = recipe.Chosen(ovi.Logistic(), "default", one_of_many=True)
    whole = recipe.pool(chosen, X.shape[1] + 1)
    columns = whole.learners[0]
    together = replace(whole, learners=[*columns.learners, *whole.learners[1:]])  # type: ignore[attr-defined]
    found = {}
    for name, pool in {"default": whole, "columns alone": columns, "heard together": together}.items():
        learner = ovi.OneVsRest(ovi.Prepare(ovi.Inputs(), pool), int(y.max()) + 1)
        found[name] = float(learner.update_many(learner.init(X.shape[1]), X, y)[1].average_loss[-1])
    return found


def main() -> None:
    for name, make in EXTREMES.items():
        stream = make()
        plain, whole = squared_error(stream, bent_alone), squared_error(stream)
        print(f"{name}: squared error {whole:.4g}, without columns that are not bent {plain:.4g}: {whole / plain:.3f}")
    for seed in range(3):
        stream = abrupt(seed)
        river_says = f", River {np.sqrt(of_river(stream)):.4f}" if find_spec("river") else ""
        print(f"abrupt change {seed}: RMSE {np.sqrt(squared_error(stream)):.4f}{river_says}")
    print("mixed shapes: log loss", ", ".join(f"{name} {loss:.4f}" for name, loss in classes(shapes()).items()))


if __name__ == "__main__":
    main()
