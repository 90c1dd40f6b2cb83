"""The live certificate: a bound on the regret that holds whatever the stream, from two sums that every state keeps.

Under a belief the expected loss of a linear predictor is a function E(a, v) of the mean and the std of its prediction. For a
convex loss it is jointly convex, with slopes e1 in a and e2·v in v. So its tangent at the decision lies below the loss of
every fixed point u, whose prediction is (⟨u, x⟩, 0), and summed over the events

    Σ E_t − Σ ℓ_t(u) ≤ Σ (e1·a + e2·v²) − ⟨Σ e1·x, u⟩.

No data are kept, no assumption is made on them, and any rule and any Gaussian family will do.
"""

from onlinevi.guarantees.certificates.certify import Window, certificate
from onlinevi.guarantees.certificates.leaf import Certificate
from onlinevi.guarantees.certificates.pooled import PooledCertificate
from onlinevi.guarantees.certificates.squared_sums import SquaredSums
from onlinevi.guarantees.certificates.tangents import Tangents

__all__ = ["Certificate", "PooledCertificate", "SquaredSums", "Tangents", "Window", "certificate"]
