"""Downloads, against a server on this machine: what is received is checked, continued, tried again, or refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import socket
import sys
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from onlinevi import datasets
from onlinevi.data.catalogue import download, storage
from onlinevi.data.catalogue.catalogue import CATALOGUE
from onlinevi.data.catalogue.entry import Entry, Origin, StoredFile, Table

TEXT = b"a,b,price\n" + b"".join(b"%d,%d,%d\n" % (k, k * k, 3 * k) for k in range(20_000))
PACKED = gzip.compress(TEXT, mtime=0)


class Server(HTTPServer):
    """Serves ``body``. ``failures`` are answered first, one a request: a status, or the bytes after which it hangs up."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = PACKED
        self.ranges = True
        self.failures: list[tuple[str, int]] = []
        self.requested: list[str | None] = []
        self.sent: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mini.gz"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.requested.append(wanted)
        kind, number = server.failures.pop(0) if server.failures else ("", 0)
        if kind == "status":
            return self.send_error(number)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.ranges else 0
        whole = len(server.body)
        if start >= whole:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{whole}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        body = server.body[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
        self.end_headers()
        body = body[:number] if kind == "cut" else body
        server.sent.append(len(body))
        self.wfile.write(body)
        return None

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


def parse(content: bytes) -> Table:
    values = np.loadtxt(content.decode().splitlines(), delimiter=",", skiprows=1)
    return Table(values[:, :-1], values[:, -1])


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a catalogue with one more data set, whose only origin is the server."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv(storage.VARIABLE, raising=False)
    monkeypatch.setattr(storage, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(download, "SCHEMES", ("http",))  # the server has no certificate
    file = StoredFile("mini.gz", hashlib.sha256(TEXT).hexdigest(), parse, (Origin(server.url),))
    monkeypatch.setitem(CATALOGUE, "mini", Entry("mini", ("a", "b"), "made up", "none", file=file))
    return tmp_path / "cache"


def change_file(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    entry = CATALOGUE["mini"]
    assert entry.file is not None
    monkeypatch.setitem(CATALOGUE, "mini", replace(entry, file=replace(entry.file, **changes)))


def part_of(cache: Path, url: str) -> Path:
    return cache / f"mini.gz.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part"


def leftovers(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()} - {"mini.gz.lock"}


def test_first_use_downloads_and_the_second_does_not(server: Server, cache: Path) -> None:
    assert datasets.status("mini") == datasets.Status("mini", False, server.url, None)
    mini = datasets.load("mini")
    assert mini.X.shape == (20_000, 2)
    assert mini.y[-1] == 3 * 19_999
    assert leftovers(cache) == {"mini.gz"}
    assert datasets.fetch("mini") == datasets.path("mini") == cache / "mini.gz"
    assert datasets.status("mini").available
    assert server.requested == [None]


def test_the_content_counts_not_its_packing(server: Server, cache: Path) -> None:
    server.body = gzip.compress(TEXT, compresslevel=1, mtime=12345)
    assert server.body != PACKED
    assert datasets.fetch("mini") == cache / "mini.gz"


def test_an_origin_in_another_layout_is_converted_then_checked(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.body = TEXT.partition(b"\n")[2]
    change_file(monkeypatch, origins=(Origin(server.url, lambda raw: gzip.compress(b"a,b,price\n" + raw)),))
    found = datasets.fetch("mini")
    assert found is not None
    assert gzip.decompress(found.read_bytes()) == TEXT


@pytest.mark.parametrize(
    "body", [b"<html>not found</html>", gzip.compress(TEXT + b"1,2,3\n"), PACKED[:-5], b"PK\x03\x04 no zip"]
)
def test_wrong_content_is_refused_and_nothing_is_left(server: Server, cache: Path, body: bytes) -> None:
    server.body = body
    with pytest.raises(datasets.DataUnavailable, match="refused") as refused:
        datasets.load("mini")
    assert server.url in str(refused.value)
    assert leftovers(cache) == set()


def test_wrong_checksum_says_both(server: Server, cache: Path) -> None:
    server.body = b"other"
    with pytest.raises(datasets.DataUnavailable) as refused:
        datasets.load("mini")
    assert hashlib.sha256(b"other").hexdigest() in str(refused.value)
    assert hashlib.sha256(TEXT).hexdigest() in str(refused.value)


def test_a_page_that_breaks_the_conversion_is_refused(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_file(monkeypatch, origins=(Origin(server.url, lambda raw: raw.decode("ascii").encode()),))
    with pytest.raises(datasets.DataUnavailable, match="not in the expected format"):
        datasets.load("mini")
    assert leftovers(cache) == set()


def test_not_found_is_not_tried_again(server: Server, cache: Path) -> None:
    server.failures = [("status", 404)] * 5
    with pytest.raises(datasets.DataUnavailable, match="HTTP 404") as error:
        datasets.load("mini")
    assert len(server.requested) == 1
    assert "ONLINEVI_DATA: not set" in str(error.value)
    assert f"put mini.gz into {cache}" in str(error.value)


def test_a_passing_failure_is_tried_again(server: Server, cache: Path) -> None:
    server.failures = [("status", 500), ("status", 503)]
    assert datasets.fetch("mini") == cache / "mini.gz"
    assert len(server.requested) == 3


def test_a_lasting_failure_ends(server: Server, cache: Path) -> None:
    server.failures = [("status", 500)] * 9
    with pytest.raises(datasets.DataUnavailable, match=r"HTTP 500.*3 tries"):
        datasets.load("mini")
    assert len(server.requested) == 3


def test_a_cut_connection_continues_where_it_stopped(server: Server, cache: Path) -> None:
    server.failures = [("cut", 1000)]
    datasets.fetch("mini")
    assert server.requested == [None, "bytes=1000-"]
    assert server.sent == [1000, len(PACKED) - 1000]


def test_an_interrupted_download_is_continued_by_the_next_call(server: Server, cache: Path) -> None:
    server.failures = [("cut", 700), ("cut", 200), ("cut", 100)]
    with pytest.raises(datasets.DataUnavailable, match="1000 bytes are kept"):
        datasets.load("mini")
    assert leftovers(cache) == {part_of(cache, server.url).name}
    server.sent.clear()
    assert datasets.fetch("mini") == cache / "mini.gz"
    assert server.sent == [len(PACKED) - 1000]
    assert leftovers(cache) == {"mini.gz"}


def test_ctrl_c_keeps_what_was_received(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "CHUNK", 1000)

    def interrupt(url: str, received: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(download, "_show", interrupt)
        with pytest.raises(KeyboardInterrupt):
            datasets.load("mini")
    assert part_of(cache, server.url).read_bytes() == PACKED[:1000]
    datasets.load("mini")
    assert server.requested[-1] == "bytes=1000-"


def test_a_server_that_cannot_continue_sends_all(server: Server, cache: Path) -> None:
    server.ranges = False
    server.failures = [("cut", 1000)]
    datasets.fetch("mini")
    assert server.sent == [1000, len(PACKED)]


def test_a_part_of_another_version_is_fetched_anew(server: Server, cache: Path) -> None:
    cache.mkdir()
    part_of(cache, server.url).write_bytes(b"x" * 100)
    assert datasets.fetch("mini") == cache / "mini.gz"
    assert server.requested == ["bytes=100-", None]


@pytest.mark.parametrize(("part", "requests"), [(PACKED, 1), (PACKED + b"more", 2)])
def test_a_part_that_lacks_nothing(server: Server, cache: Path, part: bytes, requests: int) -> None:
    cache.mkdir()
    part_of(cache, server.url).write_bytes(part)
    assert datasets.fetch("mini") == cache / "mini.gz"
    assert len(server.requested) == requests


def test_the_next_mirror_is_asked(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_file(monkeypatch, origins=(Origin("http://127.0.0.1:1/mini.gz"), Origin(server.url)))
    assert datasets.fetch("mini") == cache / "mini.gz"


def test_no_connection_is_said(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_file(monkeypatch, origins=(Origin("http://127.0.0.1:1/mini.gz"),))
    with pytest.raises(datasets.DataUnavailable, match="refused"):
        datasets.load("mini")


def test_an_unknown_host_is_not_waited_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def unknown(*args: object, **kwargs: object) -> None:
        calls.append(args)
        raise urllib.error.URLError(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", unknown)
    with pytest.raises(datasets.DataUnavailable, match="not known"):
        datasets.load("mini")
    assert len(calls) == 1


def test_two_at_once_bring_one_file(server: Server, cache: Path) -> None:
    threads = [threading.Thread(target=datasets.load, args=("mini",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.requested == [None]


def test_a_cache_that_cannot_be_written_is_said(server: Server, cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    with pytest.raises(datasets.DataUnavailable, match="File exists"):
        datasets.load("mini")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    datasets.fetch("mini")
    assert capsys.readouterr().err == ""
    (cache / "mini.gz").unlink()
    monkeypatch.setattr(sys, "stderr", Terminal())
    datasets.fetch("mini")
    assert "100%" in sys.stderr.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("url", ["http://example.org/mini.gz", "ftp://example.org/mini.gz", "file:///etc/hostname", "mini.gz"])
def test_only_https_is_followed(url: str, tmp_path: Path) -> None:
    with pytest.raises(download.Failed, match="is not followed, only https"):
        download.download(url, tmp_path / "part")


def test_a_redirection_elsewhere_is_not_followed(server: Server, cache: Path, tmp_path: Path) -> None:
    def redirect(handler: Handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "ftp://127.0.0.1/mini.gz")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handler, "do_GET", redirect)
        with pytest.raises(download.Failed, match="ftp is not followed"):
            download.download(server.url, tmp_path / "part")


def test_what_unpacks_without_an_end_is_refused(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(1 << 20))
    monkeypatch.setattr(storage, "LARGEST", 1 << 19)
    for bomb in (gzip.compress(bytes(1 << 20)), packed.getvalue()):
        with pytest.raises(ValueError, match="it holds more than 0 MiB"):
            storage.unpacked(bomb)
    server.body = gzip.compress(bytes(1 << 20))
    with pytest.raises(datasets.DataUnavailable, match="cannot be unpacked"):
        datasets.load("mini")


def test_what_is_sent_without_an_end_is_not_kept(server: Server, cache: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "LARGEST", 1000)
        with pytest.raises(download.Failed, match="goes on beyond"):
            download.download(server.url, tmp_path / "part")
    assert (tmp_path / "part").stat().st_size == 0
