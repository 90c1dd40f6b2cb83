"""The same examples on every run: a test that fails, fails again. Files that compile much come first."""

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

LONG = (
    *("test_full_covariance", "test_implicit", "test_aggregate", "test_examples", "test_linear", "test_sklearn"),
    *("test_missing", "test_autodiff", "test_checkpoint", "test_auto", "test_reproduce", "test_jit", "test_losses"),
)
"""Files of half a minute and more, the longest first: two workers that take file after file then end together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))
