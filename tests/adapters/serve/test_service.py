"""The service over HTTP, by a real server on a free port: what it answers, what it refuses, and that nothing is lost by it."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.served import RULE, rows, served

import onlinevi as ovi
from onlinevi.adapters.serve import Limits, guard, keeper, server
from onlinevi.adapters.serve.access import Tokens
from onlinevi.adapters.serve.schemas import SETTINGS
from onlinevi.client import Client, Remote, ServiceError
from onlinevi.runs import Settings

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with served(tmp_path_factory.mktemp("models")) as client:
        yield client


@pytest.fixture(scope="module")
def clicks(client: Client) -> Remote:
    """A model that has learned a few events."""
    model = client.make("clicks", target="y", rule=RULE)
    model.learn_many(events(60))
    return model


def events(count: int, seed: int = 0, ids: str = "e") -> list[dict[str, Any]]:
    """Events as a client sends them."""
    made = []
    for k, row in enumerate(rows(count, seed)):
        label = row.pop("y")
        made.append({"row": row, "label": label, "id": f"{ids}{k}"})
    return made


def raw(client: Client, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """A call that no well-meaning client makes."""
    own: HTTPConnection = client._connection
    connection = HTTPConnection(own.host, own.port, timeout=20)
    connection.request(method, path, body, JSON if headers is None else headers)
    answer = connection.getresponse()
    read = answer.read()
    connection.close()
    return answer.status, json.loads(read) if read[:1] in (b"{", b"[") else read


def refused(client: Client, path: str, body: Any) -> tuple[int, str]:
    """The status and the reason of a call that is refused."""
    status, answer = raw(client, "POST", path, body if isinstance(body, bytes) else json.dumps(body).encode())
    return status, answer.get("error", "")


def test_it_predicts_learns_and_is_the_model_in_memory(client: Client) -> None:
    """The same events by HTTP, some with labels that come later, and by ``ovi.Model``: the same predictions and state."""
    model = client.make("twin", target="y", rule=RULE)
    sent = events(120)
    said = model.learn_many(sent[:40])
    for event in sent[40:80]:
        told = model.predict(event["row"], id=event["id"])
        learned = model.learn(label=event["label"], id=event["id"])
        if event["row"]["b"] in "uvw":  # of a name that it has never met a prediction says less
            assert learned["probability"] == pytest.approx(told["probability"], rel=1e-12)
        said.append(learned)
    said += model.learn_many(sent[80:])
    own = ovi.Model("y", rule=RULE)
    both = [{"a": row["a"], "b": row["b"], "y": row["y"]} for row in rows(120)]
    here = own.learn(both[:40]) + own.learn(both[40:])
    assert [one["probability"] for one in said] == [one["probability"] for one in here]
    assert model.predict(sent[0]["row"])["probability"] == own.predict([sent[0]["row"]])[0]["probability"]
    here, there = own.metrics, model.metrics()
    assert model.about()["average_loss"] == here["average_loss"]
    assert {name: there[name] for name in ("accuracy", "auc", "ece", "confusion", "skill")} == {
        name: here[name] for name in ("accuracy", "auc", "ece", "confusion", "skill")
    }
    assert there["certified_regret"] == model.certificate()["regret"]
    assert model.certificate()["sentence"] == own.certificate.sentence


def test_a_prediction_is_taken_apart_and_rows_have_weights(client: Client) -> None:
    model = client.make("weighed", target="y", rule=RULE, weight="w", class_weight="balanced")
    model.learn_many([{"row": {"a": k % 5, "w": k % 2}, "label": "no" if k % 5 < 2 else "yes"} for k in range(40)])
    said = model.predict({"a": 4}, explain=True)
    assert said["score"] == pytest.approx(said["base"] + said["from_a"])
    own = ovi.Model("y", rule=RULE, weight="w", class_weight="balanced")
    own.learn([{"a": k % 5, "w": k % 2, "y": "no" if k % 5 < 2 else "yes"} for k in range(40)])
    assert said["probability"] == own.predict([{"a": 4, "w": 1}])[0]["probability"]


def test_its_file_is_a_model(client: Client, clicks: Remote, tmp_path: Path) -> None:
    row = {"a": 0.3, "b": "u"}
    opened = ovi.open(clicks.download(tmp_path / "clicks.ovi"))
    assert opened.predict([row])[0]["probability"] == clicks.predict(row)["probability"]
    again = client.upload("again", tmp_path / "clicks.ovi")
    assert again.predict(row)["probability"] == clicks.predict(row)["probability"]
    damaged = tmp_path / "damaged.ovi"
    damaged.write_bytes((tmp_path / "clicks.ovi").read_bytes()[:-5])
    with pytest.raises(ServiceError, match="422"):
        client.upload("damaged", damaged)
    assert "damaged" not in [one["name"] for one in client.models()]


ODD: list[tuple[str, Any, int, str]] = [
    ("learn", {"id": "never seen", "label": "yes"}, 404, "no row waits"),
    ("learn", {"id": "e1", "label": "other"}, 409, "another row or label"),
    ("learn", {"id": "e1", "row": {"a": 9.0, "b": "u"}, "label": "yes"}, 409, "another row or label"),
    ("learn", {"row": {"a": "x", "b": "u"}, "label": "yes"}, 422, "needs a finite number"),
    ("learn", {"row": {"a": 1.0, "b": "u"}}, 422, "needs its label"),
    ("learn", {"row": {"a": 1.0, "b": "u"}, "label": None}, 422, "needs its label"),
    ("learn", {"label": "yes"}, 422, "needs its row"),
    ("learn", {"row": {"a": 1.0, "y": "yes"}, "label": "yes"}, 422, "goes into label"),
    ("learn", {"row": {"aa": 1.0, "b": "u"}, "label": "yes"}, 422, "did you mean 'a'"),
    ("learn", {"row": {"a": [1.0]}, "label": "yes"}, 422, "no list"),
    ("learn", {"row": {}, "label": "yes"}, 422, "0 columns"),
    ("learn", {"events": []}, 422, "1 to 10,000"),
    ("learn", {"events": [{"row": {"a": 1.0}, "label": {}}]}, 422, "no object"),
    ("learn", b'{"row": {"a": NaN, "b": "u"}, "label": "yes"}', 400, "NaN is no number"),
    ("learn", b'{"row": {"a": 1e999, "b": "u"}, "label": "yes"}', 422, "too large"),
    ("learn", b'{"row": {"a": 1' + b"0" * 400 + b'}, "label": "yes"}', 422, "too large"),
    ("learn", b'{"row": {"a": 1, "b": "\\ud800"}, "label": "yes"}', 422, "half a character"),
    ("learn", b"[" * 100_000, 400, "not JSON"),
    ("learn", b"\xff\xfe", 400, "not JSON"),
    ("learn", {"row": {"a": 1.0, "b": "u"}, "label": "yes", "id": ""}, 422, "an id is"),
    ("learn", {"row": {"a": 1.0, "b": "u"}, "label": "yes", "id": "x\n"}, 422, "an id is"),
    ("learn", {"row": {"a": 1.0, "b": "u" * 70_000}, "label": "yes"}, 422, "at most 65,536"),
    ("predict", {"row": {"a": "x", "b": "u"}}, 422, "needs a finite number"),
    ("predict", {"rows": [{"a": 1.0}], "ids": ["a", "b"]}, 422, "1 rows and 2 ids"),
    ("predict", {"rows": {"a": 1.0}}, 422, "needs to be a list"),
    ("predict", {}, 422, "either row"),
    ("predict", {"row": {"a": 1.0, "b": "u"}, "id": "e1"}, 409, "has its label already"),
    ("rollback", {"to": 61}, 422, "events 0 to 60"),
    ("rollback", {"to": "x"}, 422, "number of events"),
]


@pytest.mark.parametrize(("call", "body", "status", "why"), ODD)
def test_what_cannot_be_used_is_refused_with_the_reason(
    client: Client, clicks: Remote, call: str, body: Any, status: int, why: str
) -> None:
    before = clicks.download_bytes()
    found, reason = refused(client, f"/models/clicks/{call}", body)
    assert found == status
    assert why in reason
    assert clicks.download_bytes() == before


def test_a_group_tells_of_each_event(clicks: Remote) -> None:
    told = clicks.learn_many([{"row": {"a": "x"}, "label": "yes"}, {"id": "nobody", "label": "yes"}, events(60)[1]])
    assert [one["status"] for one in told] == ["refused", "unknown", "known"]
    assert told[0]["place"] == "a"


def test_an_object_says_nothing_twice(client: Client, clicks: Remote) -> None:
    """As a file's row does not: whoever reads on takes one of the two, and nobody knows which was meant."""
    before = clicks.about()["events"]
    for body in (b'{"row": {"a": 1, "a": 2}, "label": "yes"}', b'{"row": {"a": 1}, "label": "yes", "label": "no"}'):
        status, reason = refused(client, "/models/clicks/learn", body)
        assert (status, "comes twice in an object" in reason) == (400, True)
    assert clicks.about()["events"] == before


