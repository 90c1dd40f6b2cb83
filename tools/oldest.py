"""The suite with the oldest versions that pyproject.toml allows: each of its floors is one that was tested.

    python tools/oldest.py FOLDER [pytest's arguments]

Makes a virtual environment in FOLDER: every package that users get is at its floor, the tools of the tests are the newest.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USERS = ("dask", "data", "files", "nn", "paper", "plot", "report", "river", "sklearn")
"""The extras that are no tools of ours."""


def floors() -> dict[str, str]:
    """The oldest version of each package; of several floors the highest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *(need for extra in USERS for need in project["optional-dependencies"][extra])]
    found: dict[str, str] = {}
    for need in needed:
        if match := re.fullmatch(r"([\w-]+)>=([\d.]+)", need):
            name, version = match.groups()
            found[name] = max(found.get(name, "0"), version, key=lambda text: [int(part) for part in text.split(".")])
    return found


def main(folder: Path, arguments: list[str]) -> int:
    venv.create(folder, with_pip=True, clear=True)
    python, pins = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python", folder / "floors.txt"
    pins.write_text("".join(f"{name}=={version}.*\n" for name, version in floors().items()))
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--constraint", pins, "--editable", f"{ROOT}[test]"], check=True
    )
    return subprocess.run([python, "-m", "pytest", "-q", *arguments], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
