"""What docs/report.md shows is the top of the page of the run in docs/start.md: ``python tools/picture.py`` takes it anew.

It needs Chromium, by the name of ``chromium`` or the one that Playwright brings.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from onlinevi.adapters.cli import main
from onlinevi.data import samples

PICTURE = Path(__file__).parents[1] / "docs" / "img" / "report.png"
SIZE = {"width": 880, "height": 1500}


def take(page: Path, picture: Path, size: dict[str, int]) -> None:
    """The top of a page, on light paper, once its charts are drawn."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            sheet = browser.new_page(viewport=size, color_scheme="light")  # type: ignore[arg-type]
            sheet.goto(page.as_uri())
            sheet.wait_for_selector(".chart svg")
            sheet.wait_for_timeout(500)
            sheet.screenshot(path=picture)
        finally:
            browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        main(["run", str(samples.write(Path(folder) / "breast.csv")), "--target", "diagnosis", "--out", str(out), "--quiet"])
        take(out / "report.html", PICTURE, SIZE)
