"""The README's table of speed, from the results of a run.

python benchmarks/readme.py [--results out/bench] [--readme README.md]
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bars import RULES
from page import number, read, table
from timing import OUT

Results = Mapping[str, Any]
WIDTHS = (2, 1_000, 10_000)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=OUT, help="where the JSON files are (default: out/bench)")
    parser.add_argument("--readme", type=Path, default=Path("README.md"))
    options = parser.parse_args(arguments)
    options.readme.write_text(with_table(options.readme.read_text(), speed(read(options.results))))


def with_table(text: str, new: str) -> str:
    """The text with its table of rules by another."""
    found, count = re.subn(r"(?m)^\|  \| OGA \|.*\n(\|.*\n)+", lambda _: new + "\n", text)
    if count != 1:
        raise ValueError(f"the text has {count} tables that begin with '|  | OGA |': needs one")
    return found


def speed(results: Mapping[str, Results]) -> str:
    made, real = (results["dense"]["cases"][case]["ns a row"] for case in ("synthetic", "Cover Type"))
    engine = results["engine"]

    def row(name: str, of: Callable[[str], float]) -> list[str]:
        try:
            return [name, *(number(of(rule)) for rule in RULES)]
        except KeyError:  # a peer, or a C compiler, is not there
            return [name, *("–" for _ in RULES)]

    lines = [
        row("ns a row, d = 54", lambda rule: made[rule]),
        row("÷ C, d = 54", lambda rule: made[rule] / made[f"{rule} in C"]),
        row("÷ C, Cover Type itself", lambda rule: real[rule] / real[f"{rule} in C"]),
        row("÷ `X @ w`, d = 54", lambda rule: made[rule] / made["X @ w"]),
        *(row(f"÷ C, d = {dim:,}", engine["÷ C"].get(str(dim), {}).__getitem__) for dim in WIDTHS),
        row("dense ÷ sparse, a row, 1% of d = 10,000", engine["dense ÷ sparse, a row"].__getitem__),
        row("scikit-learn's SGD ÷ it", lambda rule: made["scikit-learn SGD, one call"] / made[rule]),
        row("VW's cached pass ÷ it", lambda rule: made["VW, cached pass"] / made[rule]),
        row("River's logistic regression ÷ it", lambda rule: made["River LogisticRegression"] / made[rule]),
    ]
    return table(["", *RULES], lines)


if __name__ == "__main__":
    main()
