"""Sections 2 and 4 of the paper, its appendix, and beyond: what is certain of a run, before it, during it and after it.

``bounds`` are the theorems, ``certificates`` what the sums of a state prove, ``comparator`` the best fixed point in hindsight,
``posterior`` the variational posterior of all data at once, ``exact`` the posterior itself, ``risk`` what holds for new data
of the decisions, ``pac_bayes`` of a belief. ``alarm`` rings when losses have grown.
"""

from onlinevi.guarantees import bounds
from onlinevi.guarantees.alarm import Alarm, AlarmState, Rang
from onlinevi.guarantees.bounds.calculator import calculate
from onlinevi.guarantees.bounds.setting import Setting
from onlinevi.guarantees.certificates import Certificate, PooledCertificate, SquaredSums, Tangents, Window, certificate
from onlinevi.guarantees.comparator import MOST_WEIGHTS, NUMPY_UP_TO, Hindsight, hindsight
from onlinevi.guarantees.exact import (
    GaussianPosterior,
    Grid,
    GridPosterior,
    ParticlePosterior,
    Particles,
    TemperedGaussian,
    divergences,
)
from onlinevi.guarantees.pac_bayesian import PacBayes, PlayedRisk, pac_bayes, played_risk, tempered_bound
from onlinevi.guarantees.posterior import BatchVB, batch_vb
from onlinevi.guarantees.risk import LossSums, fixed_risk_bound, loss_bound, risk_bound, shards_risk_bound

__all__ = [
    "MOST_WEIGHTS",
    "NUMPY_UP_TO",
    "Alarm",
    "AlarmState",
    "BatchVB",
    "Certificate",
    "GaussianPosterior",
    "Grid",
    "GridPosterior",
    "Hindsight",
    "LossSums",
    "PacBayes",
    "ParticlePosterior",
    "Particles",
    "PlayedRisk",
    "PooledCertificate",
    "Rang",
    "Setting",
    "SquaredSums",
    "Tangents",
    "TemperedGaussian",
    "Window",
    "batch_vb",
    "bounds",
    "calculate",
    "certificate",
    "divergences",
    "fixed_risk_bound",
    "hindsight",
    "loss_bound",
    "pac_bayes",
    "played_risk",
    "risk_bound",
    "shards_risk_bound",
    "tempered_bound",
]
