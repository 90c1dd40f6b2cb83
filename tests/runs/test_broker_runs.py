"""``onlinevi run`` from a broker to a broker: learned exactly once, said at least once, bad rows set aside with places."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from helpers.brokers import LACKS_REDIS, MockKafka, RedisServer, names, redis_is_here
from helpers.cables import Cable
from helpers.killed_brokers import bits, messages
from helpers.late_runs import learned, two_streams, write

from onlinevi.adapters.cli import main
from onlinevi.data import BadInput, Follow, address_of, open_stream, sender
from onlinevi.runs import Places, Run, Settings, Stopper, Wait, load_job
from onlinevi.runs import run as driver

pytest.importorskip("pyarrow")
KILLS, EVENTS = 10, 2_000


@pytest.fixture(params=["kafka", "redis"])
def server(request: pytest.FixtureRequest) -> MockKafka | RedisServer:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def learn(address: str, checkpoint: Path, *more: str) -> int:
    call = ["run", address, "--target", "clicked", "--rule", "implicit", "--look", "100", "--checkpoint", str(checkpoint)]
    return main([*call, "-q", *more])


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["kafka", "redis"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_killed_many_times_it_ends_with_the_same_bits(kind: str) -> None:
    """``killed_brokers.py`` runs, kills and compares: nothing missing of what is sent, and what comes twice says the same."""
    pytest.importorskip("redis" if kind == "redis" else "confluent_kafka")
    if kind == "redis" and not redis_is_here():
        pytest.skip(LACKS_REDIS)
    call = [sys.executable, str(Path(__file__).parents[1] / "helpers" / "killed_brokers.py"), kind, str(EVENTS), str(KILLS)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "ONLINEVI_ENGINE": "compiled"}
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["kills"], told["same bits"], told["missing"], told["other"]) == (KILLS, True, 0, 0), told
    assert told["predictions"] == EVENTS - EVENTS // 997


def test_what_is_said_and_what_is_bad_carry_their_places(server: MockKafka | RedisServer, tmp_path: Path) -> None:
    topic, said, dead = next(names), next(names), next(names)
    rows = messages(300)
    rows[50], rows[120], rows[121], rows[200] = b"[1]", b'{"clicked": "yes", "age": "old"}', b'{"age": 3}', b""
    server.send(topic, rows)
    for outlet in (said, dead):
        server.prepare(outlet)
    more = ["--predictions", server.address(said), "--bad-rows", server.address(dead), "--keep-columns", "age", "--until-end"]
    assert learn(server.address(topic), tmp_path / "m.ovi", *more) == 0
    predictions, letters = dict(server.read(said)), dict(server.read(dead))
    is_kafka = isinstance(server, MockKafka)
    keys = [f"{topic}/{k % 4}/{k // 4}" if is_kafka else f"{topic}/{k + 1}-0" for k in range(300)]
    bad = (50, 120, 121, 200)
    assert set(letters) == {keys[k] for k in bad}
    assert set(predictions) == set(keys) - set(letters)
    assert predictions[keys[7]]["row"] == 7
    assert {"prediction", "probability", "label", "loss", "age"} <= set(predictions[keys[7]])
    reasons = [letters[keys[k]]["reason"] for k in bad]
    assert "a JSON list, needs an object" in reasons[0]
    assert reasons[3] == "nothing, needs a JSON object", "as Kafka says of a key that is gone"
    assert letters[keys[120]]["column"] == "age"
    place = {"topic": topic, "partition": 0, "offset": 30} if is_kafka else {"stream": topic, "id": "121-0"}
    assert place.items() <= letters[keys[120]].items()
    assert load_job(tmp_path / "m.ovi").rejected.count == 4


def test_bad_rows_in_a_file_have_their_places_too(server: MockKafka | RedisServer, tmp_path: Path, capsys: Any) -> None:
    topic = next(names)
    server.send(topic, [*messages(150), b"no row"])
    bad = tmp_path / "bad.ndjson"
    assert learn(server.address(topic), tmp_path / "m.ovi", "--until-end", "--bad-rows", str(bad)) == 0
    (letter,) = map(json.loads, bad.read_text().splitlines())
    place = (
        {"topic": topic, "partition": 2, "offset": 37} if isinstance(server, MockKafka) else {"stream": topic, "id": "151-0"}
    )
    assert {**place, "row": 150, "text": "no row"}.items() <= letter.items()
    assert learn(server.address(topic), tmp_path / "n.ovi", "--until-end") == 2
    told = ", ".join(f"{name} {value}" for name, value in place.items())
    assert f"row 150, {told}: not JSON" in capsys.readouterr().err
    assert load_job(tmp_path / "n.ovi").metrics.count == 150


def test_a_stopped_run_goes_on_where_it_was(server: MockKafka | RedisServer, tmp_path: Path) -> None:
    """Stopped by SIGTERM while it waits for more, and resumed over what came meanwhile."""
    topic, whole, parts = next(names), tmp_path / "whole.ovi", tmp_path / "parts.ovi"
    server.send(topic, messages(400)[:250])
    stop = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGTERM))
    stop.start()
    assert learn(server.address(topic), parts) == 143
    stop.join()
    assert load_job(parts).metrics.count == 250
    if isinstance(server, MockKafka):
        server.send(topic, messages(400)[250:], first=250)
    else:
        server.send(topic, messages(400)[250:], first=251)
    assert learn(server.address(topic), parts, "--resume", "--until-end") == 0
    assert learn(server.address(topic), whole, "--until-end") == 0
    assert bits(parts) == bits(whole)
    assert learn(server.address(topic), parts, "--resume", "--until-end") == 0, "nothing more has come"
    assert bits(parts) == bits(whole)


@pytest.mark.parametrize("by_key", [False, True])
def test_what_is_due_is_done_though_no_good_message_follows(
    server: MockKafka | RedisServer, tmp_path: Path, by_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a burst, silence: the checkpoint has all of it, and so has the report. After silence, messages that are none: they
    are set aside, counted and passed. A run may bring nothing else for days."""
    monkeypatch.setattr("onlinevi.adapters.cli.endless.FIRST", 0.5)
    topic, labels, dead, out = next(names), next(names), next(names), tmp_path / "out"
    server.prepare(dead)
    server.send(topic, [json.dumps({"id": k, "age": k, "clicked": "yes"}).encode() for k in range(150)])
    server.send(labels, [json.dumps({"id": k, "clicked": "yes" if k % 3 else "no"}).encode() for k in range(140)])
    bad_in, learned_from, seen = (topic, labels) if by_key else (topic,), 140 if by_key else 150, [0, 0]

    def look() -> None:
        deadline = time.monotonic() + 30.0
        while seen != [150, learned_from] and time.monotonic() < deadline:
            time.sleep(0.1)
            if (out / "run.json").exists():
                seen[:] = [
                    load_job(out / "model.ovi").position.rows,  # type: ignore[union-attr]
                    json.loads((out / "run.json").read_text())["summary"]["events"],
                ]
        for one in bad_in:
            server.send(one, [b"no row"] * 40, first=150 if isinstance(server, MockKafka) else 151)
        while len(server.read(dead)) < 40 * len(bad_in) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    looker = threading.Thread(target=look)
    looker.start()
    more = ["--labels", server.address(labels), "--key", "id"] if by_key else []
    more += ["--bad-rows", server.address(dead), "--every", "0.8s", "--out", str(out)]
    assert learn(server.address(topic), out / "model.ovi", *more) == 143
    looker.join()
    assert seen == [150, learned_from]
    job = load_job(out / "model.ovi")
    assert (job.position.rows, job.metrics.count) == (190, learned_from)  # type: ignore[union-attr]
    assert len(server.read(dead)) == job.rejected.count == 40 * len(bad_in)
    if by_key:
        assert job.late.position.rows == 180  # type: ignore[union-attr]


