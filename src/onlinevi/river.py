"""Estimators for River; see ``onlinevi.adapters.river``."""

from onlinevi.adapters.river import OnlineVIClassifier, OnlineVIRegressor

__all__ = ["OnlineVIClassifier", "OnlineVIRegressor"]
