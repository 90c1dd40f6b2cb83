"""The live page in a real browser: its numbers follow the model, it comes back with the service, and text stays text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.served import RULE, rows, served

from onlinevi.adapters.serve.access import Tokens
from onlinevi.client import ServiceError

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="has no Chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
WAIT = 30_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, port: int, *, width: int = 1400, dark: bool = False) -> Iterator[tuple[Any, list[str]]]:
    """The page, and what goes wrong on it."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    page, problems = context.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: problems.append(f"dialog {dialog.message}"))
    page.goto(f"http://127.0.0.1:{port}/", wait_until="domcontentloaded")
    yield page, problems
    context.close()


def events(count: int, seed: int, ids: str) -> list[dict[str, Any]]:
    made = []
    for k, row in enumerate(rows(count, seed)):
        made.append({"label": row.pop("y"), "row": row, "id": f"{ids}{k}"})
    return made


def shows(page: Any, card: str, value: str) -> None:
    """Wait until a card of the page says this."""
    page.locator(f"#cards div:has(dt:text-is('{card}')) dd:text-is('{value}')").wait_for(timeout=WAIT)


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_numbers_change_when_events_are_learned(tmp_path: Path, browser: Any, width: int, dark: bool) -> None:
    with served(tmp_path) as client:
        model = client.make("clicks", target="y", rule=RULE)
        model.learn_many(events(60, 0, "a"))
        client.make("flats", target="price", rule=RULE)
        with opened(browser, client._connection.port, width=width, dark=dark) as (page, problems):
            shows(page, "events", "60")
            page.locator("#chart-loss[data-drawn]").wait_for(timeout=WAIT)
            lead = page.locator("#lead").text_content()
            model.learn_many(events(40, 1, "b"))
            model.learn_many([{"row": {"a": "odd"}, "label": "yes"}])
            shows(page, "events", "100")
            page.locator("#refused td:text-is('needs a finite number')").wait_for(timeout=WAIT)
            with pytest.raises(ServiceError):
                model.learn({"aa": 1.0}, label="yes")
            page.locator("#refused td", has_text="did you mean 'a'").wait_for(timeout=WAIT)
            assert page.locator("#lead").text_content() != lead
            assert page.locator("#recent tbody tr").first.text_content().startswith("100b39")
            assert page.locator("#state").get_attribute("data-state") == "live"
            assert page.locator("#models a[data-ready=true]", has_text="clicks100").count() == 1
            shown = page.locator(".switches button[aria-pressed=true]")
            before = shown.count()
            shown.first.click()
            model.learn_many(events(1, 7, "c"))
            shows(page, "events", "101")
            assert shown.count() == before - 1 >= 0
            client["flats"].learn_many([{"row": {"size": k}, "label": 2.0 * k} for k in range(30)])
            page.locator("#models a", has_text="flats30").wait_for(timeout=WAIT)
            client.make("empty", target="price")
            page.locator("#models a", has_text="empty").click()
            page.locator("h1:text-is('empty has learned nothing yet')").wait_for(timeout=WAIT)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert problems == []


def test_the_page_comes_back_with_the_service(tmp_path: Path, browser: Any) -> None:
    first, second = ExitStack(), ExitStack()
    with first, second:
        client = first.enter_context(served(tmp_path))
        client.make("clicks", target="y", rule=RULE).learn_many(events(30, 0, "a"))
        port = client._connection.port
        with opened(browser, port) as (page, _):
            shows(page, "events", "30")
            first.close()
            page.locator("#state[data-state=lost]").wait_for(timeout=WAIT)
            again = second.enter_context(served(tmp_path, port=port))
            page.locator("#state[data-state=live]").wait_for(timeout=WAIT)
            again["clicks"].learn_many(events(20, 2, "b"))
            shows(page, "events", "50")


def test_text_of_the_data_stays_text(tmp_path: Path, browser: Any) -> None:
    bad = "<script>alert(1)</script>\u2028<img src=x onerror=alert(2)>"  # what ends a line in JavaScript ends no text
    printed = bad.replace("\u2028", "")
    with served(tmp_path) as client:
        model = client.make("clicks", target=f"y{bad}", rule=RULE)
        for k in range(30):
            label = f"yes{bad}" if k % 3 else f"no{bad}"
            model.learn({f"a{bad}": float(k % 7), f"b{bad}": f"u{bad}"}, label=label, id=f"{k}{printed}")
        model.learn_many([{"id": f"unknown{printed}", "label": "x"}])
        with opened(browser, client._connection.port) as (page, problems):
            shows(page, "events", "30")
            page.locator("#chart-loss[data-drawn]").wait_for(timeout=WAIT)
            assert bad in page.locator("#recent tbody").text_content()
            assert printed in page.locator("#refused tbody").text_content()
            assert page.locator("main img, main script").count() == 0
            assert problems == []


def test_the_page_asks_for_a_token(tmp_path: Path, browser: Any) -> None:
    (tmp_path / "tokens").write_text("admin " + "t" * 20)
    with served(tmp_path / "models", Tokens.read(tmp_path / "tokens"), token="t" * 20) as client:
        client.make("clicks", target="y", rule=RULE).learn_many(events(30, 0, "a"))
        with opened(browser, client._connection.port) as (page, _):
            page.locator("#entrance").wait_for(timeout=WAIT)
            assert page.locator("#cards dd").count() == 0
            page.locator("#token").fill("t" * 20)
            page.locator("#entrance button").click()
            shows(page, "events", "30")
            assert json.dumps("t" * 20) not in page.content()
