"""docs/benchmarks.md and its plots, from the results of a run: nothing on the page is typed by hand but the notes.

    python benchmarks/page.py [--results out/bench] [--page docs/benchmarks.md]

What limits a bar that is missed is said in notes.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import default
import quality_tables
from bars import BARS, RULES, Verdict, judge
from bench import SECTIONS
from plots import draw, fills
from timing import HERE, OUT

Results = Mapping[str, Any]

OPENING = """# Benchmarks

`make bench` measures everything on this page and writes it; `python benchmarks/bench.py growth` measures one section. Times
are the best of 7 rounds or more in which all take turns, in a process kept on two cores with one thread for each library, so
that ratios can be trusted more than times. What was too slow got fewer rows, and is given a row. The library's rules use 64
bits and keep what their certificates need; Vowpal Wabbit uses 32 bits, and reads ahead in a second thread."""
OF_TINY = "**These are numbers of a tiny run: they say that everything runs, and nothing else.**"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=OUT, help="where the JSON files are (default: out/bench)")
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks.md"), help="plots go into img beside it")
    options = parser.parse_args(arguments)
    results = read(options.results)
    if not results:
        parser.error(f"{options.results} has no results: run python benchmarks/bench.py first")
    images = draw(results, options.page.parent / "img")
    relative = {path.stem: os.path.relpath(path, options.page.parent) for path in images}
    options.page.parent.mkdir(parents=True, exist_ok=True)
    said = {key: quoting(text, results) for key, text in notes(HERE / "notes.md").items()}
    options.page.write_text(page(results, relative, said))
    print("wrote", options.page, *images)


def read(folder: Path) -> dict[str, Results]:
    """The sections that are there, in the order of the suite."""
    paths = {name: folder / f"{name}.json" for name in SECTIONS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def notes(path: Path) -> dict[str, str]:
    """The texts below the headings, by the bar they are of."""
    found = {}
    for part in path.read_text().split("\n## ")[1:]:
        key, _, text = part.partition("\n")
        if key.strip() not in {bar.key for bar in BARS}:
            raise ValueError(f"{path} has a note on {key.strip()!r}: needs one of {', '.join(bar.key for bar in BARS)}")
        found[key.strip()] = text.strip()
    return found


def page(results: Mapping[str, Results], images: Mapping[str, str], said: Mapping[str, str]) -> str:
    parts = [OPENING]
    if any(each.get("tiny") for each in results.values()):
        parts.append(OF_TINY)
    parts += ["## What is promised, and what was measured", *promises(list(judge(results)), said)]
    for name, section in results.items():
        title, tables = WRITERS[name]
        parts += [f"## {title}", f"`{section['command']}`, {section['seconds']:.0f} s."]
        image = f"bench-{name.replace('_', '-')}"
        if image in images:
            parts.append(f"![{title}]({images[image]})")
        written = {} if _nothing(section) else tables(section)
        parts += [f"{heading}\n\n{body}".strip() for heading, body in written.items()]
        parts += [f"Left out: {what}; {why}." for what, why in section.get("left out", {}).items()]
    parts += ["## The machine", machine(results)]
    return "\n\n".join(parts) + "\n"


def _nothing(section: Results) -> bool:
    return not set(section) - {"section", "command", "sources", "machine", "seconds", "tiny", "left out"}


def promises(verdicts: Sequence[Verdict], said: Mapping[str, str]) -> Iterable[str]:
    """One table, and what limits those that were missed."""
    lines = []
    for verdict in verdicts:
        bar = verdict.bar
        needs = f"{'≥' if bar.at_least else '≤'} {bar.limit:g}"
        command = f"`python benchmarks/{bar.section}.py`"
        if verdict.worst is None:
            lines.append([bar.what, needs, "", f"not measured: {verdict.why_not}", command])
            continue
        name, value = verdict.worst
        judged = "met" if verdict.met else f"**missed by {100 * verdict.missed_by:.0f}%**"
        lines.append([bar.what, needs, f"{number(value)} ({name})", judged, command])
    counted = [verdict for verdict in verdicts if verdict.worst is not None]
    met = sum(verdict.met for verdict in counted)
    yield f"{met} of {len(counted)} are met. Where there are several numbers, the worst one is shown."
    yield table(["", "needs", "measured", "", "by"], lines)
    missed = [verdict.bar for verdict in counted if not verdict.met]
    for bar in missed:
        yield f"**{bar.what}.** {said.get(bar.key, 'What limits it is not known yet.')}"


def quoting(text: str, results: Mapping[str, Results]) -> str:
    """The text with each {section/key/key} as the number that was measured."""

    def found(quoted: re.Match[str]) -> str:
        value: Any = results
        for key in quoted[1].split("/"):
            value = value.get(key, {}) if isinstance(value, Mapping) else {}
        return "(not measured)" if isinstance(value, Mapping) else number(value)

    return re.sub(r"\{([^{}]+)\}", found, text)


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return quality_tables.table(header, [[cell.replace("|", "\\|") for cell in line] for line in lines])


def number(value: float) -> str:
    """Three digits, or all that are there before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _passes(section: Results) -> dict[str, str]:
    """A table for each set of rows: the rules as columns against who else there is."""
    written = {}
    for case, each in section["cases"].items():
        times, rows = each["ns a row"], each["rows"]
        rules = [rule for rule in RULES if rule in times]
        lines = []
        for name, value in sorted(times.items(), key=lambda item: item[1]):
            ratios = [number(value / times[rule]) for rule in rules]
            lines.append([name, f"{rows[name]:,}", number(value), *ratios])
        stored = f", {each['stored a row']:.3g} values a row" if "stored a row" in each else ""
        heading = f"### {case}: d = {each['dim']:,}{stored}"
        written[heading] = table(["", "rows", "ns a row", *(f"÷ {rule}" for rule in rules)], lines)
    return written