def test_requests_that_are_none_are_refused(client: Client, clicks: Remote) -> None:
    big = b'{"row": {"a": "' + b"x" * (11 << 20) + b'"}}'
    assert raw(client, "POST", "/models/clicks/predict", big)[0] == 413
    assert raw(client, "POST", "/models/clicks/predict", b"{}", {"Content-Type": "text/plain"})[0] == 415
    assert raw(client, "GET", "/models", headers={"Host": "evil.example"})[0] == 403
    assert raw(client, "GET", "/models/..%2f..%2fetc")[0] == 404
    assert raw(client, "DELETE", "/models/%2e%2e")[0] == 404
    assert raw(client, "GET", "/nothing")[0] == 404
    assert raw(client, "PUT", "/models")[0] == 405


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("../up", {"target": "y"}, "small letters"),
        ("Clicks", {"target": "y"}, "small letters"),
        ("", {"target": "y"}, "small letters"),
        ("ok", {}, "needs the target"),
        ("ok", {"target": "y", "rul": "sva"}, "did you mean 'rule'"),
        ("ok", {"target": "y", "rule": "nonsense"}, "nonsense"),
        ("ok", {"target": "y", "loss": "os:system"}, "imports nothing"),
        ("ok", {"target": "y", "expand": "splines, mine.maps:Map"}, "imports nothing"),
        ("ok", {"target": "y", "prepare_like": "/etc/passwd"}, "is no setting"),
        ("ok", {"target": "y", "level": "much"}, 'level needs a number, and is "much"'),
        ("ok", {"target": "y", "kinds": [1]}, "kinds needs an object, and is [1]"),
        ("ok", {"target": "y", "kinds": {"a": 5}}, 'or drop, and is {"a": 5}'),
        ("ok", {"target": 5}, "target needs text, and is 5"),
        ("ok", {"target": "y", "weight": 5}, "weight needs text or null, and is 5"),
        ("ok", {"target": "y", "drop": [5]}, "drop needs text, and is [5]"),
        ("ok", {"target": "y", "classes": None}, "classes needs a list or text, and is null"),
        ("ok", {"target": "y", "hash_bits": 3.0}, "hash_bits needs a whole number or null, and is 3.0"),
        ("ok", {"target": "y", "hash_bits": 29}, "hash_bits=29: needs 1 to 28"),
        ("ok", {"target": "y", "window": True}, "window needs a whole number, and is true"),
        ("ok", {"target": "y", "class_weight": 3}, "class_weight needs null or balanced or an object, and is 3"),
        ("ok", {"target": "y", "class_weight": {"a": "x"}}, "class_weight needs a number"),
        ("ok", {"target": "y", "cost": {"a": {"b": "x"}}}, "cost needs a number"),
    ],
)
def test_models_that_cannot_be_made(client: Client, name: str, settings: dict[str, Any], why: str) -> None:
    status, reason = refused(client, "/models", {"name": name, "settings": settings})
    assert status == 422
    assert why in reason


