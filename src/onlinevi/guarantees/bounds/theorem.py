"""What a theorem is: the rule and the rates that it is for, and the bounds that it gives to those who ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from onlinevi.guarantees.bounds.bound import Bound
from onlinevi.guarantees.bounds.comparison import Comparison
from onlinevi.guarantees.bounds.setting import Candidate, Setting
from onlinevi.learners import Plan
from onlinevi.rules import Constant, PerHorizon, Rate, Rule

UNCHANGING = (Constant, PerHorizon)
UNCHANGING_IN_WORDS = "PerHorizon(c) or another rate that does not change"


class Theorem:
    """What is proved of a rule at some rates.

    A theorem of your own is a subclass with the methods that it has an answer for; ``bounds.register`` makes it known. A rule
    is known by its very class: one made from SVA may step otherwise, and then SVA's theorems say nothing of it.
    """

    name: ClassVar[str]
    """What the calculator calls the rule."""
    rules: ClassVar[tuple[type[Rule], ...]]
    rates: ClassVar[tuple[type[Rate], ...]]
    rates_in_words: ClassVar[str]
    in_balls: ClassVar[bool] = False
    """Whether its proof goes through where a step ends with a radial projection."""
    with_covariances: ClassVar[bool] = False
    """Whether it speaks of N(m, CᵀC) too, in (m, C): without bounds on C."""

    def speaks_of(self, rule: Rule) -> bool:
        """Whether it is for this rule at its rate."""
        return type(rule) in self.rules and isinstance(rule.step_rate, self.rates)

    def before_data(self, run: Comparison, lipschitz: float) -> Bound:
        """The bound that holds for every stream of L-Lipschitz losses, of as many events as the run has."""
        raise ValueError(_no_comparator(run))

    def after_data(self, run: Comparison) -> Bound:
        """The same with the gradients that came."""
        raise ValueError(_no_comparator(run))

    def everywhere(self, plan: Plan, lipschitz: float) -> Callable[[int], float] | None:
        """The bound after so many events, before any data, against every point of the box; None where there is none."""
        return None

    def candidates(self, setting: Setting, rate: float | None, loss_bound: float | None) -> list[Candidate]:
        """What the calculator shows: at the paper's rate or the one given, and at the rates that make a bound least."""
        return []


def _no_comparator(run: Comparison) -> str:
    return (
        f"{run.plan.rule}: at this rate its theorem is against every point of the box at once, not against one comparator; "
        "that needs a rate that does not change, such as PerHorizon(1.0)"
    )
