"""What is Kafka's own: offsets that are gone, partitions that join or run ahead, properties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.brokers import NOW, MockKafka, names, read, rows
from helpers.cables import Certificates, Guard

from onlinevi.data import BadInput, Follow, Position, address_of, broker, open_stream, sender
from onlinevi.data.brokers.kafka import _KafkaLog, properties

pytest.importorskip("pyarrow")


def test_kafka_is_asked_where_a_time_begins(kafka: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock has no answer to it, so this answers in its place."""
    topic, ask = next(names), _KafkaLog._ask
    kafka.send(topic, rows(40))

    def answer(log: Any, question: Any, *what: Any) -> Any:
        if question.__name__ != "offsets_for_times":
            return ask(log, question, *what)
        for one in what[0]:
            assert one.offset == 1_500_000
            one.offset = 6 if one.partition != 3 else -1  # nothing that young
        return what[0]

    monkeypatch.setattr(_KafkaLog, "_ask", answer)
    found, _ = read(kafka.address(topic), Follow("1970-01-01T00:25", until_end=True))
    assert found == [k for k in range(24, 40) if k % 4 != 3]


def test_offsets_that_are_gone_are_told(kafka: MockKafka) -> None:
    """The mock keeps 5 MiB of each partition."""
    topic, large = next(names), b'{"n": 1, "text": "' + b"x" * 100_000 + b'"}'
    kafka.send(topic, rows(10), partition=2)
    _, position = read(kafka.address(topic), end_row=4)
    kafka.send(topic, [large] * 60, partition=2)
    lost = (
        r"topic '%s', partition 2: [0-9]+ offsets are gone that were not read, 4 to [0-9]+\. Go on behind it with --lost skip"
    )
    with pytest.raises(BadInput, match=lost % topic):
        read(kafka.address(topic), resume=position)
    rest, _ = read(kafka.address(topic), Follow(until_end=True, lost="skip"), resume=position)
    assert 30 < len(rest) < 60
    ahead = Position("", 0, 0, "", (), Position.from_json([*position.to_json()[:5], {"kafka": {topic: [0, 0, 99, 0]}}]).mark)
    with pytest.raises(BadInput, match="partition 2: it ends at offset 70, and 99 was reached before"):
        read(kafka.address(topic), resume=ahead)
    more = Position("", 0, 0, "", (), Position.from_json([*position.to_json()[:5], {"kafka": {topic: [0, 0, 70, 0, 9]}}]).mark)
    with pytest.raises(BadInput, match=f"topic '{topic}': 4 partitions are there, and 5 were before: it is new"):
        read(kafka.address(topic), resume=more)
    assert read(kafka.address(topic), Follow(until_end=True, lost="skip"), resume=more)[0] == []


