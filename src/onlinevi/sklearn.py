"""Estimators for scikit-learn; see ``onlinevi.adapters.sklearn``."""

from onlinevi.adapters.sklearn import OnlineVIClassifier, OnlineVIRegressor

__all__ = ["OnlineVIClassifier", "OnlineVIRegressor"]