def _default(section: Results) -> dict[str, str]:
    lines = default.lines(dict(section))
    return {"µs of processor time a row, and ratios.": table(["", *(f"d = {dim}" for dim in section["ns a row"])], lines)}


def _events(section: Results) -> dict[str, str]:
    columns = [f"{what} {part}" for what in ("predict", "update") for part in ("p50", "p99")]
    lines = [[name, *(number(each[column]) for column in columns)] for name, each in section["µs"].items()]
    return {f"µs, {section['events']:,} events of {section['dim']} features.": table(["", *columns], lines)}


def _growth(section: Results) -> dict[str, str]:
    curves = ("events", "features", "stored values")
    exponents = [[name, number(section[name]["exponent"])] for name in curves]
    peaks = [
        [f"{int(count):,} {what}", number(peak)] for what, each in section["peak MB"].items() for count, peak in each.items()
    ]
    caches = "; ".join(f"{level}, {room // 1024:,} KB, at d = {fills(room):,}" for level, room in section["caches"].items())
    rates = {cores: {int(count): value for count, value in each.items()} for cores, each in section["rates"].items()}
    counts = sorted({count for each in rates.values() for count in each})
    pooled = [[cores, *(number(each[count]) for count in counts)] for cores, each in rates.items()]
    threads = section["threads"]
    return {
        "Time grows with a power, fitted over the large half of the sizes.": table(["in", "exponent"], exponents),
        f"A row and the state that it meets fill a cache at these widths: {caches or 'not known here'}.": "",
        "Peak memory of a process that makes its rows as it goes, MB.": table(["", "MB"], peaks),
        "Rates pooled, as multiples of one pass.": table(["", *map(str, counts)], pooled),
        f"{threads['threads']} independent runs in threads: {number(threads['times as fast'])} times as fast as in turn.": "",
    }


def _end_to_end(section: Results) -> dict[str, str]:
    lines = [
        [name, f"{each['rows']:,}", number(each["seconds"]), f"{each['rows/s']:,}", f"{each['peak MB']:,}"]
        for name, each in section["runs"].items()
    ]
    sizes = ", ".join(f"{name} {count / 1e9:.2f} GB" for name, count in section["bytes"].items())
    shares = []
    for kind in ("CSV", "Parquet"):
        reading, whole = (
            section["runs"][f"reading and encoding alone, {kind}"],
            section["runs"][f"onlinevi run --rule svb, {kind}"],
        )
        shares.append(f"{100 * reading['seconds'] / whole['seconds']:.0f}% of the {kind} run")
    heading = f"{section['rows']:,} rows of {section['columns']} columns: {sizes}. Each ran once, start-up included."
    return {
        heading: table(["", "rows", "seconds", "rows/s", "peak MB"], lines),
        f"Reading and encoding are {' and '.join(shares)}.": "",
    }


