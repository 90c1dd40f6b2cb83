"""Policies by their closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from onlinevi.bandit import Greedy, Law, Thompson, Uniform, UpperBound, chance_of_best

LAW = Law(np.array([0.1, 0.3, 0.2]), np.array([1.0, 0.1, 0.5]))
RNG = np.random.default_rng(0)


def test_upper_bounds_by_hand() -> None:
    for width, best in ((0.0, 1), (0.1, 1), (0.3, 0), (1.0, 0)):  # 0.1 + width against 0.3 + width/10: they meet at 2/9
        assert UpperBound(width).probabilities(LAW, RNG).tolist() == np.eye(3)[best].tolist()


def test_upper_bounds_share_ties() -> None:
    prior = Law(np.zeros(4), np.ones(4))
    assert UpperBound(2.0).probabilities(prior, RNG).tolist() == [0.25] * 4


def test_a_part_at_random() -> None:
    assert Greedy(explore=0.3).probabilities(LAW, RNG) == pytest.approx([0.1, 0.8, 0.1])
    assert Uniform().probabilities(LAW, RNG) == pytest.approx([1.0 / 3.0] * 3)
    both = Thompson(explore=0.3).probabilities(LAW, RNG)
    assert both == pytest.approx(0.7 * chance_of_best(LAW.mean, LAW.std) + 0.1)
    assert Thompson(widen=0.0).probabilities(LAW, RNG).tolist() == [0.0, 1.0, 0.0]
    assert Thompson(widen=2.0).probabilities(LAW, RNG) == pytest.approx(chance_of_best(LAW.mean, 2.0 * LAW.std))


def test_thompson_with_shared_weights_is_thompson_over_its_draws() -> None:
    """The mean of the shares is the probability of being the best of a joint draw, by brute force."""
    root = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    law = Law(np.array([0.0, 0.05, -0.2]), np.sqrt(np.square(root).sum(axis=1)), root)
    rng = np.random.default_rng(1)
    scores = law.mean + rng.standard_normal((200_000, 2)) @ root.T
    brute = np.bincount(scores.argmax(axis=1), minlength=3) / 200_000
    shares = [Thompson(draws=50).probabilities(law, rng) for _ in range(4_000)]
    assert np.mean(shares, axis=0) == pytest.approx(brute, abs=0.006)
    assert np.allclose(np.sum(shares, axis=1), 1.0)
    alone = chance_of_best(law.mean, law.std)
    assert np.abs(alone - brute).max() > 0.05, "the covariance matters here"
    wide = [Thompson(widen=3.0, draws=50).probabilities(law, rng) for _ in range(2_000)]
    scores = law.mean + 3.0 * (scores - law.mean)
    assert np.mean(wide, axis=0) == pytest.approx(np.bincount(scores.argmax(axis=1), minlength=3) / 200_000, abs=0.008)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Greedy(explore=1.5), "between 0 and 1"),
        (lambda: Uniform(explore=float("nan")), "between 0 and 1"),
        (lambda: Thompson(widen=-1.0), "finite number ≥ 0"),
        (lambda: Thompson(draws=0), "at least one"),
        (lambda: UpperBound(float("inf")), "finite number of stds"),
    ],
)
def test_settings_are_refused(make: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()  # type: ignore[operator]
