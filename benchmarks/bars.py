"""What the library promises of its speed and memory, each with the numbers of a run that it is judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

MEAN_FIELD = ("OGA-EL", "SVA", "SVB", "NGVI")
RULES = ("OGA", *MEAN_FIELD)
Numbers = dict[str, float]
Results = Mapping[str, Any]


class Bar(NamedTuple):
    """A limit for every number that ``of`` finds in a section's results; the worst one counts."""

    key: str
    what: str
    section: str
    limit: float
    of: Callable[[Results], Numbers]
    at_least: bool = False


class Verdict(NamedTuple):
    bar: Bar
    worst: tuple[str, float] | None
    """Of what, and how much; None if it was not measured."""
    why_not: str = ""

    @property
    def met(self) -> bool:
        assert self.worst is not None
        return self.worst[1] >= self.bar.limit if self.bar.at_least else self.worst[1] <= self.bar.limit

    @property
    def missed_by(self) -> float:
        """A share of the limit."""
        assert self.worst is not None
        return abs(self.worst[1] / self.bar.limit - 1.0)


def judge(results: Mapping[str, Results]) -> Iterator[Verdict]:
    """Each bar by the results of its section, where they are there."""
    for bar in BARS:
        found = results.get(bar.section)
        numbers = {} if found is None else _found(bar, found)
        if not numbers:
            absent = ", ".join((found or {}).get("left out", {}))
            yield Verdict(bar, None, f"left out: {absent}" if absent else "no results of it")
            continue
        name = (min if bar.at_least else max)(numbers, key=lambda each: numbers[each])
        yield Verdict(bar, (name, numbers[name]))


def _found(bar: Bar, results: Results) -> Numbers:
    try:
        return bar.of(results)
    except KeyError:  # a peer, or a size of a full run, is not there
        return {}


def _dense(top: Callable[[Numbers, str], float], bottom: Callable[[Numbers, str], float], rules: tuple[str, ...]) -> Any:
    """A ratio of times a row for each of these rules, on each of the two sets of rows."""

    def of(results: Results) -> Numbers:
        return {
            f"{rule}, {case}": top(each["ns a row"], rule) / bottom(each["ns a row"], rule)
            for case, each in results["cases"].items()
            for rule in rules
        }

    return of


def _own(times: Numbers, rule: str) -> float:
    return times[rule]


def _in_c(times: Numbers, rule: str) -> float:
    return times[f"{rule} in C"]


def _by(name: str) -> Callable[[Numbers, str], float]:
    return lambda times, _: times[name]


def _vw(times: Numbers, _: str) -> float:
    """The faster of its two."""
    return min(times["VW, cached pass"], times["VW --sgd, cached pass"])


def _rates(cores: str) -> Callable[[Results], Numbers]:
    return lambda results: {"16 rates": results["rates"][cores]["16"]}


def _wide(what: str) -> Callable[[Results], Numbers]:
    def of(results: Results) -> Numbers:
        wide = {dim: each for dim, each in results["widths"].items() if int(dim) >= 1_000}
        return {f"{rule}, d = {int(dim):,}": each[rule][what] for dim, each in wide.items() for rule in each}

    return of


def _exponent(what: str) -> Callable[[Results], Numbers]:
    return lambda results: {what: results[what]["exponent"]}


def _in_c_by_width(results: Results) -> Numbers:
    return {f"{rule}, d = {int(dim):,}": each[rule] for dim, each in results["÷ C"].items() for rule in RULES}


def _peaks(results: Results) -> Numbers:
    peaks = results["peak MB"]["events"]
    return {"10,000,000 ÷ 100,000 events": peaks["10000000"] / peaks["100000"]}


def _file_peak(results: Results) -> Numbers:
    runs = results["runs"]
    name = "onlinevi run --rule svb, CSV"
    return {"all ÷ first tenth of the rows": runs[name]["peak MB"] / runs[f"{name}, first tenth"]["peak MB"]}


def _small_file(results: Results) -> Numbers:
    return {name: each for name, each in results["seconds to"].items() if "run" in name and name.endswith("warm")}


def _first(when: str) -> Callable[[Results], Numbers]:
    """Of the default, with this state of the cache of compiled loops."""
    return lambda results: {
        name: seconds for name, seconds in results["seconds to"].items() if "auto" in name and f"{when}, of the" in name
    }


def _river_event(peer: str) -> Callable[[Results], Numbers]:
    ours = "OnlineVIClassifier(rule=NGVI())"
    return lambda results: {ours: results["µs an event"][peer] / results["µs an event"][ours]}


def _default(who: str, to: str, *dims: str) -> Callable[[Results], Numbers]:
    return lambda results: {f"d = {dim}": results["ns a row"][dim][who] / results["ns a row"][dim][to] for dim in dims}


def _forest(results: Results) -> Numbers:
    return {f"d = {dim}": each["River ARF, 10 trees"] / each["Auto()"] for dim, each in results["bent"].items()}


