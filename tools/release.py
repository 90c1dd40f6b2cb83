"""What a release would be: sdist and wheel are built, the wheel is installed by itself, and its command line runs.

    python tools/release.py [--fresh] [--out dist]

The wheel is built from the sdist, so that nothing it needs is missing there. It goes into an empty environment that borrows
the packages of this one, for speed; with --fresh pip fetches them, as people will. A fault ends the script with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = "files,data,report"
SAYS = "Predict species (setosa, versicolor or virginica) from 4 columns."


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist of this repository, and the wheel of the sdist."""
    _run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder, cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (source,) = Path(unpacked).iterdir()
        _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=source)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def lacking(wheel: Path) -> list[str]:
    """What the package has here and the wheel has not; it needs its style sheets and its type marker too."""
    there = set(zipfile.ZipFile(wheel).namelist())
    here = [path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(name for path in here if (name := path.relative_to(ROOT / "src").as_posix()) not in there)


def install(wheel: Path, folder: Path, *, fresh: bool) -> Path:
    """The wheel in an environment of its own; the folder of its commands."""
    venv.create(folder, with_pip=fresh, symlinks=True)
    python = folder / "bin" / "python"
    if fresh:
        _run(python, "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]")
    else:
        _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel)
        (own,) = folder.glob("lib/python*/site-packages")
        (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin"


def smoke(commands: Path, folder: Path, *, fresh: bool) -> None:
    """What people do first, in an empty folder."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    # Compiling takes longer than all else here: the interpreted engine gives the same numbers.
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = plain if fresh else plain | {"ONLINEVI_ENGINE": "interpreted"}

    def said(*words: str) -> str:
        return _run(commands / "onlinevi", *words, cwd=folder, environment=environment)

    place = _run(commands / "python", "-c", "import onlinevi; print(onlinevi.__file__)", cwd=folder, environment=environment)
    assert Path(place.strip()).is_relative_to(commands.parent), f"{place} is not the wheel's"
    assert said("--version") == f"onlinevi {version}\n"
    said("data", "--write", "iris.csv")
    assert SAYS in said("run", "iris.csv", "--target", "species", "--effort", "light", "--out", "out")
    facts = json.loads(said("predict", "out/model.ovi", "iris.csv", "--json"))
    assert len(facts["predictions"]) == 150
    assert (folder / "out" / "report.html").stat().st_size > 1_000_000, "the page lacks its parts"


def _run(*command: object, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="with packages that pip fetches")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to keep sdist and wheel (default: nowhere)")
    chosen, begun = parser.parse_args(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = chosen.out or Path(folder) / "dist"
        place.mkdir(parents=True, exist_ok=True)
        sdist, wheel = build(place.resolve())
        if left_out := lacking(wheel):
            print("the wheel lacks", *left_out, sep="\n  ")
            return 1
        commands = install(wheel, Path(folder) / "venv", fresh=chosen.fresh)
        (work := Path(folder) / "work").mkdir()
        smoke(commands, work, fresh=chosen.fresh)
    print(f"{sdist.name} and {wheel.name} are built, installed and run, in {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
