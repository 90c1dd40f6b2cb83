"""What is Redis's own: entries that are gone, streams that have one order as they grow, fields as columns."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from helpers.brokers import LACKS_REDIS, NOW, RedisServer, names, read, redis_is_here, redis_server
from helpers.cables import Certificates

from onlinevi.data import BadInput, Follow, Skip, address_of, broker, open_stream, sender

pytest.importorskip("pyarrow")


def test_streams_that_grow_as_they_are_read_have_one_order(redis: RedisServer) -> None:
    """Two writers at once, and a reader at their heels: it reads what one reads who comes later."""
    streams, count = [next(names), next(names)], 400

    def write(stream: str) -> None:
        import redis as client

        own = client.Redis("127.0.0.1", redis.port)
        for k in range(count):
            own.xadd(stream, {"n": f"{stream} {k}"})
        own.close()

    writers = [threading.Thread(target=write, args=(stream,)) for stream in streams]
    for writer in writers:
        writer.start()
    live, _ = read(redis.address(*streams), Follow(), end_row=2 * count)
    for writer in writers:
        writer.join()
    later, _ = read(redis.address(*streams))
    assert live == later
    assert len({value.split()[0] for value in live[:count]}) == 2, "they took turns"


def test_what_was_trimmed_before_it_was_read_is_told(redis: RedisServer) -> None:
    stream = next(names)
    redis.send(stream, [{"n": k} for k in range(100)])
    _, position = read(redis.address(stream), end_row=40)
    redis.client.xtrim(stream, maxlen=60, approximate=False)
    rest, _ = read(redis.address(stream), resume=position)
    assert rest[0] == "40", "what was read may be trimmed"
    redis.client.xtrim(stream, maxlen=50, approximate=False)
    with pytest.raises(BadInput, match=r"behind 40-0 and before 51-0: 10 entries are gone that were not read.*--lost skip"):
        read(redis.address(stream), resume=position)
    rest, after = read(redis.address(stream), Follow(until_end=True, lost="skip"), resume=position)
    assert (rest[0], len(rest)) == ("50", 50)
    redis.client.xtrim(stream, maxlen=0, approximate=False)
    with pytest.raises(BadInput, match="up to 100-0: 60 entries are gone"):
        read(redis.address(stream), resume=position)
    assert read(redis.address(stream), resume=after)[0] == []
    redis.client.delete(stream)
    with pytest.raises(BadInput, match="0 entries were added up to 0-0, and 40 up to 40-0 before"):
        read(redis.address(stream), resume=position)
    redis.send(stream, [{"n": k} for k in range(3)], first=200)  # made anew: later ids, and nothing of what was not read
    with pytest.raises(BadInput, match="3 entries were added up to 202-0, and 40 up to 40-0 before"):
        read(redis.address(stream), resume=position)
    assert read(redis.address(stream), Follow(until_end=True, lost="skip"), resume=position)[0] == ["0", "1", "2"]


def test_a_trim_in_the_middle_of_a_run_is_told(redis: RedisServer) -> None:
    stream = next(names)
    redis.send(stream, [{"n": k} for k in range(100)])
    with open_stream(broker(redis.address(stream)), batch_rows=10) as opened:
        next(opened)
        redis.client.xdel(stream, "95-0")
        redis.client.xtrim(stream, maxlen=20, approximate=False)
        with pytest.raises(BadInput, match=r"behind 10-0 and before 80-0: 70 entries are gone"):
            list(opened)
        assert opened.position.rows == 10


def test_what_was_deleted_one_by_one_is_said(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    stream = next(names)
    redis.send(stream, [{"n": k} for k in range(20)])
    redis.client.xdel(stream, "3-0")  # before the run: nobody's loss
    with open_stream(broker(redis.address(stream)), batch_rows=8, end_row=20) as opened:
        assert next(opened).columns["n"].to_pylist() == ["0", "1", *map(str, range(3, 9))]
        redis.client.xdel(stream, "12-0")
        redis.send(stream, [{"n": 20}, {"n": 21}], first=21)
        assert len([value for batch in opened for value in batch.columns["n"].to_pylist()]) == 12
    assert caplog.messages == [
        f"{broker(redis.address(stream)).address.bare}: 1 entries of {stream!r} were deleted before they were read"
    ]


def test_fields_of_redis_are_columns_of_text(redis: RedisServer) -> None:
    stream = next(names)
    redis.send(stream, [{"n": 1, "town": "é"}, {"town": "t", "n": 2}, {"n": 3}, {b"n": b"\xff"}])
    redis.client.execute_command("XADD", stream, "5-0", "n", "5", "n", "6")
    bad = Skip()
    with open_stream(broker(redis.address(stream), NOW), bad=bad) as opened:
        (batch,) = opened
    assert {name: values.to_pylist() for name, values in batch.columns.items()} == {
        "n": ["1", "2", "3"],
        "town": ["é", "t", None],
    }
    assert bad.count == 2
    assert bad.first is not None
    assert bad.first.reason == "no text in UTF-8"
    redis.send(stream, [{"json": '{"n": 6.5, "town": "x"}'}], first=6)
    with open_stream(broker(redis.address(stream), NOW), bad=Skip()) as opened:
        (batch,) = opened
    assert batch.columns["n"].to_pylist() == ["1", "2", "3", "6.5"], "whatever stands beside it"


def test_tls_a_password_and_a_certificate_are_spoken(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("redis")
    if not redis_is_here():
        pytest.skip(LACKS_REDIS)
    monkeypatch.setattr("onlinevi.data.brokers.redis.PATIENCE", 0.3)
    own, key = str(certificates.certificate), str(certificates.key)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    files = ["--tls-cert-file", own, "--tls-key-file", key, "--tls-ca-cert-file", own, "--tls-auth-clients", "yes"]
    with redis_server("--tls-port", str(port), *files) as server:
        server.send("clicks", [{"n": k} for k in range(20)])
        server.client.config_set("requirepass", "hush")
        address = f"rediss://127.0.0.1:{port}/clicks"
        for name, value, why in (
            ("CA", own, "certificate verify failed.*set ONLINEVI_REDIS_CA=FILE"),
            ("CERTIFICATE", own + "x", "cannot be reached"),
            ("CERTIFICATE", own, "ONLINEVI_REDIS_CERTIFICATE=.*pemx: no such file"),
            ("KEY", key, "cannot be reached|private key"),
            ("PASSWORD", "hush", "set ONLINEVI_REDIS_PASSWORD"),
        ):
            with pytest.raises(ValueError, match=why):
                read(address)
            monkeypatch.setenv(f"ONLINEVI_REDIS_{name}", value)
        assert read(address)[0] == [str(k) for k in range(20)]
        out = sender(address_of(address.replace("clicks", "said")))
        out.send("key", b"{}")
        out.settle()
        out.close()
        server.client.auth("hush")
        assert server.read("said") == [("key", {})]


def test_a_server_without_memory_is_waited_for(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """Neither read from nor written to, it refuses both."""
    stream = next(names)
    redis.send(stream, [{"n": k} for k in range(30)])
    redis.client.config_set("maxmemory", "1mb")
    relieved = threading.Timer(0.3, redis.client.config_set, ("maxmemory", "0"))
    relieved.start()
    try:
        assert read(redis.address(stream))[0] == [str(k) for k in range(30)]
    finally:
        relieved.join()
    away, back = caplog.messages
    assert "used memory > 'maxmemory'" in away
    assert back.endswith("is back")


def test_a_server_that_is_killed_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("redis")
    if not redis_is_here():
        pytest.skip(LACKS_REDIS)
    with redis_server() as server:
        server.send("clicks", [{"n": k} for k in range(1000)])
        with open_stream(broker(server.address("clicks")), batch_rows=100, end_row=1500) as opened:
            found = next(opened).columns["n"].to_pylist()
            server.kill()
            back = threading.Timer(
                0.5, lambda: (server.start(), server.send("clicks", [{"n": k} for k in range(1000, 1500)], 1001))
            )
            back.start()
            found += [value for batch in opened for value in batch.columns["n"].to_pylist()]
            back.join()
        assert found == [str(k) for k in range(1500)]
    told = server.address()[:-1]
    assert [message.partition(" (")[0] for message in caplog.messages] == [f"{told} is away", f"{told} is back"]
