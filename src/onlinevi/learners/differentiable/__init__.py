"""Any differentiable model, by JAX: the same rules, rates and boxes as the compiled loop, with gradients found by autodiff.

The only package that imports JAX. Everything runs in 64 bits inside a context: JAX's global setting is left as it is.
"""

try:
    import jax as jax
except ModuleNotFoundError as missing:
    raise ImportError("onlinevi.autodiff needs JAX: install it with pip install 'onlinevi[nn]'") from missing

from onlinevi.learners.differentiable.gradients import Linearised, MonteCarlo
from onlinevi.learners.differentiable.learner import Differentiable
from onlinevi.learners.differentiable.network import ReLUNetwork
from onlinevi.learners.differentiable.weights import ModelState, ModelTrace, flatten

__all__ = ["Differentiable", "Linearised", "ModelState", "ModelTrace", "MonteCarlo", "ReLUNetwork", "flatten"]
