"""Would a floor, or scale parameters, make the default better? Its learners changed, on some streams of the study.

    python benchmarks/ngvi_quality.py [--streams breast,pima,toy,boston,trump,chick] [--variant scaled]

A floor is offered in mean field alone, so all that have one are compared with the default without covariances too. The table
is that of docs/ngvi.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

import timing  # noqa: F401  (one thread, said before numpy is imported)
from ours import Pass, default, pooling, progressive, with_learners
from scores import HEADLINE, score
from study_streams import streams

import onlinevi as ovi

FLOORS = (0.03, 0.1, 0.3)


def floored_box(floor: float, learner: ovi.Linear) -> ovi.Linear:
    """An implicit step moves the mean with the std before it: there a floor is the low end of the box."""
    box = ovi.Box(mean=None, std=(floor, 1.0))
    return learner if learner.family.correlated else replace(learner, family=replace(learner.family, box=box))


def in_mean_field(rule: str, learner: ovi.Linear) -> ovi.Linear:
    step, family = learner.rule.rate, ovi.MeanField(prior_std=learner.family.prior_std, box=None)
    rules = {
        "implicit": learner.rule,
        "ngvi": ovi.NGVI(step),
        "floor": ovi.NGVI(step, floor=0.1),
        "scale": ovi.NGVI(step, parameters="scale"),
    }
    return replace(learner, rule=rules[rule], family=family)


def variants() -> dict[str, Pass]:
    changes = {f"default, floor {floor:g}": partial(floored_box, floor) for floor in FLOORS}
    changes |= {
        "mean field": partial(in_mean_field, "implicit"),
        "mean field, NGVI": partial(in_mean_field, "ngvi"),
        "mean field, NGVI(floor=0.1)": partial(in_mean_field, "floor"),
        "mean field, NGVI in scale": partial(in_mean_field, "scale"),
    }
    return {"default": default} | {
        name: partial(pooling, vary=partial(with_learners, change)) for name, change in changes.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="breast,pima,toy,boston,trump,chick", help="names, with commas between them")
    parser.add_argument("--variant", default="scaled", help="scaled, raw, blown or corrupted")
    options = parser.parse_args()
    runs = variants()
    print("| stream | " + " | ".join(runs) + " |\n" + "|---" * (1 + len(runs)) + "|")
    for stream in streams(options.streams.split(","), [options.variant]):
        found = []
        for run in runs.values():
            scored = progressive(run, stream)
            value = score(stream, scored).get(HEADLINE[stream.task])
            found.append(f"refused row {scored.finished}" if value is None else f"{value:.4g}")
        print(f"| {stream.name} | " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
