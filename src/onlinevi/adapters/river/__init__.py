"""Estimators for River: dicts of features one event at a time, in pipelines, with growing features and classes."""

try:
    import river as _river  # noqa: F401
except ImportError as error:
    raise ImportError('onlinevi.river needs River: pip install "onlinevi[river]"') from error

from onlinevi.adapters.river.estimators import OnlineVIClassifier, OnlineVIRegressor

__all__ = ["OnlineVIClassifier", "OnlineVIRegressor"]