def test_models_are_made_listed_and_archived(client: Client, tmp_path: Path) -> None:
    model = client.make("flats", target="price", task="numbers", rule=RULE)
    assert model.about()["events"] == 0
    with pytest.raises(ServiceError, match=r"409.*learned nothing yet"):
        model.predict({"size": 3})
    with pytest.raises(ServiceError, match=r"409.*learned nothing yet"):
        model.certificate()
    with pytest.raises(ServiceError, match=r"409.*already"):
        client.make("flats", target="price")
    model.learn_many([{"row": {"size": k % 9}, "label": 2.0 * (k % 9)} for k in range(50)])
    said = model.predict({"size": 4})
    assert said["lower"] < said["prediction"] < said["upper"]
    model.archive()
    assert "flats" not in [one["name"] for one in client.models()]
    with pytest.raises(ServiceError, match="404"):
        model.about()
    client.make("flats", target="price")


def test_versions_and_going_back(client: Client) -> None:
    model = client.make("versions", target="y", rule=RULE)
    model.learn_many(events(40))
    row = {"a": 0.7, "b": "u"}
    before = model.predict(row)["probability"]
    model.learn_many(events(30, seed=3, ids="later"))
    assert model.snapshots()[-1] == {"events": 70, "now": True}
    lost = model.roll_back(40, dry_run=True)
    assert lost["taken_back"] == 30
    assert lost["ids"][0] == "later0"
    assert model.about()["events"] == 70
    assert model.roll_back(40)["done"]
    said = model.predict(row)
    assert (said["events"], said["probability"]) == (40, before)
    assert set(said["set"]) <= {"no", "yes"}
    assert model.learn_many(events(30, seed=3, ids="later"))[0]["status"] == "learned"


