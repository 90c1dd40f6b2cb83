"""The suite: every section in a process of its own, one after the other. It goes on where it stopped.

python benchmarks/bench.py                    # all sections, about 25 minutes on two quiet cores; make bench does it
python benchmarks/bench.py dense growth       # some
python benchmarks/bench.py --again            # those too that have results of the present sources
python benchmarks/bench.py --tiny             # minutes, most of them for compiling: to see that everything runs
python benchmarks/page.py                     # docs/benchmarks.md from the results in out/bench
python benchmarks/readme.py                   # and the README's table
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence

from timing import HERE, place, sources

SECTIONS = (
    "dense",
    "default",
    "sparse_rows",
    "events",
    "growth",
    "end_to_end",
    "start",
    "engine",
    "float32",
    "certificate",
    "river_events",
    "limits",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"default: all of {', '.join(SECTIONS)}")
    parser.add_argument("--again", action="store_true", help="measure what has been measured, too")
    parser.add_argument("--tiny", action="store_true", help="few rows, one round: to see that everything runs")
    parser.add_argument("--gb", type=float, default=2.0, help="size of the CSV of end_to_end (default: 2)")
    options = parser.parse_args(arguments)
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no section is called {', '.join(sorted(unknown))}: needs some of {', '.join(SECTIONS)}")
    chosen = [name for name in SECTIONS if name in (options.sections or SECTIONS)]
    failed = []
    for number, name in enumerate(chosen, 1):
        title = f"[{number}/{len(chosen)}] {name}"
        if not options.again and is_done(name, tiny=options.tiny):
            print(f"{title}: has results of the present sources; --again measures anew", flush=True)
            continue
        print(title, flush=True)
        started = time.monotonic()
        if subprocess.run(command(name, options.tiny, options.gb)).returncode:
            failed.append(name)
            print(f"{title}: failed after {time.monotonic() - started:.0f} s; the others go on", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}; the same command tries them again", file=sys.stderr)
    return 1 if failed else 0


def is_done(name: str, *, tiny: bool) -> bool:
    """Whether there are whole results of the library and the section as they are now."""
    path = place(name, tiny=tiny)
    return path.exists() and json.loads(path.read_text()).get("sources") == sources(name)


def command(name: str, tiny: bool, gb: float) -> list[str]:
    more = (["--tiny"] if tiny else []) + ([f"--gb={gb}"] if name == "end_to_end" else [])
    return [sys.executable, str(HERE / f"{name}.py"), *more]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on with the section that was under way")