def test_a_resumed_run_needs_no_row_to_go_on(server: MockKafka | RedisServer, tmp_path: Path) -> None:
    """Labels that come meanwhile are learned, and bad messages set aside, though no row follows."""
    topic, labels, said, dead = next(names), next(names), next(names), next(names)
    for outlet in (said, dead):
        server.prepare(outlet)
    clicks = [json.dumps({"id": k, "clicked": "yes" if k % 3 else "no"}).encode() for k in range(150)]
    server.send(topic, [json.dumps({"id": k, "age": k}).encode() for k in range(150)])
    server.send(labels, clicks[:110])
    call = ["--labels", server.address(labels), "--key", "id", "--predictions", server.address(said), "--resume"]
    call += ["--bad-rows", server.address(dead), "--every", "0.2s"]
    model = tmp_path / "m.ovi"

    def learn_until(events: int) -> None:
        def stop() -> None:
            deadline = time.monotonic() + 20.0
            while not (model.exists() and load_job(model).metrics.count == events) and time.monotonic() < deadline:
                time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGTERM)

        stopper = threading.Thread(target=stop)
        stopper.start()
        assert learn(server.address(topic), model, *call) == 143
        stopper.join()
        assert load_job(model).metrics.count == events

    learn_until(110)
    first = 0 if isinstance(server, MockKafka) else 1
    server.send(topic, [b"no row"] * 4, first=first + 150)
    server.send(labels, clicks[110:], first=first + 110)
    learn_until(150)
    assert len(server.read(dead)) == 4
    assert len(server.read(said)) == 150


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--predictions", "{}"], "writes to"),
        (["--bad-rows", "{}"], "writes to"),
        (["--predictions", "kafka://a/said,said2"], "there is one place to write to"),
        (["--predictions", "kafka://user:hush@a/said"], "no user or password"),
        (["--predictions", "kafka://a/said", "--bad-rows", "kafka://a:9092/said"], "is the file of --predictions too"),
        (["--start", "soon"], "needs earliest, latest, or a time"),
        (["--kafka-properties", "nowhere.properties"], "no such file"),
    ],
)
def test_what_cannot_be_meant_is_refused(kafka: MockKafka, tmp_path: Path, capsys: Any, more: list[str], why: str) -> None:
    topic = "refused"
    kafka.send(topic, messages(20))
    try:
        code = learn(
            kafka.address(topic), tmp_path / "m.ovi", "--until-end", *(word.format(kafka.address(topic)) for word in more)
        )
    except SystemExit as stopped:
        code = int(str(stopped.code))
    error = capsys.readouterr().err
    assert code == 2
    assert why in error
    assert "hush" not in error
    assert len(error.strip().splitlines()) == 1