def test_the_open_inference_protocol(client: Client, clicks: Remote) -> None:
    assert raw(client, "GET", "/v2/health/live") == (200, {"live": True})
    assert raw(client, "GET", "/v2/health/ready")[0] == 200
    assert raw(client, "GET", "/v2")[1]["extensions"] == ["onlinevi.learn"]
    told = raw(client, "GET", "/v2/models/clicks")[1]
    assert [one["name"] for one in told["inputs"]] == ["a", "b"]
    tensors = [
        {"name": "a", "shape": [2], "datatype": "FP64", "data": [0.5, None]},
        {"name": "b", "shape": [2, 1], "datatype": "BYTES", "data": [["u"], ["v"]]},
    ]
    status, answer = raw(client, "POST", "/v2/models/clicks/infer", json.dumps({"id": "q", "inputs": tensors}).encode())
    assert (status, answer["id"], answer["model_name"]) == (200, "q", "clicks")
    outputs = {one["name"]: one["data"] for one in answer["outputs"]}
    # Rows together go through BLAS as a matrix, and one as a vector: it adds a row's products in another order then, on some
    # processors and at some places in memory. What is learned goes through no BLAS.
    alone = [clicks.predict({"a": a, "b": b})["probability"] for a, b in ((0.5, "u"), (None, "v"))]
    assert outputs["probability"] == pytest.approx(alone, rel=1e-12)
    assert answer["parameters"] == {"events": clicks.about()["events"]}
    request = {"inputs": tensors, "outputs": [{"name": "prediction"}]}
    chosen = raw(client, "POST", "/v2/models/clicks/infer", json.dumps(request).encode())[1]
    assert [one["name"] for one in chosen["outputs"]] == ["prediction"]
    assert "id" not in chosen
    for more in ({"outputs": [{"name": "nothing"}]}, {"outputs": [{}]}, {"outputs": 1}, {"id": 7}):
        assert raw(client, "POST", "/v2/models/clicks/infer", json.dumps(request | more).encode())[0] == 422
    for wrong in (
        [],
        [{"name": "a"}],
        [tensors[0] | {"shape": [3]}],
        [tensors[0], tensors[0]],
        [tensors[0] | {"datatype": {}}],
    ):
        assert raw(client, "POST", "/v2/models/clicks/infer", json.dumps({"inputs": wrong}).encode())[0] == 422


def test_prometheus_reads_it(client: Client, clicks: Remote) -> None:
    clicks.predict({"a": 1.0, "b": "u"})
    text = raw(client, "GET", "/metrics")[1].decode()
    from prometheus_client.parser import text_string_to_metric_families

    found = {sample.name: sample for family in text_string_to_metric_families(text) for sample in family.samples}
    assert found["onlinevi_ready"].value == 1.0
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    own = {one.name: one.value for one in samples if one.labels.get("model") == "clicks"}
    assert own["onlinevi_journal_events"] == clicks.about()["events"]
    assert math.isclose(own["onlinevi_average_loss"], clicks.about()["average_loss"])
    told = clicks.metrics()
    assert (own["onlinevi_accuracy"], own["onlinevi_coverage"]) == (told["accuracy"], told["coverage"])
    assert {"onlinevi_certified_regret", "onlinevi_queued_rows", "onlinevi_events_total"} <= own.keys()
    assert any(one.name == "onlinevi_request_seconds_count" and "predict" in one.labels["route"] for one in samples)


def test_what_fails_is_told_of_and_counted(client: Client, clicks: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Any, rows: Any, explain: bool = False) -> Any:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(keeper.Keeper, "predict", failing)
        status, told = raw(client, "POST", "/models/clicks/predict", b'{"row": {"a": 1.0}}')
    assert (status, told["error"]) == (500, "the service failed; what went wrong is in its log")
    assert clicks.predict({"a": 1.0})["prediction"] in ("yes", "no")
    text = raw(client, "GET", "/metrics")[1].decode()
    assert 'onlinevi_answers_total{method="POST",route="/models/{model}/predict",status="500"} 1.0' in text


