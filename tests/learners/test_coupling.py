"""How the log-odds of classes become probabilities: as numpy would write it, compiled and interpreted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_expit, log_softmax, softmax

from onlinevi.learners.one_vs_rest import coupling

BOTH = pytest.mark.parametrize("way", [pytest.param("compiled", marks=pytest.mark.compiled), "interpreted"])


def log_shares(scores: np.ndarray, boldness: float) -> np.ndarray:
    """log P(class) at each row of one-vs-rest log-odds, for one β."""
    return np.asarray(log_softmax(log_expit(scores) - boldness * log_expit(-scores), axis=1))


def paid_by(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The log-loss of each β at each row."""
    rows = np.arange(len(scores))
    return -np.column_stack([log_shares(scores, boldness)[rows, classes] for boldness in coupling.BOLDNESS])


@pytest.mark.parametrize("seed", range(4))
def test_coupling_is_within_ln_7_of_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((300, 5)) * rng.choice([0.1, 3.0, 30.0])
    said = np.stack([np.exp(log_shares(scores, boldness)) for boldness in coupling.BOLDNESS])
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
    assert paid <= totals.min() + np.log(len(coupling.BOLDNESS)) + 1e-9
    assert np.array_equal(totals, coupling.weigh(coupling.start(), scores, classes, [True] * 5).after)


@pytest.mark.parametrize("seen", [[True] * 5, [True, True, False, True, False]], ids=["all seen", "some seen"])
@pytest.mark.parametrize("size", [0.1, 3.0, 30.0, 1000.0])
@BOTH
def test_coupling_is_what_numpy_makes_of_its_formulas(way: str, size: float, seen: list[bool]) -> None:
    rng = np.random.default_rng(0)
    scores, weights = size * rng.standard_normal((40, 5)), rng.integers(1, 4, 40) / 2.0
    classes = rng.choice(np.flatnonzero(seen), 40)
    weighed = coupling.weigh(coupling.start(), scores, classes, seen, weights)
    shares, same_totals = (coupling.probabilities(totals, scores) for totals in (weighed.before, weighed.after))
    each, among = paid_by(scores, classes), paid_by(scores[:, seen], (np.cumsum(seen) - 1)[classes])
    along = np.cumsum(np.vstack([np.zeros(7), among * weights[:, None]]), axis=0)
    np.testing.assert_allclose(weighed.before, along[:-1], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(weighed.after, along[-1], rtol=1e-13)
    loss = -np.logaddexp.reduce(log_softmax(-along[:-1], axis=1) - each, axis=1)
    np.testing.assert_allclose(weighed.loss, loss, rtol=1e-13, atol=1e-13)
    for totals, found in ((along[:-1], shares), (along[-1:], same_totals)):
        wanted = sum(
            own[:, None] * np.exp(log_shares(scores, boldness))
            for own, boldness in zip(softmax(-totals, axis=1).T, coupling.BOLDNESS, strict=True)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


@BOTH
def test_a_class_that_is_not_known_has_no_share(way: str) -> None:
    unknown = -np.inf
    scores = np.array([[unknown] * 3, [0.0, unknown, 0.0], [-1e3, unknown, 1e3]])
    shares = coupling.probabilities(coupling.start(), scores)
    weighed = coupling.weigh(coupling.start(), scores[1:2], [2], [True, False, True])
    np.testing.assert_allclose(shares, [[0.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]], rtol=1e-13)
    np.testing.assert_allclose(weighed.after, np.log(2.0), rtol=1e-13)
    np.testing.assert_allclose(weighed.loss, np.log(2.0), rtol=1e-13)
