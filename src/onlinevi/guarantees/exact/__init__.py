"""Exponentially weighted aggregation (Algorithm 1), exactly: (2), p_t ∝ prior·exp(−rate·Σ losses before t).

It is tempered Bayes. The decision is the posterior mean, and for losses in [0, B] the regret to any law is at most (Theorem 1)
rate·B²·T/8 + KL(law‖prior)/rate. With a rate that does not change, this is the recursion p_{t+1} ∝ p_t·exp(−rate·ℓ_t). With
one that does, each p_t takes its own rate for all of the past: the anytime form, not that recursion.

Two settings allow it without approximation: a grid in one or two dimensions, and a Gaussian prior with squared loss. For any
prior and dimension there are particles, whose effective sample size tells how far to trust them.
"""

from onlinevi.guarantees.exact.divergence import divergences
from onlinevi.guarantees.exact.grid import Grid, GridPosterior
from onlinevi.guarantees.exact.particles import ParticlePosterior, Particles
from onlinevi.guarantees.exact.tempered import GaussianPosterior, TemperedGaussian

__all__ = ["GaussianPosterior", "Grid", "GridPosterior", "ParticlePosterior", "Particles", "TemperedGaussian", "divergences"]
