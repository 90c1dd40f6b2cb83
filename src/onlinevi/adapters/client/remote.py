"""The calls of ``onlinevi serve`` as methods, tried again while the service is busy or away."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
"""Seconds between tries."""
ON_THE_WAY = (502, 504)
"""Answers of a proxy that has lost the service: whether the call was carried out is not known."""


class ServiceError(RuntimeError):
    """What the service refused, with its status and the reason."""

    def __init__(self, status: int, reason: str, place: str | None = None) -> None:
        super().__init__(f"{status}: {reason}" + (f" (at {place})" if place else ""))
        self.status, self.reason, self.place = status, reason, place


class Client:
    """A connection to a service, for one thread. What is refused raises ``ServiceError``.

    A service that is busy or away is tried again for ``patience`` seconds. An event that may have been learned before the
    connection broke is sent again only where it has an id, by which the service knows it.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8080", *, token: str | None = None, timeout: float = 30.0, patience: float = 30.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url={url!r}: needs an address such as http://127.0.0.1:8080")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._base, self._patience = parts.path.rstrip("/"), patience
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def __getitem__(self, name: str) -> Remote:
        """The model of this name; whether it is there shows at the first call."""
        return Remote(self, name)

    def models(self) -> list[dict[str, Any]]:
        """The models of the service, each in a few facts."""
        return self.call("GET", "/models")["models"]  # type: ignore[no-any-return]

    def make(self, name: str, **settings: Any) -> Remote:
        """A new model; the settings are those of ``onlinevi run``, and ``target`` must be among them."""
        self.call("POST", "/models", {"name": name, "settings": settings})
        return self[name]

    def upload(self, name: str, path: str | Path) -> Remote:
        """A new model that goes on from a file, which ``onlinevi run`` or ``model.save`` wrote."""
        self.call("POST", f"/models?name={quote(name, safe='')}", Path(path).read_bytes())
        return self[name]

    def call(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any:
        """A call, and the document that answers it, or bytes. ``again`` says whether it may be carried out twice."""
        headers = self._headers | ({"Content-Type": "application/octet-stream"} if isinstance(body, bytes) else {})
        content = body if body is None or isinstance(body, bytes) else json.dumps(body, allow_nan=False).encode()
        end, pause = time.monotonic() + self._patience, FIRST_WAIT
        while True:
            try:
                self._connection.request(method, self._base + path, content, headers)
                answer = self._connection.getresponse()
                read = answer.read()
                status = answer.status
                busy = (status == 503 and "Retry-After" in answer.headers) or (again and status in ON_THE_WAY)
            except ConnectionRefusedError:  # nothing was sent
                self._connection.close()
                if time.monotonic() > end:
                    raise
                busy = True
            except (OSError, HTTPException):
                self._connection.close()
                if not again or time.monotonic() > end:
                    raise
                busy = True
            else:
                if not busy or time.monotonic() > end:
                    break
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2.0 * pause, LONGEST_WAIT)
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        if not is_json and status >= 300:  # of a proxy, say
            raise ServiceError(status, answer.reason)
        if not is_json:
            return read
        document = json.loads(read)
        if status >= 400 and not (isinstance(document, dict) and "events" in document):
            raise ServiceError(status, document.get("error", "refused"), document.get("place"))
        return document


class Remote:
    """A model of a service."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name
        self._path = f"/models/{quote(name, safe='')}"

    def predict(self, row: Mapping[str, Any], *, id: str | None = None, explain: bool = False) -> dict[str, Any]:  # noqa: A002
        """What is said of a row; with an id the row waits for its label, ``explain`` adds what each column adds."""
        body = {"row": dict(row), "id": id, "explain": explain}
        return self._ask("POST", "/predict", body)  # type: ignore[no-any-return]

    def predict_many(
        self, rows: Iterable[Mapping[str, Any]], *, ids: Sequence[str | None] | None = None
    ) -> list[dict[str, Any]]:
        """What is said of each row; of one that cannot be used, the error."""
        body = {"rows": [dict(row) for row in rows], "ids": None if ids is None else list(ids)}
        return self._ask("POST", "/predict", body)["predictions"]  # type: ignore[no-any-return]

    def learn(self, row: Mapping[str, Any] | None = None, *, label: Any, id: str | None = None) -> dict[str, Any]:  # noqa: A002
        """Learn an event: a row with its label, or the label of the row that waits under the id. It is on disk then."""
        event = {"label": label, "id": id} | ({} if row is None else {"row": dict(row)})
        return self._ask("POST", "/learn", event, again=id is not None)  # type: ignore[no-any-return]

    def learn_many(self, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Learn events, each with row and label and perhaps an id: what became of each."""
        given = [dict(event) for event in events]
        again = all(event.get("id") is not None for event in given)
        return self._ask("POST", "/learn", {"events": given}, again=again)["events"]  # type: ignore[no-any-return]

    def about(self) -> dict[str, Any]:
        """The model in a few facts."""
        return self._ask("GET", "")  # type: ignore[no-any-return]

    def metrics(self) -> dict[str, Any]:
        """How well it has predicted, each row before its label was used."""
        return self._ask("GET", "/metrics.json")  # type: ignore[no-any-return]

    def certificate(self) -> dict[str, Any]:
        """What is certain of its regret."""
        return self._ask("GET", "/certificate")  # type: ignore[no-any-return]

    def weights(self) -> list[dict[str, Any]]:
        """Its weights with their stds."""
        return self._ask("GET", "/weights")["weights"]  # type: ignore[no-any-return]

    def snapshots(self) -> list[dict[str, Any]]:
        """Its versions on disk."""
        return self._ask("GET", "/snapshots")["snapshots"]  # type: ignore[no-any-return]

    def roll_back(self, to: int, *, dry_run: bool = False) -> dict[str, Any]:
        """Go back to what was known behind so many events; what is lost by it."""
        return self._ask("POST", "/rollback", {"to": to, "dry_run": dry_run})  # type: ignore[no-any-return]

    def download(self, path: str | Path) -> Path:
        """Write the model to a file, which ``ovi.open`` and every command read."""
        Path(path).write_bytes(self.download_bytes())
        return Path(path)

    def download_bytes(self) -> bytes:
        """The same file, as bytes."""
        return self._ask("GET", "/checkpoint")  # type: ignore[no-any-return]

    def archive(self) -> None:
        """Take it out of service; its files stay in the archive of the service."""
        self._ask("DELETE", "", again=False)

    def _ask(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any:
        return self._client.call(method, self._path + path, body, again=again)
