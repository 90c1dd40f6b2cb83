"""A full covariance after ten million ill-conditioned events, against Bayes' rule in longer floats.

    python experiments/long_stream.py [--events 10000000]

With the squared loss NGVI at step 1 and the implicit step at rate 1 are Bayes' rule: P = I/s² + 2·Σxxᵀ, P·m = 2·Σyx. The rows
have scales from 1 to 1e-7 along rotated axes, the prior's std is 1e7. The sums are kept in numpy's longdouble and along those
axes, where they do not cancel.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import onlinevi as ovi

SCALES = np.array([1.0, 3e-4, 1e-7])
AXES = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
"""No coordinate is one of the scales: standardising would not help."""
PRIOR_STD = 1e7
BLOCK = 500_000


def block(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((count, len(SCALES)))
    return (hidden * SCALES) @ AXES, hidden.sum(axis=1) + rng.standard_normal(count)


def run(rule: ovi.Rule, events: int) -> dict[str, object]:
    """Play the stream; return how far the factor and the mean are from the exact ones."""
    learner = ovi.Linear(loss=ovi.Squared(), rule=rule, family=ovi.FullCovariance(prior_std=PRIOR_STD, box=None))
    state, seconds, dim = learner.init(len(SCALES)), 0.0, len(SCALES)
    along = AXES.astype(np.longdouble)
    back = np.eye(dim, dtype=np.longdouble)  # the inverse of the axes, by Newton's iteration from their transpose
    back = along.T @ (2.0 * back - along @ along.T)
    precision, first = back.T @ back / PRIOR_STD**2, np.zeros(dim, dtype=np.longdouble)
    for seed, start in enumerate(range(0, events, BLOCK)):
        X, y = block(seed, min(BLOCK, events - start))
        began = time.perf_counter()
        state, _ = learner.update_many(state, X, y, record="none")
        seconds += time.perf_counter() - began
        wide = X.astype(np.longdouble) @ back
        precision += 2.0 * np.einsum("ti,tj->ij", wide, wide)
        first += 2.0 * np.einsum("ti,t->i", wide, y.astype(np.longdouble))
    factor = state.belief.factor.astype(np.longdouble) @ along.T  # C·P·Cᵀ is I where Σ = CᵀC is P's inverse
    off = np.abs(factor @ precision @ factor.T - np.eye(dim)).max()
    shift = np.abs(factor @ (precision @ (along @ state.mean.astype(np.longdouble)) - first)).max()
    return {
        "rule": type(rule).__name__,
        "‖C·P·Cᵀ − I‖": f"{float(off):.1e}",
        "mean off, in stds": f"{float(shift):.1e}",
        "diagonal of C > 0": bool((np.diag(state.belief.factor) > 0.0).all()),
        "condition of P": f"{np.linalg.cond(precision.astype(float)):.0e}",
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    events = parser.parse_args().events
    for rule in (ovi.NGVI(), ovi.Implicit()):
        print(*(f"{key}: {value}" for key, value in run(rule, events).items()), sep=", ", flush=True)


if __name__ == "__main__":
    main()
