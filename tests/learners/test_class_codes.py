"""Labels that are no numbers of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onlinevi as ovi

ONE_VS_REST = ovi.OneVsRest(ovi.Linear(ovi.Logistic(), ovi.Implicit()), 2)
LEARNERS = ovi.Softmax(known=2), ONE_VS_REST, ovi.Auto(effort="light", known=2)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize(
    ("label", "says"),
    [
        (1e9, r"y has class 1000000000: .* number them, as np\.unique"),  # there would be weights for each number below it
        (-1.0, "needs their numbers"),
        (0.5, "needs their numbers"),
        (np.nan, "needs their numbers"),
        (np.inf, "needs their numbers"),
    ],
)
def test_what_is_no_class_is_refused_at_once(learner: Any, label: float, says: str) -> None:
    state = learner.init(2)
    with pytest.raises(ValueError, match=says):
        learner.update_many(state, np.ones((3, 2)), [0.0, label, 1.0])
