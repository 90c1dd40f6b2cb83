"""Whether the intervals of ``bandit.value`` hold at all times, on logs whose makers want them broken.

``python experiments/adversary_values.py`` prints the tables of docs/bandits.md. In each of ``--logs`` logs of ``--rows``
decisions the rewards of all arms, the log's own probabilities, the policy that is asked about, what was expected and which
rewards are missing are chosen by an adversary who knows all that came before; only the arm is drawn. A log is broken if its
interval at any of its decisions does not hold the average that the policy would have earned so far. Each side has 2.5 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from onlinevi.bandit.evidence import COSTS, RATES, log_evidence, lower_bounds
from onlinevi.bandit.off_policy import Table

ALPHA = 0.025
ARMS = 3


class Game:
    """Logs that are made side by side: what an adversary may look at, and what it has to say."""

    def __init__(self, seed: int, logs: int) -> None:
        self.rng, self.logs = np.random.default_rng(seed), logs
        self.round = 0
        self.won = np.zeros((logs, len(RATES)))
        """The logarithm of what bets without expectations have won against the truth, by their rates."""
        self.totals, self.paid, self.counts = np.full(logs, 0.5), np.zeros((logs, ARMS)), np.ones((logs, ARMS))
        self.broken = np.zeros(logs, dtype=bool)

    def learn(self, arm: np.ndarray, ratio: np.ndarray, reward: np.ndarray, truth: np.ndarray) -> None:
        every = np.arange(self.logs)
        self.paid[every, arm] += reward
        self.counts[every, arm] += 1.0
        excess = ratio * reward
        before = np.minimum(self.totals / (self.round + 1.0), 1.0)
        self.won += (excess - truth)[:, np.newaxis] * RATES - np.square(excess - before)[:, np.newaxis] * COSTS
        self.totals += excess
        self.broken |= self.evidence() >= -np.log(ALPHA)
        self.round += 1

    def evidence(self) -> np.ndarray:
        return np.logaddexp.reduce(self.won, axis=1) - np.log(len(RATES))


Move = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Of each log: the log's own probabilities, the policy's, the rewards, what is expected, and whether each would be missing."""


def _dealt(game: Game, smallest: float) -> np.ndarray:
    """Probabilities of arms, each at least so large."""
    drawn = game.rng.dirichlet(np.full(ARMS, 0.3), game.logs)
    return smallest + (1.0 - ARMS * smallest) * drawn


def _flips(game: Game, chances: np.ndarray) -> np.ndarray:
    return (game.rng.random(chances.shape) < chances).astype(float)


def _present(game: Game) -> np.ndarray:
    return np.zeros((game.logs, ARMS), dtype=bool)


def steady(game: Game) -> Move:
    """Arms are drawn alike, rewards are 0 or 1, what is expected is right."""
    means = np.tile([0.2, 0.5, 0.8], (game.logs, 1))
    alike, third = np.full((game.logs, ARMS), 1.0 / ARMS), np.tile([0.0, 0.0, 1.0], (game.logs, 1))
    return alike, third, _flips(game, means), means, _present(game)


def rare(game: Game) -> Move:
    """The policy wants what the log hardly ever does: once in 500."""
    own = np.tile([0.499, 0.499, 0.002], (game.logs, 1))
    return own, np.tile([0.0, 0.0, 1.0], (game.logs, 1)), _flips(game, np.full((game.logs, ARMS), 0.5)), own, _present(game)


def greedy(game: Game) -> Move:
    """The log follows what has paid, and rewards drift against it."""
    means = game.paid / game.counts
    best = (means == means.max(axis=1, keepdims=True)).astype(float)
    own = 0.97 * best / best.sum(axis=1, keepdims=True) + 0.03 / ARMS
    turn = 0.5 + 0.4 * np.sin(game.round / 150.0 + 2.0 * np.arange(ARMS))
    rewards = _flips(game, np.where(best > 0.0, 0.6 * turn, turn))
    return own, np.full((game.logs, ARMS), 1.0 / ARMS), rewards, means, _present(game)


def spiteful(game: Game) -> Move:
    """Any probabilities down to 0.001, rewards by which side is behind, expectations that are wrong."""
    own, asked = _dealt(game, 0.001), game.rng.dirichlet(np.full(ARMS, 0.3), game.logs)
    behind = game.evidence()[:, np.newaxis] < game.rng.normal(0.0, 1.0, (game.logs, 1))
    rewards = np.where(behind, 1.0 - _flips(game, own), game.rng.random((game.logs, ARMS)) ** 3)
    return own, asked, rewards, 1.0 - rewards, _present(game)


def hiding(game: Game) -> Move:
    """Rewards are missing where they would tell most."""
    own, asked = _dealt(game, 0.01), _dealt(game, 0.0)
    rewards = _flips(game, np.full((game.logs, ARMS), 0.4))
    hidden = (rewards == game.round % 2) & (game.rng.random(rewards.shape) < 0.3)
    return own, asked, rewards, np.full(rewards.shape, 0.4), hidden


def even(game: Game) -> Move:
    """The policy wants one of two arms that are drawn alike, and both pay: terms of 0 or 2, where the bound is sharpest."""
    own, sure = np.tile([0.5, 0.5, 0.0], (game.logs, 1)), np.tile([1.0, 0.0, 0.0], (game.logs, 1))
    return own, sure, np.ones((game.logs, ARMS)), np.zeros((game.logs, ARMS)), _present(game)


CHANCES = np.array([0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001])