BARS = (
    Bar("c", "mean-field pass ÷ the same in C, d = 54", "dense", 1.2, _dense(_own, _in_c, MEAN_FIELD)),
    Bar("c-oga", "OGA ÷ the same in C, d = 54", "dense", 1.25, _dense(_own, _in_c, ("OGA",))),
    Bar("c-widths", "a pass ÷ the same in C, other widths", "engine", 1.25, _in_c_by_width),
    Bar(
        "composed",
        "loop composed of parts ÷ fused by hand",
        "engine",
        1.05,
        lambda results: {"SVB, d = 54": results["÷ fused by hand"]["composed"]},
    ),
    Bar(
        "sparse",
        "dense ÷ sparse, a row, 1% of d = 10,000",
        "engine",
        30.0,
        lambda results: results["dense ÷ sparse, a row"],
        at_least=True,
    ),
    Bar("update", "µs a call of `update`, d = 54", "engine", 5.0, lambda results: results["µs an update"]),
    Bar("matmul", "mean-field pass ÷ `X @ w`, d = 54", "dense", 6.0, _dense(_own, _by("X @ w"), MEAN_FIELD)),
    Bar(
        "sgd",
        "scikit-learn's SGD in one call ÷ mean-field pass",
        "dense",
        1.0,
        _dense(_by("scikit-learn SGD, one call"), _own, MEAN_FIELD),
        at_least=True,
    ),
    Bar(
        "sgd-oga",
        "scikit-learn's SGD in one call ÷ OGA",
        "dense",
        4.0,
        _dense(_by("scikit-learn SGD, one call"), _own, ("OGA",)),
        at_least=True,
    ),
    Bar(
        "river",
        "River's LogisticRegression ÷ a pass",
        "dense",
        100.0,
        _dense(_by("River LogisticRegression"), _own, RULES),
        at_least=True,
    ),
    Bar("vw", "VW's cached pass ÷ a pass, d = 54", "dense", 4.0, _dense(_vw, _own, RULES), at_least=True),
    Bar(
        "full",
        "full covariance ÷ the same in C, d = 54",
        "dense",
        1.5,
        _dense(_own, _in_c, ("NGVI, full covariance",)),
    ),
    Bar("rates", "16 rates pooled ÷ one, one core", "growth", 14.0, _rates("1 core")),
    Bar("rates-two", "16 rates pooled ÷ one, two cores", "growth", 9.0, _rates("2 cores")),
    Bar("vw-sparse", "VW's cached pass ÷ a sparse pass", "sparse_rows", 1.0, _dense(_vw, _own, RULES), at_least=True),
    Bar("float32", "float64 ÷ float32, d ≥ 1,000", "float32", 1.6, _wide("times as fast"), at_least=True),
    Bar("float32-loss", "change of the average loss by float32", "float32", 1e-4, _wide("difference in average loss")),
    Bar(
        "threads",
        "two independent runs: in turn ÷ in two threads",
        "growth",
        1.8,
        lambda results: {"SVB, d = 54": results["threads"]["times as fast"]},
        at_least=True,
    ),
    Bar("memory", "peak memory of long ÷ short streams", "growth", 1.05, _peaks),
    Bar("memory-file", "peak memory of `onlinevi run`", "end_to_end", 1.1, _file_peak),
    Bar("import", "seconds to import, warm", "start", 0.5, lambda results: {"import": results["seconds to"]["import, warm"]}),
    Bar("first", "processor seconds to the default's first result, nothing compiled", "start", 6.0, _first("cold")),
    Bar("first-warm", "the same, all compiled", "start", 1.5, _first("warm")),
    Bar("small-file", "seconds for a small file, warm", "start", 3.0, _small_file),
    Bar("events", "exponent of time in events", "growth", 1.1, _exponent("events")),
    Bar("stored", "exponent of time in stored values", "growth", 1.1, _exponent("stored values")),
    Bar(
        "certificate",
        "pass with the certificate's sums ÷ without, d = 54",
        "certificate",
        1.05,
        lambda results: results["with ÷ without"]["54"],
    ),
    *(
        Bar(
            key,
            f"River's StandardScaler | LogisticRegression ÷ {own}, d = {' and '.join(dims)}",
            "default",
            limit,
            _default("River StandardScaler | LogisticRegression", own, *dims),
            at_least=True,
        )
        for key, own, limit, dims in (
            ("light", "Auto(effort='light')", 3.0, ("5", "20")),
            ("light-wide", "Auto(effort='light')", 2.0, ("54",)),
            ("default", "Auto()", 0.3, ("5",)),
            ("default-wide", "Auto()", 0.5, ("54",)),
        )
    ),
    Bar("forest", "River's ARF, 10 trees ÷ Auto(), rows that bend", "default", 20.0, _forest, at_least=True),
    Bar("classes", "7 classes ÷ two, Auto()", "default", 5.0, _default("Auto(), 7 classes", "Auto()", "5", "20", "54")),
    Bar(
        "river-bare",
        "River's LogisticRegression ÷ ours in River, an event",
        "river_events",
        1.5,
        _river_event("River LogisticRegression"),
        at_least=True,
    ),
    Bar(
        "river-scaled",
        "River's StandardScaler | LogisticRegression ÷ ours in River, an event",
        "river_events",
        4.0,
        _river_event("River StandardScaler | LogisticRegression"),
        at_least=True,
    ),
)
