"""How the log-odds of classes become probabilities: as numpy would write it, compiled and interpreted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax, softmax

from onlinevi.learners.one_vs_rest import coupling

BOTH = pytest.mark.parametrize("way", [pytest.param("compiled", marks=pytest.mark.compiled), "interpreted"])


def log_shares(scores: np.ndarray, boldness: float) -> np.ndarray:
    """log P(class) at each row of one-vs-rest log-odds, for one β."""
    return np.asarray(log_softmax(log_expit(scores) - boldness * log_expit(-scores), axis=1))


def paid_by(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The log-loss of each β at each row."""
    rows = np.arange(len(scores))
    return -np.column_stack([log_shares(scores, boldness)[rows, classes] for boldness in coupling.BOLDNESS])


def stacked(opinions: int, count: int, size: float, rng: np.random.Generator) -> np.ndarray:
    """What one learner says of five classes, or what two say and the mean of both."""
    scores, first = size * rng.standard_normal((2, count, 5))
    return coupling.opinions(scores, None if opinions == 1 else first)


@pytest.mark.parametrize(("seed", "opinions"), [(0, 1), (1, 3), (2, 1), (3, 3)])
def test_coupling_is_within_ln_7_of_the_best_and_ln_21_of_several_opinions(seed: int, opinions: int) -> None:
    rng = np.random.default_rng(seed)
    scores = stacked(opinions, 300, rng.choice([0.1, 3.0, 30.0]), rng)
    parts = np.split(scores, opinions, axis=1)
    said = np.stack([np.exp(log_shares(part, boldness)) for part in parts for boldness in coupling.BOLDNESS])
    assert len(said) == len(coupling.start(opinions)) == 7 * opinions
    # Seeds 2 and 3: whatever class the play so far thinks least likely.
    totals, paid, classes = np.zeros(len(said)), 0.0, rng.integers(0, 5, 300)
    for i in range(300):
        each = coupling.probabilities(totals, scores[i : i + 1])[0]
        by_hand = np.exp(-totals + totals.min()) @ said[:, i] / np.exp(-totals + totals.min()).sum()
        np.testing.assert_allclose(each, by_hand, rtol=1e-9)
        classes[i] = each.argmin() if seed >= 2 else classes[i]
        weighed = coupling.weigh(totals, scores[i : i + 1], classes[i : i + 1], [True] * 5)
        np.testing.assert_allclose(weighed.loss, -np.log(each[classes[i]]), rtol=1e-9, atol=1e-12)
        paid, totals = paid + weighed.loss[0], weighed.after
    assert paid <= totals.min() + np.log(len(said)) + 1e-9
    assert np.array_equal(totals, coupling.weigh(coupling.start(opinions), scores, classes, [True] * 5).after)


@pytest.mark.parametrize("seen", [[True] * 5, [True, True, False, True, False]], ids=["all seen", "some seen"])
@pytest.mark.parametrize(("size", "opinions"), [(0.1, 1), (3.0, 1), (3.0, 3), (30.0, 1), (30.0, 3), (1000.0, 1)])
@BOTH
def test_coupling_is_what_numpy_makes_of_its_formulas(way: str, size: float, opinions: int, seen: list[bool]) -> None:
    rng = np.random.default_rng(0)
    scores, weights = stacked(opinions, 40, size, rng), rng.integers(1, 4, 40) / 2.0
    classes, parts = rng.choice(np.flatnonzero(seen), 40), np.split(scores, opinions, axis=1)
    weighed = coupling.weigh(coupling.start(opinions), scores, classes, seen, weights)
    shares, same_totals = (coupling.probabilities(totals, scores) for totals in (weighed.before, weighed.after))
    each = np.hstack([paid_by(part, classes) for part in parts])
    among = np.hstack([paid_by(part[:, seen], (np.cumsum(seen) - 1)[classes]) for part in parts])
    along = np.cumsum(np.vstack([np.zeros(7 * opinions), among * weights[:, None]]), axis=0)
    np.testing.assert_allclose(weighed.before, along[:-1], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(weighed.after, along[-1], rtol=1e-13)
    loss = -np.logaddexp.reduce(log_softmax(-along[:-1], axis=1) - each, axis=1)
    np.testing.assert_allclose(weighed.loss, loss, rtol=1e-13, atol=1e-13)
    for totals, found in ((along[:-1], shares), (along[-1:], same_totals)):
        wanted = sum(
            own[:, None] * np.exp(log_shares(part, boldness))
            for own, (part, boldness) in zip(softmax(-totals, axis=1).T, product(parts, coupling.BOLDNESS), strict=True)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
        odds = coupling.decided(totals, scores)
        assert np.isfinite(odds).all()
        np.testing.assert_allclose(expit(odds), found, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(expit(-odds), 1.0 - found, rtol=1e-9, atol=1e-14)


@BOTH
def test_a_class_that_is_not_known_has_no_share(way: str) -> None:
    unknown = -np.inf
    scores = np.array([[unknown] * 3, [0.0, unknown, 0.0], [-1e3, unknown, 1e3]])
    shares = coupling.probabilities(coupling.start(), scores)
    assert np.array_equal(np.isneginf(coupling.decided(coupling.start(), scores)), np.isneginf(scores))
    weighed = coupling.weigh(coupling.start(), scores[1:2], [2], [True, False, True])
    np.testing.assert_allclose(shares, [[0.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]], rtol=1e-13)
    np.testing.assert_allclose(weighed.after, np.log(2.0), rtol=1e-13)
    np.testing.assert_allclose(weighed.loss, np.log(2.0), rtol=1e-13)