def _start(section: Results) -> dict[str, str]:
    seconds = [[name, number(each)] for name, each in section["seconds to"].items()]
    sizes = section["installed MB"]
    total = f"Installed: {number(sum(sizes.values()))} MB, of which the package is {number(sizes['onlinevi'])}."
    return {
        "Cold is with an empty cache of compiled kernels.": table(["", "seconds"], seconds),
        total: table(["", "MB"], [[name, number(each)] for name, each in sizes.items()]),
    }


def _engine(section: Results) -> dict[str, str]:
    in_c = section["÷ C"]
    rules = list(dict.fromkeys(rule for each in in_c.values() for rule in each))
    lines = [[f"d = {int(dim):,}", *(number(each[rule]) for rule in rules)] for dim, each in in_c.items()]
    heading = "A pass ÷ the same in C; unchecked: ÷ C that looks at no label, and for nothing that is not finite."
    written = {heading: table(["", *rules], lines)} if rules else {}
    titles = {
        "÷ fused by hand": "÷ fused by hand.",
        "÷ SVB, mean field": "÷ SVB, mean field.",
        "dense ÷ sparse, a row": "Dense ÷ sparse, a row.",
        "µs an update": "µs a call of `update`, d = 54.",
    }
    written |= {title: _columns(section[part]) for part, title in titles.items()}
    return written


def _float32(section: Results) -> dict[str, str]:
    lines = [
        [f"d = {int(dim):,}", rule, number(each["times as fast"]), f"{each['difference in average loss']:.1e}"]
        for dim, rules in section["widths"].items()
        for rule, each in rules.items()
    ]
    return {"": table(["", "", "times as fast", "difference in average loss"], lines)}


def _certificate(section: Results) -> dict[str, str]:
    lines = [[f"d = {int(dim):,}", *map(number, each.values())] for dim, each in section["with ÷ without"].items()]
    rules = next(iter(section["with ÷ without"].values()))
    return {"A pass with the sums ÷ without.": table(["", *rules], lines)}


def _river(section: Results) -> dict[str, str]:
    widths = section["the default"]
    names = dict.fromkeys(name for found in widths.values() for name in found)
    return {
        "µs an event of 54 features, predicted and learned.": table(
            ["", "µs"], [[name, number(v)] for name, v in section["µs an event"].items()]
        ),
        "The default, by the number of features.": table(
            ["", *(f"d = {dim}" for dim in widths)],
            [[name, *(number(found[name]) for found in widths.values())] for name in names],
        ),
    }


def _limits(section: Results) -> dict[str, str]:
    titles = {
        "dense": "d = 54, rows in the cache, ns a row.",
        "sparse": "100 of 1,000,000 columns, ns a row.",
        "pooled": "Sixteen rates at d = 54, ns a row.",
    }
    return {title: _columns(section[part]) for part, title in titles.items()}


def _columns(values: Mapping[str, float]) -> str:
    return table(list(values), [[number(value) for value in values.values()]])


WRITERS = {
    "dense": ("One pass, dense rows", _passes),
    "default": ("The default, in blocks", _default),
    "sparse_rows": ("One pass, sparse rows", _passes),
    "events": ("One event at a time", _events),
    "growth": ("Growth", _growth),
    "end_to_end": ("From a file to a model", _end_to_end),
    "start": ("Start-up", _start),
    "engine": ("The compiled loop", _engine),
    "float32": ("32 bits", _float32),
    "certificate": ("The certificate's sums", _certificate),
    "river_events": ("River's interface", _river),
    "limits": ("What bounds a pass", _limits),
}


def machine(results: Mapping[str, Results]) -> str:
    """Where and with what, as each section found it; a load above 1 says that somebody else was at work."""
    facts = [key for each in results.values() for key in each["machine"] if key != "load at the start"]
    lines = [
        [key, "; ".join(dict.fromkeys(each["machine"].get(key, "") for each in results.values()))]
        for key in dict.fromkeys(facts)
    ]
    loads = ", ".join(f"{name} {each['machine'].get('load at the start', '?')}" for name, each in results.items())
    return f"{table(['', ''], lines)}\n\nLoad at the start of each section: {loads}."


if __name__ == "__main__":
    main()