def test_options_of_brokers_are_for_brokers(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "rows.ndjson").write_bytes(b"\n".join(messages(50)))
    assert learn(str(tmp_path / "rows.ndjson"), tmp_path / "m.ovi", "--until-end") == 2
    assert "--until-end is for brokers" in capsys.readouterr().err


def test_no_secret_is_kept(redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    topic = next(names)
    redis.send(topic, messages(120))
    redis.client.execute_command("ACL", "SETUSER", "reader", "on", ">hush-hush", "~*", "+@all")
    monkeypatch.setenv("ONLINEVI_REDIS_USERNAME", "reader")
    monkeypatch.setenv("ONLINEVI_REDIS_PASSWORD", "hush-hush")
    assert learn(redis.address(topic), tmp_path / "m.ovi", "--until-end", "--out", str(tmp_path)) == 0
    told = capsys.readouterr()
    assert "hush-hush" not in told.out + told.err
    assert not any(b"hush-hush" in path.read_bytes() for path in tmp_path.iterdir())
    monkeypatch.setenv("ONLINEVI_REDIS_PASSWORD", "hush-hush wrong")
    assert learn(redis.address(topic), tmp_path / "n.ovi", "--until-end") == 2
    error = capsys.readouterr().err
    assert "ONLINEVI_REDIS_PASSWORD" in error
    assert "hush-hush" not in error


def test_a_pulled_cable_loses_nothing(
    server: MockKafka | RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker goes away and comes back, three times, while a run reads from it and writes to it."""
    monkeypatch.setenv("ONLINEVI_KAFKA_RECONNECT_BACKOFF_MAX_MS", "200")
    topic, said, events = next(names), next(names), messages(600)
    kind, _, port = server.address()[:-1].rpartition(":")
    cable, lane = Cable(int(port)), {"partition": 0} if isinstance(server, MockKafka) else {}
    address = f"{kind}:{cable.port}"
    server.prepare(said)
    server.send(topic, events[:100], **lane)  # type: ignore[arg-type]

    def disturb() -> None:
        for k in range(1, 6):
            time.sleep(0.3)
            if k % 2:
                cable.pull()
            server.send(topic, events[100 * k : 100 * (k + 1)], first=100 * k + 1, **lane)  # type: ignore[arg-type]
            if k % 2:
                time.sleep(0.3)
                cable.plug()

    disturber = threading.Thread(target=disturb)
    disturber.start()
    more = ["--predictions", f"{address}/{said}", "--rows", ":600", "--every", "50"]
    assert learn(f"{address}/{topic}", tmp_path / "m.ovi", *more) == 0
    disturber.join()
    cable.pull()
    assert learn(server.address(topic), tmp_path / "n.ovi", "--rows", ":600") == 0
    assert (
        load_job(tmp_path / "m.ovi").state.alone().array.tobytes()
        == load_job(tmp_path / "n.ovi").state.alone().array.tobytes()
    )
    assert sorted({value["row"] for _, value in server.read(said)}) == list(range(600))
    assert f"{address} is back" in caplog.messages


def test_what_a_broker_refuses_is_told(redis: RedisServer, kafka: MockKafka) -> None:
    redis.client.set("a name", 1)
    for refused, why in ((redis.address("a name"), "WRONGTYPE"), (kafka.address("large"), "too large")):
        out = sender(address_of(refused))
        with pytest.raises(BadInput, match=why):  # noqa: PT012 - where it is told is the sender's
            out.send("key", b"x" * 2_000_000)
            out.settle()
        out.close()


def test_labels_by_key_come_from_a_broker_as_from_a_file(
    server: MockKafka | RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are in the order of the broker's times, and a run that is stopped on the way goes on to the same."""
    wait = Wait(("id",), ("at",), seconds=12.0, otherwise="no")
    settings = Settings("y", rule="implicit", drop=("at",), classes=("no", "yes"), wait=wait, look=5)
    streams, addresses, files = two_streams(8), [], []
    for records in streams:
        records = sorted(records, key=lambda record: record["at"])
        topic, files = next(names), [*files, write(tmp_path / f"{len(files)}.ndjson", records)]
        addresses.append(server.address(topic))
        for number, record in enumerate(records):
            value, milliseconds = json.dumps(record).encode(), 1000 * (record["at"] + 100)
            if isinstance(server, MockKafka):
                server.producer.produce(topic, value, partition=0, timestamp=milliseconds)
            else:
                server.client.xadd(topic, {"json": value}, id=f"{milliseconds}-{number}")
        if isinstance(server, MockKafka):
            assert server.producer.flush(30.0) == 0
    want, _ = learned(settings, files[0], files[1])
    timed = replace(settings, wait=replace(wait, time=()))
    monkeypatch.setattr(driver, "open_stream", partial(open_stream, batch_rows=7))
    said = next(names)
    server.prepare(said)
    places = Places(
        addresses[0], tmp_path / "m.ovi", address_of(server.address(said)), labels=addresses[1], follow=Follow(until_end=True)
    )
    ended, calls = "", 0
    while ended != "end":
        stopper = Stopper()

        turns = count(1)

        def stop(*_: Any, stopper: Stopper = stopper, turns: Iterator[int] = turns) -> None:
            stopper.code = 143 if next(turns) > 5 else 0

        with Run(timed, places, resume=True) as run:
            ended, calls = run.go(stopper, stop)[0], calls + 1
    job = load_job(tmp_path / "m.ovi")
    assert calls > 2
    assert job.state.alone() == want.state.alone()
    assert job.late.counts == want.late.counts
    keys = [key for key, _ in server.read(said)]
    assert len(keys) == len(set(keys)) == len(streams[0])
    topic = addresses[0].rpartition("/")[2]
    assert all(key.startswith(f"{topic}/") for key in keys)
