"""The paper's theorems as functions, in the form that holds: what each bounds, from plain numbers or from a run.

``theorems`` has a file a rule, ``table`` says which of them speaks of which rule at which rate. ``runs`` reads all that a
theorem needs off a trace, ``calculator`` needs no data, ``risk`` is for new data, ``prior_mass`` is Theorem 6's condition.
Domains and constants are what they are made of. Where the paper's print is wrong, docs/errata.md says how.
"""

from onlinevi.guarantees.bounds.bound import Bound, informative_from
from onlinevi.guarantees.bounds.comparison import front_loaded
from onlinevi.guarantees.bounds.constants import gaussian_kl, kl_strong_convexity, largest_loss, lipschitz, narrow_kl
from onlinevi.guarantees.bounds.domains import Domain, ball_diameter, ball_domain, box_domain, domain_of
from onlinevi.guarantees.bounds.prior_mass import ball_divergence, ewa_prior_risk, prior_dimension
from onlinevi.guarantees.bounds.risk import excess_risk, online_to_batch, online_to_batch_confident
from onlinevi.guarantees.bounds.runs import after_data, before_data, everywhere, squared_total_loss, total_loss
from onlinevi.guarantees.bounds.table import register, theorem_of
from onlinevi.guarantees.bounds.theorem import Theorem
from onlinevi.guarantees.bounds.theorems.ewa import ewa, ewa_after, ewa_excess_risk, ewa_rate
from onlinevi.guarantees.bounds.theorems.explicit import sva_explicit, sva_explicit_rate, sva_explicit_risk
from onlinevi.guarantees.bounds.theorems.ngvi import (
    ngvi_floor,
    ngvi_floor_best_step,
    ngvi_floor_observed,
    ngvi_scale,
    ngvi_scale_observed,
    ngvi_squared,
)
from onlinevi.guarantees.bounds.theorems.oga_el import (
    lazy_oga_el_schedule,
    oga_el,
    oga_el_adaptive,
    oga_el_divergence,
    oga_el_observed,
    oga_el_per_sqrt,
)
from onlinevi.guarantees.bounds.theorems.sva import (
    sva,
    sva_adaptive,
    sva_at_best_rate,
    sva_best_rate,
    sva_excess_risk,
    sva_mean_field,
    sva_observed,
    sva_observed_best_rate,
    sva_per_sqrt,
    sva_schedule,
)
from onlinevi.guarantees.bounds.theorems.svb import (
    svb_adaptive,
    svb_best_step,
    svb_convex,
    svb_convex_observed,
    svb_excess_risk,
    svb_strongly_convex,
    svb_strongly_convex_excess_risk,
    svb_strongly_convex_observed,
)

__all__ = [
    "Bound",
    "Domain",
    "Theorem",
    "after_data",
    "ball_diameter",
    "ball_divergence",
    "ball_domain",
    "before_data",
    "box_domain",
    "domain_of",
    "everywhere",
    "ewa",
    "ewa_after",
    "ewa_excess_risk",
    "ewa_prior_risk",
    "ewa_rate",
    "excess_risk",
    "front_loaded",
    "gaussian_kl",
    "informative_from",
    "kl_strong_convexity",
    "largest_loss",
    "lazy_oga_el_schedule",
    "lipschitz",
    "narrow_kl",
    "ngvi_floor",
    "ngvi_floor_best_step",
    "ngvi_floor_observed",
    "ngvi_scale",
    "ngvi_scale_observed",
    "ngvi_squared",
    "oga_el",
    "oga_el_adaptive",
    "oga_el_divergence",
    "oga_el_observed",
    "oga_el_per_sqrt",
    "online_to_batch",
    "online_to_batch_confident",
    "prior_dimension",
    "register",
    "squared_total_loss",
    "sva",
    "sva_adaptive",
    "sva_at_best_rate",
    "sva_best_rate",
    "sva_excess_risk",
    "sva_explicit",
    "sva_explicit_rate",
    "sva_explicit_risk",
    "sva_mean_field",
    "sva_observed",
    "sva_observed_best_rate",
    "sva_per_sqrt",
    "sva_schedule",
    "svb_adaptive",
    "svb_best_step",
    "svb_convex",
    "svb_convex_observed",
    "svb_excess_risk",
    "svb_strongly_convex",
    "svb_strongly_convex_excess_risk",
    "svb_strongly_convex_observed",
    "theorem_of",
    "total_loss",
]
