"""From regret on a stream to risk on new data, Theorem 5: for events drawn independently from one law.

All statements are about the average decision θ̄_T, which ``Linear(average=True)`` keeps; none holds for the last one.
"""

from __future__ import annotations

import math

from onlinevi.guarantees.bounds.bound import Bound, positive, whole


def excess_risk(regret: Bound, count: int) -> Bound:
    """``E[risk(θ̄_T)]`` − E_{q_u}[risk] ≤ regret/T (Theorem 5): so come (12) and section 4.2's corollaries of a regret."""
    whole(count)
    terms = {name: term / count for name, term in regret.terms.items()}
    return Bound(f"{regret.name}, excess risk", terms, regret.valid, regret.note, regret.trivial / count)


def online_to_batch(*, best_risk: float, regret: Bound, count: int) -> Bound:
    """``E[risk(θ̄_T)] ≤ E_{q_u}[risk] + regret/T``, for a convex loss; ``best_risk`` is that of the regret's comparator q_u."""
    excess = excess_risk(regret, count)
    terms = {"comparator": best_risk, **excess.terms}
    return Bound(f"online to batch, {regret.name}", terms, regret.valid, regret.note, best_risk + excess.trivial)


def online_to_batch_confident(*, average_loss: float, count: int, loss_bound: float, failure: float) -> Bound:
    """With probability 1 − δ, risk(θ̄_T) ≤ A_T + B·√(ln(1/δ)/(2T)), for a convex loss in [0, B] and a T fixed ahead.

    ``failure`` is δ. By Azuma's inequality; it does not hold at a T chosen by looking at the losses.

    >>> from onlinevi import bounds
    >>> round(bounds.online_to_batch_confident(average_loss=0.2, count=5000, loss_bound=1.0, failure=0.05).value, 4)
    0.2173
    """
    whole(count)
    positive(loss_bound=loss_bound)
    if not 0.0 < failure < 1.0:
        raise ValueError(f"failure={failure!r}: a probability of failure lies strictly between 0 and 1; try 0.05")
    if not 0.0 <= average_loss <= loss_bound:
        raise ValueError(f"average_loss={average_loss!r}: the theorem needs losses in [0, {loss_bound}]")
    terms = {"average loss": average_loss, "deviation": loss_bound * math.sqrt(math.log(1.0 / failure) / (2.0 * count))}
    return Bound("online to batch, with confidence", terms, trivial=loss_bound)
