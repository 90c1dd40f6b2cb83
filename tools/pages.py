"""What the documentation site has beyond docs/: the documents at the root, code that is linked to, the command line."""

from __future__ import annotations

import logging
import os
import re
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from pkgutil import resolve_name
from types import ModuleType
from typing import Any
from unittest.mock import patch

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
AT_THE_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Documents outside docs/, and the pages that they become."""
MENTIONED = re.compile(r"`(onlinevi(?:\.\w+)+)")
"""A name that a document gives in full, to be imported from there."""
LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)]*)?\)")
LOADED = re.compile(r"""<(?:img|link|script)\b[^>]*?\s(?:href|src)=["']?((?:https?:)?//[^"'\s>]+)""")
log = logging.getLogger("mkdocs.hooks.pages")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, not written."""
    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in AT_THE_ROOT.items()}
    written = {file.src_uri: file.content_string for file in files.documentation_pages()}
    for page, text in (pages | written).items():
        for target in _linked(page, text):
            if target.suffix == ".py":
                pages[_page_of(target)] = f"# {target.name}\n\n```python\n{(ROOT / target).read_text(encoding='utf-8')}```\n"
    pages["reference/command_line.md"] = _command_line()
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links are written to work on disk; here they go to where the site has the same."""
    uri = page.file.src_uri

    def moved(link: re.Match[str]) -> str:
        place = os.path.relpath(_page_of(_target(uri, link[2])), PurePosixPath(uri).parent)
        return f"{link[1]}{PurePosixPath(place)}{link[3] or ''})"

    return markdown if uri.startswith(("code/", "reference/")) else LINK.sub(moved, markdown)


def on_post_build(config: Any) -> None:
    """Every public name is on a page, and no page loads anything from elsewhere; a warning ends a strict build."""
    site = Path(config.site_dir)
    entries = zlib.decompress((site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1]).decode().splitlines()
    found = {entry.split()[0] for entry in entries}
    for name, places in _public():
        if not places & found:
            log.warning(f"{name} is public, and on no page of docs/reference")
    for page in site.rglob("*.html"):
        for address in LOADED.findall(page.read_text(encoding="utf-8")):
            log.warning(f"{page.relative_to(site)} loads {address}: keep it here, the site has to work without a network")


def _page_of(path: PurePosixPath) -> str:
    """Where the site has a file of the repository."""
    if path.suffix == ".py":
        return f"code/{path.with_suffix('.md')}"
    return AT_THE_ROOT.get(str(path)) or str(path.relative_to("docs"))


def _target(page: str, link: str) -> PurePosixPath:
    """The file of the repository that a page links to."""
    origins = {made: name for name, made in AT_THE_ROOT.items()}
    here = PurePosixPath(origins.get(page, f"docs/{page}")).parent
    return PurePosixPath(os.path.normpath(here / link))


def _linked(page: str, text: str) -> Iterator[PurePosixPath]:
    return (_target(page, link[2]) for link in LINK.finditer(text))


def _command_line() -> str:
    """What each command says to --help-all."""
    from onlinevi.adapters.cli import command_parser

    parts = []
    with patch.dict(os.environ, COLUMNS="92", NO_COLOR="1"):
        for parser in _parsers(command_parser()):
            parser.whole = True
            parts.append(f"## {parser.prog}\n\n```text\n{parser.format_help()}```\n")
    return "# Command line\n\n" + "\n".join(parts)


def _parsers(parser: Any) -> Iterator[Any]:
    """A parser and those of its commands."""
    yield parser
    for command in parser.commands.values():
        yield from _parsers(command)


def _public() -> Iterator[tuple[str, set[str]]]:
    """The public names, and where a page may have each: under any path that leads to the same object.

    Public is what ``onlinevi``, the modules beside its packages and ``onlinevi.checks`` name in ``__all__``, and what a
    document names in full. A package may name more, for other packages.
    """
    beside = sorted(path.stem for path in ROOT.glob("src/onlinevi/[a-z]*.py"))
    modules = [import_module(name) for name in ("onlinevi", *(f"onlinevi.{module}" for module in beside))]
    paths = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}
    for document in [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in AT_THE_ROOT if name != "CHANGELOG.md")]:
        paths |= {name: resolve_name(name) for name in MENTIONED.findall(document.read_text(encoding="utf-8"))}
    for path, value in paths.items():
        if not isinstance(value, ModuleType):
            places = {other for other, same in paths.items() if same is value}
            places.add(f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}")
            yield path, places
