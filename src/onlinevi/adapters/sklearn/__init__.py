"""Estimators for scikit-learn: pipelines, cross-validation and grid search over learners that take each row once.

The only package that needs scikit-learn; ``import onlinevi`` does not load it.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError as missing:
    raise ImportError('onlinevi.sklearn needs scikit-learn: install it with pip install "onlinevi[sklearn]"') from missing

from onlinevi.adapters.sklearn.classifier import OnlineVIClassifier
from onlinevi.adapters.sklearn.regressor import OnlineVIRegressor

__all__ = ["OnlineVIClassifier", "OnlineVIRegressor"]