def test_an_answer_is_sent_as_a_whole() -> None:
    """Its head with what follows; an interim answer, which nothing follows, at once."""
    sent: list[bytes] = []

    class Transport:
        def write(self, data: bytes) -> None:
            sent.append(data)

        def close(self) -> None:
            sent.append(b"closed")

    whole = server._Whole(Transport())  # type: ignore[arg-type]
    head = b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n"
    for part in (b"HTTP/1.1 100 \r\n\r\n", head, b"{}", b"", head, b"", b"", head):
        whole.write(part)
    whole.close()
    assert sent == [b"HTTP/1.1 100 \r\n\r\n", head + b"{}", head, head, b"closed"]


def test_every_setting_of_a_run_can_be_chosen_or_is_of_files() -> None:
    of_files = {"delimiter", "encoding", "names", "first_row", "end_row", "prepare_like"}
    of_late_labels = {"delay", "wait"}
    assert set(SETTINGS) | of_files | of_late_labels == {part.name for part in fields(Settings)}


def test_headers_that_keep_a_page_safe(client: Client) -> None:
    own: HTTPConnection = client._connection
    connection = HTTPConnection(own.host, own.port, timeout=20)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"


def test_a_connection_that_asks_nothing_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half a request nor silence behind one keeps a place; who asks again and again keeps it."""
    monkeypatch.setattr(server, "QUIET", 0.5)
    with served(tmp_path / "models") as client:
        asking = HTTPConnection(client._connection.host, client._connection.port, timeout=20)
        asking.connect()
        with socket.create_connection((asking.host, asking.port), timeout=20) as half:
            half.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: loc")
            for _ in range(10):
                asking.request("GET", "/v2/health/live")
                assert asking.getresponse().read() == b'{"live":true}'
                time.sleep(0.1)
            assert half.recv(1) == b""
        assert asking.sock.recv(1) == b""
        asking.close()


def test_a_body_that_does_not_come_is_not_waited_for(client: Client, clicks: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    place = client._connection.host, client._connection.port
    with socket.create_connection(place, timeout=20) as slow:
        slow.sendall(
            b"POST /models/clicks/learn HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")


def test_an_answer_that_is_not_read_does_not_keep_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "QUIET", 0.3)
    with served(tmp_path / "models") as client, socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.settimeout(20)
        lazy.connect((client._connection.host, client._connection.port))
        lazy.sendall(b"GET /assets/plotly.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4)
        time.sleep(1.5)
        read = 0
        with suppress(ConnectionResetError):
            while part := lazy.recv(1 << 20):
                read += len(part)
        assert 0 < read < 4_000_000


def test_large_headers_are_refused(client: Client) -> None:
    assert raw(client, "GET", "/models", headers={"X": "x" * 40_000})[0] == 431
    assert raw(client, "GET", "/models?" + "x" * 40_000)[0] == 431


def test_a_strangers_body_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("admin " + "t" * 20)
    with served(tmp_path / "models", Tokens.read(tmp_path / "tokens")) as nobody, socket.socket() as stranger:
        stranger.settimeout(20)
        stranger.connect((nobody._connection.host, nobody._connection.port))
        stranger.sendall(
            b"POST /models HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
        )
        assert stranger.recv(4096).startswith(b"HTTP/1.1 401")


def test_bodies_share_a_room(client: Client, clicks: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODIES", 1e-6)
    status, answer = raw(client, "POST", "/models/clicks/predict", json.dumps({"row": {"a": 1.0, "b": "u"}}).encode())
    assert (status, answer["error"].partition(":")[0]) == (503, "too many large bodies are here")


class Proxy(BaseHTTPRequestHandler):
    """A proxy that has lost the service once, and then answers with a page of its own."""

    statuses: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.statuses.pop(0))
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, format: str, *of: Any) -> None:  # noqa: A002
        pass


@pytest.mark.parametrize(("id", "statuses", "told"), [("e1", [502, 504, 500], "500"), (None, [502, 500], "502")])
def test_what_a_proxy_answers_is_no_answer(monkeypatch: pytest.MonkeyPatch, id: Any, statuses: list[int], told: str) -> None:  # noqa: A002
    """A call that may have been carried out is made again only where the event has an id."""
    monkeypatch.setattr(Proxy, "statuses", statuses)
    with HTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        with Client(f"http://127.0.0.1:{proxy.server_port}") as client, pytest.raises(ServiceError, match=told):
            client["m"].learn({"a": 1.0}, label="yes", id=id)
        proxy.shutdown()


def test_tokens_say_who_may_do_what(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    words = {role: f"{role}#token-{role * 3}" for role in ("read", "learn", "admin")}
    file.write_text("# who may come in\n" + "".join(f"{role} {word} # {role}s\n" for role, word in words.items()))
    with served(tmp_path / "models", Tokens.read(file)) as nobody:
        port = nobody._connection.port
        reader, learner, admin = (Client(f"http://127.0.0.1:{port}", token=word) for word in words.values())
        stranger = Client(f"http://127.0.0.1:{port}", token="wrong")
        model = admin.make("clicks", target="y", rule=RULE)
        model.learn_many(events(30))
        row = {"a": 1.0, "b": "u"}
        assert reader["clicks"].predict(row) == learner["clicks"].predict(row)
        for who, call, status in (
            (nobody, lambda one: one.models(), 401),
            (nobody, lambda one: one["clicks"].predict(row), 401),
            (stranger, lambda one: one.models(), 401),
            (reader, lambda one: one["clicks"].learn(row, label="yes"), 403),
            (reader, lambda one: one["clicks"].predict(row, id="kept"), 403),
            (learner, lambda one: one["clicks"].roll_back(1), 403),
            (learner, lambda one: one.make("more", target="y"), 403),
        ):
            with pytest.raises(ServiceError) as found:
                call(who)
            assert found.value.status == status
        assert learner["clicks"].learn(row, label="yes")["status"] == "learned"
        assert raw(nobody, "GET", "/v2/health/live")[0] == 200
        assert raw(nobody, "GET", "/metrics")[0] == 401
        for one in (reader, learner, admin, stranger):
            one.close()


@pytest.mark.parametrize("text", ["", "admin short\n", "root aaaaaaaaaaaaaaaaaaaa\n", "admin\n"])
def test_files_of_tokens_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(ValueError, match="tokens"):
        Tokens.read(tmp_path / "tokens")


def test_too_much_at_once_is_refused_and_told_when_to_come_back(tmp_path: Path) -> None:
    with served(tmp_path / "models", limits=Limits(queued=50)) as client:
        model = client.make("clicks", target="y", rule=RULE)
        model.learn_many(events(40))
        port, found = client._connection.port, []

        def send(k: int) -> None:
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/models/clicks/learn", json.dumps({"events": events(45, k, f"t{k}-")}), JSON)
            answer = connection.getresponse()
            answer.read()
            found.append((answer.status, answer.headers.get("Retry-After")))
            connection.close()

        threads = [threading.Thread(target=send, args=(k,)) for k in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = [status for status, _ in found]
        assert set(statuses) == {200, 503}
        assert all(after == "1" for status, after in found if status == 503)
        assert model.about()["events"] == 40 + 45 * statuses.count(200)


def test_a_label_that_comes_too_late_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "PURGE_EVERY", 0.05)
    with served(tmp_path / "models", limits=Limits(wait_seconds=0.2)) as client:
        model = client.make("clicks", target="y", rule=RULE)
        model.learn_many(events(30))
        row = {"a": 1.0, "b": "u"}
        model.predict(row, id="late")
        end = time.monotonic() + 20.0
        while b'onlinevi_purged_total{model="clicks"} 1.0' not in raw(client, "GET", "/metrics")[1]:
            assert time.monotonic() < end
        before = model.download_bytes()
        with pytest.raises(ServiceError, match=r"404.*has waited too long; send the row too"):
            model.learn(label="yes", id="late")
        assert model.download_bytes() == before
        assert model.learn(row, label="yes", id="late")["status"] == "learned"


def test_many_clients_are_as_one(tmp_path: Path) -> None:
    """Eight threads send the same events by their ids: each is learned once."""
    with served(tmp_path / "models") as client:
        model = client.make("clicks", target="y", rule=RULE)
        model.learn_many(events(20))
        sent = events(120, seed=4, ids="many")
        port = client._connection.port

        def send(k: int) -> None:
            with Client(f"http://127.0.0.1:{port}") as own:
                for start in range(0, 120, 10):
                    own["clicks"].learn_many(sent[start : start + 10] if k % 2 else sent[start : start + 10][::-1])

        threads = [threading.Thread(target=send, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.about()["events"] == 140
