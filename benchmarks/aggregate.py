"""What an aggregate of 16 rates costs: its pass as a multiple of the pass of one rate, in one thread and in two.

    python benchmarks/aggregate.py [--quick]

Rows like Cover Type's, 54 columns. Both passes record every event. The pass of one rate goes over 16 times the rows, so that
both take as long and a busy machine disturbs them alike; best of 25, in turns. One thread is measured in processor time, two
by the clock on the wall, which means something on two idle cores only.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

from engine import data
from timing import interleaved, machine, save

import onlinevi as ovi
from onlinevi.ewa import AdaHedge, Aggregate, AggregateState, over_rates

RATES, DIM, HORIZON = 16, 54, 581_012
CASES = {
    "SVB, hinge": ovi.Linear(ovi.Hinge(), ovi.SVB()),
    "SVA, hinge": ovi.Linear(ovi.Hinge(), ovi.SVA()),
    "OGA, hinge": ovi.Linear(ovi.Hinge(), ovi.OGA()),
    "SVB, logistic": ovi.Linear(ovi.Logistic(), ovi.SVB()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    rows = 2_000 if parser.parse_args().quick else 36_000
    X, y = data(RATES * rows, DIM)
    few = X[:rows], y[:rows]
    results: dict[str, object] = {"machine": machine("numpy", "numba"), "rates": RATES, "d": DIM}
    for name, one in CASES.items():
        mix = Aggregate(over_rates(one, 0.01, 10.0, RATES), rate=AdaHedge())
        alone, start = one.init(DIM, HORIZON), mix.init(DIM, HORIZON)

        def of_all(threads: int, mix: Aggregate = mix, state: AggregateState = start) -> object:
            return mix.update_many(state, *few, threads=threads)

        of_one = partial(one.update_many, alone, X, y)
        single = interleaved({"one": of_one, "all": partial(of_all, 1)}, 25, time.process_time)
        double = interleaved({"one": of_one, "all": partial(of_all, 2)}, 25)
        ratios = {"one thread": RATES * single["all"] / single["one"], "two threads": RATES * double["all"] / double["one"]}
        results[name] = {"ns a row of one": round(1e9 * single["one"] / len(y), 1)} | {
            k: round(v, 2) for k, v in ratios.items()
        }
        print(f"{name}: {ratios['one thread']:.1f} times the pass of one rate, {ratios['two threads']:.1f} in two threads")
    print("saved to", save("aggregate", results))


if __name__ == "__main__":
    main()
