"""Topics of Kafka and streams of Redis as sources: every message once and in one order, wherever reading stopped."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.brokers import NOW, MockKafka, RedisServer, names, read, rows
from hypothesis import given
from hypothesis import strategies as st

from onlinevi.data import BadInput, Follow, Position, Skip, address_of, broker, is_address, open_stream
from onlinevi.data.brokers.merge import Lane, Message, take

pytest.importorskip("pyarrow")


@pytest.fixture(params=["kafka", "redis", "redis, two streams"])
def address(request: pytest.FixtureRequest) -> str:
    """300 rows at a broker, those of the numbers 7, 107 and 207 no JSON."""
    values, name = [b"seven" if k % 100 == 7 else row for k, row in enumerate(rows(300))], next(names)
    if request.param == "kafka":
        server = request.getfixturevalue("kafka")
        server.send(name, values)
        return str(server.address(name))
    server, streams = request.getfixturevalue("redis"), [f"{name}_{k}" for k in range(len(request.param.split()) - 1 or 1)][:2]
    for k, value in enumerate(values):
        server.client.xadd(streams[k % len(streams)], {"json": value}, id=f"{k + 1}-1")
    return str(server.address(*streams))


def test_every_message_comes_once_wherever_reading_stopped(address: str) -> None:
    good = [k for k in range(300) if k % 100 != 7]
    source = broker(address, NOW)
    with open_stream(source, bad=Skip(), batch_rows=97) as stream:
        seen: list[int] = []
        for batch in stream:
            seen += batch.columns["n"].to_pylist()
            assert batch.rows.tolist() == seen[-len(batch) :], "rows are numbered as they were sent, bad ones too"
            assert batch.times is not None
            assert np.allclose(np.diff(batch.times), np.diff(batch.rows) / 1000.0)
            position = Position.from_json(json.loads(json.dumps(stream.position.to_json())))
            rest, _ = read(address, resume=position, batch_rows=23)
            assert seen + rest == good
        place = stream.place(int(batch.rows[-1]))
    assert place is not None
    last = [place["stream"][-1], place["id"]] if "stream" in place else [place["partition"], place["offset"]]
    assert last in ([3, 74], [source.address.names[-1][-1], "300-1"])


def test_a_run_begins_where_it_is_told(address: str) -> None:
    _, position = read(address)
    assert read(address, Follow(start="latest", until_end=True))[0] == []
    assert read(address, Follow("earliest", until_end=True))[0][:3] == [0, 1, 2]
    if address.startswith("redis"):
        assert read(address, Follow("1970-01-01T00:00:00.250", until_end=True))[0][:2] == [249, 250]
        assert read(address, Follow("1970-01-02", until_end=True))[0] == []
    again, after = read(address, resume=position)
    assert (again, after.place) == ([], position.place)


def test_what_comes_later_is_waited_for(kafka: MockKafka, redis: RedisServer) -> None:
    topic, stream = next(names), next(names)
    kafka.send(topic, rows(5))
    redis.send(stream, [{"n": k} for k in range(5)])

    def later() -> None:
        time.sleep(0.4)
        kafka.send(topic, rows(9)[5:], first=5)
        redis.client.xadd(stream, {"n": 5})
        redis.client.xadd(stream, {"n": 6})

    for address, end in ((kafka.address(topic), 9), (redis.address(stream), 7)):
        sender = threading.Thread(target=later)
        with open_stream(broker(address), end_row=end) as opened:
            assert opened.live
            found = opened.peek(2)[0].columns["n"].to_pylist()
            sender.start()
            found = [int(value) for batch in opened for value in batch.columns["n"].to_pylist()]
        sender.join()
        assert found[:5] == [0, 1, 2, 3, 4]
        assert sorted(found) == list(range(end))
        redis.client.delete(stream)
        redis.send(stream, [{"n": k} for k in range(5)])


ORDERED = st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=3)


@given(lanes=ORDERED, cuts=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 5)), max_size=20))
def test_the_order_hangs_on_no_fetch(lanes: list[list[int]], cuts: list[tuple[int, int, int]]) -> None:
    """Whatever is fetched when, and however much is taken at once."""
    whole = [Lane({}) for _ in lanes]
    for lane, times in zip(whole, lanes, strict=True):
        lane.waiting.extend(Message(time, at, at, None) for at, time in enumerate(times))
        lane.ended = True
    expected = take(whole, 100)
    assert len(expected) == sum(map(len, lanes))
    here, fetched, found = [Lane({}) for _ in lanes], [0 for _ in lanes], []
    for number, size, most in [*cuts, *((k, 100, 100) for k in range(len(lanes)))]:
        if number < len(lanes):
            times = lanes[number][fetched[number] : fetched[number] + size]
            here[number].waiting.extend(Message(time, at, at, None) for at, time in enumerate(times, fetched[number]))
            fetched[number] += len(times)
            here[number].ended = fetched[number] == len(lanes[number])
        found += take(here, most)
    assert found + take(here, 100) == expected


def test_as_young_as_the_clock_waits_but_not_what_is_ahead_of_it() -> None:
    lanes = [Lane({}), Lane({})]
    lanes[0].waiting.extend(Message(time, time, time, None) for time in (3, 5, 7, 99_999))
    lanes[1].ended = True
    assert [message.time for _, message in take(lanes, 10, before=5)] == [3]
    assert [message.time for _, message in take(lanes, 10, before=8)] == [5, 7, 99_999]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("redis://user:secret@localhost/clicks", "no user or password in an address"),
        ("kafka://secret@localhost/clicks", "no user or password in an address"),
        ("kafka://localhost", "needs a host and different topics"),
        ("kafka://localhost/a,a", "needs a host and different topics"),
        ("redis://localhost/a,,b", "needs a host and different streams"),
        ("redis:///clicks", "needs a host"),
        ("redis://one,two/clicks", "needs one host"),
        ("redis://localhost:port/clicks", "'localhost:port' is no host:port"),
        ("redis://localhost:99999/clicks", "is no host:port"),
    ],
)
def test_addresses_that_cannot_be_are_refused(text: str, why: str) -> None:
    assert is_address(text)
    with pytest.raises(ValueError, match=why) as told:
        address_of(text)
    assert "secret" not in str(told.value)


def test_addresses_are_spelled_in_one_way() -> None:
    assert str(address_of("kafka://[::1]:1,b/clicks,views")) == "kafka://[::1]:1,b:9092/clicks,views"
    assert str(address_of("redis://b/a")) == "redis://b:6379/a"
    assert address_of("kafka://127.0.0.1,LocalHost,[::1]/a").identities == {("localhost", 9092, "a")}
    assert not any(map(is_address, ("clicks.csv", "-", "C:\\clicks.csv", "/a://b", Path("kafka://a/b"))))
    with pytest.raises(ValueError, match="https:// is no broker that is known: needs kafka://, redis://"):
        open_stream("https://localhost/clicks.csv")
    for start in ("soon", "2026-13-01"):
        with pytest.raises(ValueError, match="needs earliest, latest, or a time"):
            Follow(start)
    assert Follow("1970-01-01T01:00:01+01:00").milliseconds == Follow("1970-01-01T00:00:01").milliseconds == 1000


def test_what_cannot_be_read_is_told_in_a_line(kafka: MockKafka, redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlinevi.data.brokers.kafka.PATIENCE", 0.5)
    monkeypatch.setattr("onlinevi.data.brokers.redis.PATIENCE", 0.3)
    kafka.send("A topic", rows(1))
    with pytest.raises(BadInput, match=r"has no topic 'nowhere' that can be read; it has A topic"):
        read(kafka.address("nowhere"))
    for scheme in ("kafka", "redis"):
        with pytest.raises(BadInput, match=f"{scheme}://127.0.0.1:9 cannot be reached: "):
            read(f"{scheme}://127.0.0.1:9/clicks")
    redis.client.set("a name", 1)
    with pytest.raises(BadInput, match="WRONGTYPE"):
        read(redis.address("a name"))
    _, position = read(kafka.address("A topic"))
    with pytest.raises(BadInput, match="other places were read before"):
        read(redis.address("clicks"), resume=position)
    kafka.send("other", rows(1))
    with pytest.raises(BadInput, match="topics A topic were read before"):
        read(kafka.address("other"), resume=position)
    redis.client.config_set("requirepass", "hush")
    try:
        with pytest.raises(BadInput, match="ONLINEVI_REDIS_PASSWORD"):
            read(redis.address("secret"))
        monkeypatch.setenv("ONLINEVI_REDIS_PASSWORD", "hush")
        assert read(redis.address("secret"))[0] == []
    finally:
        import redis as client

        client.Redis("127.0.0.1", redis.port, password="hush").config_set("requirepass", "")
