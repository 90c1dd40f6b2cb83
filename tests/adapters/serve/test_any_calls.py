"""Any sequence of calls amounts to the events that were acknowledged: the service says what a model in memory says of them."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from helpers.served import IN_MEMORY, RULE, rows
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import onlinevi as ovi
from onlinevi.adapters.serve import Folder, Limits, create_app

FIRST = 20
ASKED = {"a": 0.3, "b": "u"}
KEYS = st.sampled_from(["row", "rows", "label", "id", "ids", "events", "to", "explain", "inputs", "a", "b", "y"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ODD = st.recursive(SCALARS, lambda one: st.lists(one, max_size=3) | st.dictionaries(KEYS, one, max_size=4), max_leaves=8)


class Caller:
    """Calls of an application without a socket."""

    def __init__(self, app: Any) -> None:
        self.app, self.loop = app, asyncio.new_event_loop()

    def __call__(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """The status and the document of the answer."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.loop.run_until_complete(self._call(method, path, body))

    async def _call(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
        told, read = 0, b""

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal told, read
            told, read = message.get("status", told), read + message.get("body", b"")

        await self.app(scope, receive, send)
        return told, json.loads(read) if read[:1] in b"{[" else read


class AnyCalls(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        self.stock = [(row.pop("y"), row) for row in rows(300, seed=9)]
        self.next = 0
        self.acknowledged: list[tuple[str | None, str, Any]] = []
        self.waiting: dict[str, tuple[str, Any]] = {}
        self._open()
        assert self.call("POST", "/models", {"name": "m", "settings": {"target": "y", "rule": RULE}})[0] == 201
        self.twin = ovi.Model("y", rule=RULE)
        self.learn(FIRST)

    def _open(self) -> None:
        self.folder = Folder(self.root / "models", Limits(snapshot_every=25))
        self.call = Caller(create_app(self.folder))

    def _close(self) -> None:
        self.folder.close()
        self.call.loop.close()

    def _fresh(self) -> tuple[str, str, Any]:
        label, row = self.stock[self.next % len(self.stock)]
        self.next += 1
        return f"e{self.next}", label, row

    def _learned(self, events: list[tuple[str | None, str, Any]]) -> None:
        self.acknowledged += events
        self.twin.learn([row | {"y": label} for _, label, row in events])

    @rule(count=st.integers(1, 12))
    def learn(self, count: int) -> None:
        events = [self._fresh() for _ in range(count)]
        sent = [{"id": id_, "row": row, "label": label} for id_, label, row in events]
        status, told = self.call("POST", "/models/m/learn", {"events": sent})
        assert (status, told["learned"]) == (200, count)
        self._learned(list(events))

    @rule()
    def learn_without_an_id(self) -> None:
        _, label, row = self._fresh()
        assert self.call("POST", "/models/m/learn", {"row": row, "label": label})[1]["status"] == "learned"
        self._learned([(None, label, row)])

    @rule()
    def predict_and_keep(self) -> None:
        id_, label, row = self._fresh()
        assert self.call("POST", "/models/m/predict", {"row": row, "id": id_})[0] == 200
        self.waiting[id_] = label, row

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def label_comes(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.waiting)))
        label, row = self.waiting.pop(id_)
        assert self.call("POST", "/models/m/learn", {"id": id_, "label": label})[1]["status"] == "learned"
        self._learned([(id_, label, row)])

    @rule(data=st.data())
    def learn_again(self, data: st.DataObject) -> None:
        id_, label, row = data.draw(st.sampled_from([one for one in self.acknowledged if one[0] is not None]))
        again = data.draw(st.sampled_from([{"id": id_, "label": label}, {"id": id_, "row": row, "label": label}]))
        number = 1 + [one[0] for one in self.acknowledged].index(id_)
        assert self.call("POST", "/models/m/learn", again) == (200, {"status": "known", "event": number, "id": id_})
        assert self.call("POST", "/models/m/learn", again | {"label": "other"})[0] == 409

    @rule(body=ODD | st.binary(max_size=30), call=st.sampled_from(["learn", "predict", "rollback"]))
    def send_anything(self, body: Any, call: str) -> None:
        assert 400 <= self.call("POST", f"/models/m/{call}", body)[0] < 500

    @rule(row=st.sampled_from([{"a": "odd"}, {"c": 1.0}, {"a": [1]}, {}, {"a": 1.0, "y": "yes"}]))
    def send_an_odd_row(self, row: Any) -> None:
        assert self.call("POST", "/models/m/learn", {"row": row, "label": "yes"})[0] == 422

    @rule(what=st.sampled_from(["", "/certificate", "/weights", "/metrics.json", "/info", "/snapshots"]))
    def look(self, what: str) -> None:
        assert self.call("GET", f"/models/m{what}")[0] == 200

    @rule(lose=st.booleans())
    def stop_and_start(self, lose: bool) -> None:
        self._close()
        if lose:
            max((self.root / "models" / "m" / "snapshots").iterdir()).unlink()
        self._open()

    @rule(data=st.data(), dry=st.booleans())
    def roll_back(self, data: st.DataObject, dry: bool) -> None:
        to = data.draw(st.integers(FIRST, len(self.acknowledged)))
        status, told = self.call("POST", "/models/m/rollback", {"to": to, "dry_run": dry})
        assert (status, told["taken_back"]) == (200, len(self.acknowledged) - to)
        if not dry and to < len(self.acknowledged):
            kept, self.acknowledged = self.acknowledged[:to], []
            self.twin = ovi.Model("y", rule=RULE)
            self._learned(kept[:FIRST])
            if to > FIRST:
                self._learned(kept[FIRST:])

    @invariant()
    def says_what_the_model_in_memory_says(self) -> None:
        about = self.call("GET", "/models/m")[1]
        assert about["events"] == len(self.acknowledged)
        assert about["average_loss"] == self.twin.metrics["average_loss"]
        said = self.call("POST", "/models/m/predict", {"row": ASKED})[1]
        assert said["probability"] == self.twin.predict([ASKED])[0]["probability"]

    def teardown(self) -> None:
        path = self.root / "m.ovi"
        path.write_bytes(self.call("GET", "/models/m/checkpoint")[1])
        there, here = ovi.load(path).state.leaves(), self.twin.job.state.leaves()
        assert all(np.array_equal(one.array, other.array) for one, other in zip(there, here, strict=True))
        self._close()
        shutil.rmtree(self.root)


TestAnyCalls = AnyCalls.TestCase
TestAnyCalls.settings = examples(max_examples=8, stateful_step_count=12, deadline=None)
