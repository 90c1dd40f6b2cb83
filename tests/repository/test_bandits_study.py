"""The study of bandits: its game by hand, and that the page has what it measures."""

from __future__ import annotations

import numpy as np
import pytest
from bandit_peers import PACKAGES, PLAYERS, Ours
from bandits import CHOICES, MARKS, PAGE, REPORTED, measure, played, table

from onlinevi.bandit import Greedy

X = np.random.default_rng(0).standard_normal((40, 3))
Y = (X[:, 0] > 0.0).astype(int)


def test_a_game_is_played_by_hand_alike() -> None:
    reward, microseconds = played(lambda arms, seed: Ours(arms, seed, Greedy()), 0, X, Y, 2)
    bandit, right = Ours(2, 0, Greedy()).bandit, 0
    for x, label in zip(X, Y.tolist(), strict=True):
        choice = bandit.choose(x)
        right += choice.arm == label
        bandit.reward(choice.id, choice.arm == label)
    assert reward == right / 40
    assert microseconds > 0.0


def test_the_table_has_means_and_the_best_in_bold() -> None:
    ours = {name: make for name, make in PLAYERS.items() if name.startswith("onlinevi")}
    found = measure(ours, {"one": lambda: (X, Y), "other": lambda: (X, 1 - Y)}, seeds=2, rows=20)
    lines = table(found).splitlines()
    assert lines[0] == "| | one | other | mean | µs a decision |"
    assert len(lines) == 2 + len(ours)
    one = [float(line.split("|")[2].strip(" *")) for line in lines[2:]]
    assert all(("**" in line.split("|")[2]) == (value == max(one)) for line, value in zip(lines[2:], one, strict=True))
    assert one == pytest.approx([np.mean([reward for reward, _ in own["one"]]) for own in found.values()], abs=6e-4)


def test_the_page_has_all_players_and_choices() -> None:
    page = PAGE.read_text(encoding="utf-8")
    begin, end = MARKS
    measured = page.partition(begin)[2].partition(end)[0]
    names = [line.split("|")[1].strip() for line in measured.splitlines() if line.startswith("| ")]
    assert names[1:] == list(PLAYERS)
    assert measured.splitlines()[1].split("|")[2 : 2 + len(REPORTED)] == [f" {name} " for name in REPORTED]
    assert all(package in measured for package in PACKAGES)
    assert all(f"\n| {name} |" in page for name in CHOICES)