def bold(game: Game) -> Move:
    """The largest chance of a win that breaks the interval at once; once it is broken, nothing moves any more."""
    ratio = 1.0 / CHANCES
    before = np.minimum(game.totals / (game.round + 1.0), 1.0)
    gain = (ratio - 1.0)[:, np.newaxis] * RATES - np.square(ratio - before[:, np.newaxis])[:, :, np.newaxis] * COSTS
    would = np.logaddexp.reduce(game.won[:, np.newaxis] + gain, axis=2) - np.log(len(RATES)) >= -np.log(ALPHA)
    chance = np.where(would.any(axis=1), CHANCES[would.argmax(axis=1)], game.rng.choice(CHANCES[:4], game.logs))
    chance[game.broken] = 1.0
    own = np.column_stack([chance, 1.0 - chance, np.zeros(game.logs)])
    return (
        own,
        np.tile([1.0, 0.0, 0.0], (game.logs, 1)),
        np.ones((game.logs, ARMS)),
        0.5 * np.ones((game.logs, ARMS)),
        _present(game),
    )


ADVERSARIES: dict[str, Callable[[Game], Move]] = {
    one.__name__: one for one in (steady, rare, greedy, spiteful, hiding, even, bold)
}


OF_LAW = "steady, the law's mean"
"""Where what is expected is right: the interval has to hold the mean reward too."""


def made(name: str, logs: int, rows: int, seed: int) -> tuple[list[Table], np.ndarray, np.ndarray]:
    """The logs, what the policy would have earned at each decision, and what the log's own was to earn."""
    adversary = ADVERSARIES["steady" if name == OF_LAW else name]
    game, every, moves, arms = Game(seed, logs), np.arange(logs), [], []
    for _ in range(rows):
        own, asked, rewards, expected, hidden = move = adversary(game)
        arm = (game.rng.random((logs, 1)) > np.cumsum(own[:, :-1], axis=1)).sum(axis=1)
        game.learn(arm, asked[every, arm] / own[every, arm], rewards[every, arm], (asked * rewards).sum(axis=1))
        moves.append(move)
        arms.append(arm)
    own, asked, rewards, expected, hidden = (np.stack(part, axis=1) for part in zip(*moves, strict=True))
    chosen = np.stack(arms, axis=1)
    told = np.take_along_axis(rewards, chosen[:, :, np.newaxis], axis=2)[:, :, 0]
    missing = np.take_along_axis(hidden, chosen[:, :, np.newaxis], axis=2)[:, :, 0]
    tables = [
        Table(told[one], missing[one], chosen[one], own[one], asked[one], expected[one], complete=True) for one in range(logs)
    ]
    truth = expected if name == OF_LAW else rewards
    return tables, (asked * truth).sum(axis=2), (own * truth).sum(axis=2)


SIDES = "below", "above", "gain below", "gain above"


def most(table: Table, truth: np.ndarray, own: np.ndarray) -> list[float]:
    """The most evidence that there ever is against the truth, by the sides of the intervals; 1/0.025 = 40 breaks one."""
    count, value, gain = np.arange(1.0, len(truth) + 1.0), np.cumsum(truth), np.cumsum(truth - own)
    found = []
    for is_gain, target, mirror in ((False, value, count - value), (True, gain, -gain)):
        for mirrored, aim in ((False, target), (True, mirror)):
            found.append(float(np.exp(log_evidence(table.side(mirrored=mirrored).bets(gain=is_gain), aim).max())))
    return found


def study(logs: int, rows: int) -> None:
    print(
        f"| {logs:,} logs of {rows:,} decisions | "
        + " | ".join(SIDES)
        + " | the interval | most evidence, of 40 |\n|---|"
        + "---|" * 6
    )
    for number, name in enumerate([*ADVERSARIES, OF_LAW]):
        tables, truth, own = made(name, logs, rows, seed=number)
        found = np.array([most(*one) for one in zip(tables, truth, own, strict=True)])
        broken = found >= 1.0 / ALPHA
        shares = [*broken.mean(axis=0), broken[:, :2].any(axis=1).mean()]
        print(f"| {name} | " + " | ".join(f"{share:.2%}" for share in shares) + f" | {found.max():.1f} |", flush=True)


def widths() -> None:
    """How wide intervals are, beside those of one look at a number of decisions that was fixed before."""
    print("\n| ten arms, drawn alike; the policy wants one | half the width | of one look | ratio |\n|---|---|---|---|")
    for rows in (1000, 10_000, 100_000):
        rng, every = np.random.default_rng(0), np.arange(rows)
        expected, chosen = rng.random((rows, 10)), rng.integers(0, 10, rows)
        told = (rng.random(rows) < expected[every, chosen]).astype(float)
        own, asked = np.full((rows, 10), 0.1), np.tile(np.eye(10)[0], (rows, 1))
        for complete in (False, True):
            table = Table(told, np.zeros(rows, dtype=bool), chosen, own, asked, expected, complete)
            lower, below = (
                lower_bounds(table.side(mirrored=side).bets(gain=False), ALPHA, [rows])[0] for side in (False, True)
            )
            half = 0.5 * (1.0 - (lower + below) / rows)
            terms = table.side().bets(gain=False)[-1].terms
            once = 1.96 * terms.std() / np.sqrt(rows)
            how = "with expectations" if complete else "without"
            print(f"| {rows:,} decisions, {how} | {half:.4f} | {once:.4f} | {half / once:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=1000)
    asked = parser.parse_args()
    study(asked.logs, asked.rows)
    widths()
