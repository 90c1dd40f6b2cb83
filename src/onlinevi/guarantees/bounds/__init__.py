"""The paper's theorems as functions, in the form that holds: what each bounds, from plain numbers or from a run.

``theorems`` needs no data, ``observed`` the gradients that came, ``adaptive`` is for rates made of these,
``runs`` reads all of it off a trace, ``risk`` is for new data.
Domains and constants are what they are made of. Where the paper's print is wrong, docs/errata.md says how.
"""

from onlinevi.guarantees.bounds.adaptive import oga_el_adaptive, sva_adaptive, svb_adaptive
from onlinevi.guarantees.bounds.bound import Bound, informative_from
from onlinevi.guarantees.bounds.constants import kl_strong_convexity, largest_loss, lipschitz
from onlinevi.guarantees.bounds.domains import Domain, ball_domain, box_domain
from onlinevi.guarantees.bounds.observed import (
    front_loaded,
    oga_el_observed,
    sva_observed,
    sva_observed_best_rate,
    sva_schedule,
    svb_convex_observed,
    svb_strongly_convex_observed,
)
from onlinevi.guarantees.bounds.risk import ewa_excess_risk, ewa_rate, online_to_batch, online_to_batch_confident
from onlinevi.guarantees.bounds.runs import after_data, before_data, total_loss
from onlinevi.guarantees.bounds.theorems import (
    ewa,
    oga_el,
    oga_el_divergence,
    oga_el_per_sqrt,
    sva,
    sva_at_best_rate,
    sva_best_rate,
    sva_mean_field,
    sva_per_sqrt,
    svb_best_step,
    svb_convex,
    svb_strongly_convex,
)

__all__ = [
    "Bound",
    "Domain",
    "after_data",
    "ball_domain",
    "before_data",
    "box_domain",
    "ewa",
    "ewa_excess_risk",
    "ewa_rate",
    "front_loaded",
    "informative_from",
    "kl_strong_convexity",
    "largest_loss",
    "lipschitz",
    "oga_el",
    "oga_el_adaptive",
    "oga_el_divergence",
    "oga_el_observed",
    "oga_el_per_sqrt",
    "online_to_batch",
    "online_to_batch_confident",
    "sva",
    "sva_adaptive",
    "sva_at_best_rate",
    "sva_best_rate",
    "sva_mean_field",
    "sva_observed",
    "sva_observed_best_rate",
    "sva_per_sqrt",
    "sva_schedule",
    "svb_adaptive",
    "svb_best_step",
    "svb_convex",
    "svb_convex_observed",
    "svb_strongly_convex",
    "svb_strongly_convex_observed",
    "total_loss",
]
