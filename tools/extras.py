"""What the core and each extra weigh, installed: ``python tools/extras.py`` writes the table in docs/install.md anew.

Each is installed into an empty folder by pip, from the network or its cache, and its files are added up; of an extra, what it
adds to the core. It takes some minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "install.md"
TABLE = re.compile(r"(?<=<!-- weights -->\n).*?(?=<!-- end -->)", re.DOTALL)
FOR = {
    "files": "files and pipes: the command line's `run`, `compare`, `predict`; `ovi.fit`",
    "kafka": "topics of Kafka in the place of files",
    "redis": "streams of Redis in the place of files",
    "report": "report.html",
    "plot": "figures: `ovi.plot`, `compare.png`",
    "serve": "`onlinevi serve`: models behind HTTP; it has `files` and `report`",
    "data": "`onlinevi data`: samples, and the paper's data sets",
    "sklearn": "scikit-learn's estimators",
    "river": "River's estimators",
    "nn": "`onlinevi.autodiff`: any model that JAX can differentiate",
    "dask": "shards on a Dask cluster",
    "paper": "`onlinevi reproduce`",
    "docs": "the documentation as pages",
}
"""What each extra that people install is for; those of developers alone are left out."""


def weight(requirement: str) -> tuple[float, set[str]]:
    """The megabytes that a requirement takes, and the packages."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", folder, requirement]
        subprocess.run(call, check=True)
        size = sum(file.lstat().st_size for file in Path(folder).rglob("*") if file.is_file())
        packages = {path.name.rsplit("-", 1)[0] for path in Path(folder).glob("*.dist-info")}
    return size / 1e6, packages


def table() -> str:
    """The table in Markdown."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    core, packages = weight(str(ROOT))
    lines = ["| | for | MB | packages |", "| --- | --- | --- | --- |"]
    lines.append(f"| the core | learning from arrays and tables, guarantees, files of models | {core:.0f} | {len(packages)} |")
    for name, purpose in FOR.items():
        assert name in extras, name
        size, all_of_them = weight(f"{ROOT}[{name}]")
        lines.append(f"| `{name}` | {purpose} | + {size - core:.0f} | + {len(all_of_them - packages)} |")
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    made = table()
    PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