def test_offsets_that_go_in_the_middle_of_a_run_are_told(kafka: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 large messages the mock keeps some 25; some were fetched before the others came, but never all of them."""
    monkeypatch.setenv("ONLINEVI_KAFKA_QUEUED_MAX_MESSAGES_KBYTES", "3000")
    monkeypatch.setenv("ONLINEVI_KAFKA_FETCH_MESSAGE_MAX_BYTES", "1000000")
    topic = next(names)
    large = [b'{"n": %d, "text": "' % k + b"x" * 200_000 + b'"}' for k in range(100)]
    for follow in (Follow(), Follow(lost="skip")):
        topic, found = next(names), list[int]()
        kafka.send(topic, large[:20], partition=0)
        with open_stream(broker(kafka.address(topic), follow), batch_rows=1, end_row=100) as opened:
            found += next(opened).columns["n"].to_pylist()
            kafka.send(topic, large[20:], partition=0)
            if follow.lost == "stop":
                with pytest.raises(BadInput, match=r"partition 0: [0-9]+ offsets are gone that were not read"):
                    list(opened)
                continue
            while found[-1] != 99:
                found += next(opened).columns["n"].to_pylist()
            assert opened.position.place == {"kafka": {topic: [100, 0, 0, 0]}}
        gaps = np.flatnonzero(np.diff(found) - 1)
        assert len(gaps) == 1
        assert found[gaps[0] + 1] == 100 - (len(found) - gaps[0] - 1)


def test_a_partition_that_is_ahead_waits_at_the_broker(kafka: MockKafka) -> None:
    """And not in memory; all of it comes, once."""
    topic = next(names)
    kafka.send(topic, rows(400)[200:], partition=1, first=200)
    kafka.send(topic, rows(200), partition=0)
    kafka.send(topic, rows(600)[400:], partition=0, first=400)
    with open_stream(broker(kafka.address(topic), NOW), batch_rows=10) as opened:
        lanes, found, most = opened._reader._log.lanes, list[int](), 0  # type: ignore[attr-defined]
        for batch in opened:
            found += batch.columns["n"].to_pylist()
            most = max(most, *(len(lane.waiting) for lane in lanes))
    assert found == list(range(600))
    assert most < 40


def test_a_topic_that_grows_is_read_whole(kafka: MockKafka) -> None:
    topic = next(names)
    kafka.send(topic, rows(40))
    _, position = read(kafka.address(topic))
    fewer = Position.from_json([*position.to_json()[:5], {"kafka": {topic: [10, 10]}}])
    assert read(kafka.address(topic), resume=fewer)[0] == [k for k in range(40) if k % 4 > 1]


def test_partitions_that_join_a_running_topic_are_read(
    kafka: MockKafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = next(names)
    kafka.send(topic, rows(40))
    monkeypatch.setattr(_KafkaLog, "_topics", lambda log: {topic: 2})
    with open_stream(broker(kafka.address(topic)), end_row=40) as opened:
        found = list[int]()
        while len(found) < 20:
            found += next(opened).columns["n"].to_pylist()
        early = opened.position
        monkeypatch.setattr("onlinevi.data.brokers.kafka.LOOKED", 0.0)
        found += [value for batch in opened for value in batch.columns["n"].to_pylist()]
        assert opened.position.place == {"kafka": {topic: [10, 10, 10, 10]}}
    assert early.place == {"kafka": {topic: [10, 10]}}
    assert found[:20] == [k for k in range(40) if k % 4 < 2]
    assert found[20:] == [k for k in range(40) if k % 4 > 1]
    assert caplog.messages == [f"{kafka.address(topic)}: 2 partitions have joined"]


@pytest.mark.parametrize("told_by", ["environment", "file"])
def test_tls_and_sasl_are_spoken(
    told_by: str, kafka: MockKafka, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read and written through one who wants both."""
    topic, said = next(names), next(names)
    kafka.send(topic, rows(40))
    kafka.prepare(said)
    guard = Guard(int(kafka.host.rpartition(":")[2]), certificates, "me", "hush")
    told = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "hush",
        "ssl.ca.location": str(certificates.certificate),
    }
    if told_by == "file":
        (tmp_path / "ours").write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        monkeypatch.setenv("ONLINEVI_KAFKA_PROPERTIES", str(tmp_path / "ours"))
    else:
        for name, value in told.items():
            monkeypatch.setenv("ONLINEVI_KAFKA_" + name.replace(".", "_").upper(), value)
    address = f"kafka://127.0.0.1:{guard.port}"
    assert read(f"{address}/{topic}")[0] == list(range(40))
    out = sender(address_of(f"{address}/{said}"))
    out.send("key", b"{}")
    out.settle()
    out.close()
    assert kafka.read(said) == [("key", {})]
    monkeypatch.setattr("onlinevi.data.brokers.kafka.PATIENCE", 0.5)
    monkeypatch.setenv("ONLINEVI_KAFKA_SASL_PASSWORD", "another")
    with pytest.raises(BadInput, match=r"cannot be reached: .*SASL authentication failure") as wrong:
        read(f"{address}/{topic}")
    assert "another" not in str(wrong.value)
    guard.pull()


def test_secrets_come_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka: MockKafka
) -> None:
    file, address = tmp_path / "client.properties", address_of("kafka://localhost/clicks")
    file.write_text("# ours\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\n\n")
    monkeypatch.setenv("ONLINEVI_KAFKA_PROPERTIES", str(file))
    told = {"bootstrap.servers": "localhost:9092", "security.protocol": "SASL_SSL", "sasl.password": "a=b"}
    assert properties(address) == told
    monkeypatch.setenv("ONLINEVI_KAFKA_SASL_PASSWORD", "hush")
    assert properties(address) == told | {"sasl.password": "hush"}
    file.write_text("hush\n")
    with pytest.raises(ValueError, match="line 1: needs name=value") as wrong:
        properties(address)
    assert "hush" not in str(wrong.value)
    file.write_text("no.such.thing=1\n")
    with pytest.raises(ValueError, match=r'Kafka\'s properties: No such configuration property: "no.such.thing"'):
        read(kafka.address("clicks"))
