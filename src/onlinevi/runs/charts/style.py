"""The one style of every chart, whatever draws it: colours, line widths, ticks and numbers in words."""

from __future__ import annotations

import math
import re

STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}
"""Matplotlib's settings, for ``rc_context``."""

BLUE, ORANGE, GREEN, PURPLE = ("#1f77b4", "#5eb1ef"), ("#d9730d", "#ff9f45"), ("#2c9a3f", "#5ccb81"), ("#8e44ad", "#c38ee0")
RED, TEAL, YELLOW, PINK = ("#cf2e2e", "#ff7b6b"), ("#0f8b8d", "#4cc9c9"), ("#e0ac00", "#e3bd3c"), ("#c2459a", "#f08cc8")
INK, GREY, PALE, BROWN = ("#1c1f24", "#e6e8eb"), ("#555555", "#98a0ab"), ("#86b5da", "#3f749d"), ("#8c564b", "#c49c94")

ROLES = {
    "learner": BLUE,
    "recent": PALE,
    "reference": INK,
    "certified": ORANGE,
    "theorem": PURPLE,
    "exact": GREY,
    **{f"feature-{k}": hue for k, hue in enumerate((BLUE, ORANGE, GREEN, PURPLE, RED, TEAL, YELLOW, PINK))},
}
"""A colour for each thing that a chart shows, on light and on dark paper."""
RULES = {"auto": INK, "oga": YELLOW, "oga-el": RED, "sva": BLUE, "svb": PURPLE, "ngvi": GREEN, "implicit": ORANGE}
"""A colour for each rule, by its ``name``; yellow, red, blue, purple and green are the paper's."""
OWN_RULES = (TEAL, PINK, BROWN, GREY)
"""The colours of rules that onlinevi does not know, in turn."""

SOFT = 0.14
"""How opaque a band is."""
SHORT = 40
"""Of fewer rows a chart shows every one."""
FAR = 8.0
"""A largest value so many times the least asks for a logarithmic axis."""


def colour(name: str) -> str:
    """The colour of a role or of a rule on light paper; ``own-0``, ``own-1``, … are rules of one's own.

    >>> colour("svb"), colour("learner")
    ('#8e44ad', '#1f77b4')
    """
    if name.startswith("own-"):
        return OWN_RULES[int(name.removeprefix("own-")) % len(OWN_RULES)][0]
    return (ROLES | RULES)[name][0]


def rule_roles(names: list[str]) -> list[str]:
    """The role of each rule in one chart: its own name, or the next of those kept for rules that have no colour."""
    unknown = [name for name in names if name not in RULES]
    return [name if name in RULES else f"own-{unknown.index(name)}" for name in names]


def stacked_widths(count: int) -> list[float]:
    """Widths for lines that may coincide, the thinnest first: it lies on top, and all stay visible."""
    step = min(0.4, 2.0 / count)
    return [1.2 + step * place for place in range(count)]


def first_step(last: float) -> int:
    """The row where an axis begins: earlier averages are of a handful of events, unless there are no others."""
    return max(10, int(last) // 1000) if last >= SHORT else 1


def log_ticks(low: float, high: float) -> list[float]:
    """The ticks of a logarithmic axis: powers of ten, with 2 and 5 between them where these are few."""
    decades = math.log10(high / low)
    steps = (1,) if decades > 3.0 else (1, 3) if decades > 2.0 else (1, 2, 5) if decades > 0.5 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    every = max(1, round(decades / 6.0))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**k for k in exponents if k % every == 0 for step in steps]
    return [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def short(value: float) -> str:
    """A number that fits beside an axis, with the letters that Plotly has: 0.003, 250, 10k, 2M, 3B, 4T, 1e18, 1e-6."""
    for size, letter in ((1e15, ""), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}" if letter else _plain(f"{value:.4g}")
    return _plain(f"{value:.3g}")


def _plain(text: str) -> str:
    """A power of ten as people write it: 1e-6 for 1e-06, 1e18 for 1e+18."""
    return re.sub(r"e\+?(-?)0*", r"e\1", text)


def number(value: float | None) -> str:
    """A number in a sentence or a table, with four digits at least, and how large it is; a dash where there is none.

    >>> number(0.43081), number(25_243.6), number(2_547_663_794.0), number(2.057e-9), number(None)
    ('0.4308', '25,244', '2.548B', '2.057e-9', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 1e6:
        return short(value)
    return f"{value:,.0f}" if abs(value) >= 1e4 else _plain(f"{value:.4g}")


def uncertain(mean: float, std: float) -> str:
    """A number and its std, with as many digits as the std leaves sure.

    >>> uncertain(241.7, 183.0), uncertain(0.00014551, 4.2e-5), uncertain(-1.4658, 0.0), uncertain(3.9e-7, 1.6e-7)
    ('240 ± 180', '0.000146 ± 0.000042', '-1.466 ± 0', '(3.9 ± 1.6)e-7')
    """
    if not (math.isfinite(mean) and math.isfinite(std)) or std <= 0.0:
        return f"{number(mean)} ± {number(std)}"
    power = math.floor(math.log10(max(abs(mean), std)))
    scale = 10.0**power if not -5 <= power < 7 else 1.0
    digits = min(1 - math.floor(math.log10(std / scale)), 9)
    told = f"{round(mean / scale, digits) + 0.0:,.{max(digits, 0)}f} ± {round(std / scale, digits):,.{max(digits, 0)}f}"
    return told if scale == 1.0 else f"({told})e{power}"


def percent(part: float) -> str:
    """A share in a sentence, never rounded to all or nothing."""
    text = f"{100.0 * part:.1f}"
    if text == "100.0" and part < 1.0:
        return "more than 99.9 %"
    if text == "0.0" and part > 0.0:
        return "less than 0.1 %"
    return f"{text.removesuffix('.0')} %"


def shortened(name: str, most: int) -> str:
    """A name without its middle where it is long: many begin alike and end in a number.

    >>> shortened("temperature of sensor number 12", 24)
    'temperature of…number 12'
    """
    if len(name) <= most:
        return name
    end = (most - 1) * 2 // 5
    return f"{name[: most - 1 - end]}…{name[-end:]}"
