"""Brokers for tests, on loopback: librdkafka's mock of Kafka, and a Redis server of our own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from onlinevi.data import Follow, Position, Skip, broker, open_stream

LACKS_REDIS = "no redis-server here: apt-get install redis-server"
NOW = Follow(until_end=True)
names = (f"clicks{k}" for k in count())
"""Of topics and streams that nobody has used yet."""
PARTITIONS = 4
"""Of each topic of the mock."""


def rows(number: int) -> list[bytes]:
    return [json.dumps({"n": k, "town": f"t{k % 7}"}).encode() for k in range(number)]


def read(address: str, follow: Follow = NOW, resume: Position | None = None, **how: Any) -> tuple[list[Any], Position]:
    """The numbers of all rows that can be read, and the position behind them."""
    with open_stream(broker(address, follow), bad=Skip(), resume=resume, **how) as stream:
        found = [value for batch in stream for value in batch.columns["n"].to_pylist()]
        return found, Position.from_json(stream.position.to_json())


class MockKafka:
    """A cluster of one broker within this process; a topic is there once it was written to."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        self.producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 1})
        (broker,) = self.producer.list_topics(timeout=10.0).brokers.values()
        self.host = f"{broker.host}:{broker.port}"

    def address(self, *topics: str) -> str:
        return f"kafka://{self.host}/{','.join(topics)}"

    def send(self, topic: str, values: Iterable[bytes | None], *, partition: int | None = None, first: int = 0) -> None:
        """One message a value, a millisecond after the other, to one partition or to all in turn."""
        for k, value in enumerate(values, first):
            while True:
                try:
                    self.producer.produce(
                        topic, value, partition=k % PARTITIONS if partition is None else partition, timestamp=1_000_000 + k
                    )
                    break
                except BufferError:
                    self.producer.poll(0.1)
        assert self.producer.flush(30.0) == 0

    def prepare(self, topic: str) -> None:
        """Make a topic that is empty but for one message in each partition, which ``read`` leaves out."""
        for partition in range(PARTITIONS):
            self.send(topic, [None], partition=partition)

    def read(self, topic: str) -> list[tuple[str, dict[str, Any]]]:
        """The keys and values of all messages of a topic."""
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.host, "group.id": "tests", "log_level": 0, "fetch.wait.max.ms": 20}
        consumer = Consumer(settings)
        places = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
        left = sum(consumer.get_watermark_offsets(place, timeout=10.0)[1] for place in places)
        consumer.assign(places)
        found: list[tuple[str, dict[str, Any]]] = []
        while left:
            messages = consumer.consume(min(left, 1000), 1.0)
            assert all(message.error() is None for message in messages)
            left -= len(messages)
            found += [(one.key().decode(), json.loads(one.value())) for one in messages if one.value() is not None]
        consumer.close()
        return found


class RedisServer:
    """A server on a free port, with each write on its disk before it is acknowledged."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self) -> None:
        import redis

        call = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        call += ["--appendonly", "yes", "--appendfsync", "always", "--loglevel", "warning"]
        call += self.options
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(call, stdout=log, stderr=log)
        self.client = redis.Redis("127.0.0.1", self.port, protocol=2)
        for _ in range(500):
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.02)
        raise RuntimeError((self.folder / "log").read_text())

    def kill(self) -> None:
        self.client.close()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def address(self, *streams: str) -> str:
        return f"redis://127.0.0.1:{self.port}/{','.join(streams)}"

    def prepare(self, stream: str) -> None:
        """Nothing is to be done for a stream to be there."""

    def read(self, stream: str) -> list[tuple[str, dict[str, Any]]]:
        """The keys and rows of all entries."""
        entries = [fields for _, fields in self.client.xrange(stream)]
        return [(fields[b"key"].decode(), json.loads(fields[b"json"])) for fields in entries]

    def send(self, stream: str, rows: Iterable[Mapping[str, Any] | bytes], first: int = 1) -> None:
        """An entry each, a millisecond after the other; bytes as its field ``json``."""
        pipe = self.client.pipeline(transaction=False)
        for k, row in enumerate(rows, first):
            pipe.xadd(stream, {"json": row} if isinstance(row, bytes) else dict(row), id=f"{k}-0")
            if k % 5000 == 0:
                pipe.execute()
        pipe.execute()


def redis_is_here() -> bool:
    return shutil.which("redis-server") is not None


@contextmanager
def redis_server(*options: str) -> Iterator[RedisServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), *options)
        try:
            yield server
        finally:
            server.kill()
