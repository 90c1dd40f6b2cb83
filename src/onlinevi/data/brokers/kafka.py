"""Kafka's topics, by confluent-kafka: all partitions of each are read, from offsets that are ours; no group, no commits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from onlinevi.data.brokers.address import Address, Scheme
from onlinevi.data.brokers.base import LOG, PATIENCE, Broker, Follow, Log, Sender, from_environment, lost
from onlinevi.data.brokers.merge import Lane, Message
from onlinevi.data.formats import objects_piece
from onlinevi.data.sources import BadInput, Piece, ReadOptions

ENVIRONMENT = "ONLINEVI_KAFKA_"
"""``ONLINEVI_KAFKA_SASL_PASSWORD`` sets ``sasl.password``, and so for all properties."""
MOMENT = 0.1
"""Seconds that are waited for a message before a signal is heard."""
ASKED = 1.0
"""Seconds that one question to the broker may take before a signal is heard."""
SENT = 0.5
"""Seconds that are waited for what was sent before a signal is heard."""
LOOKED = 60.0
"""Seconds from one look at how many partitions there are to the next."""
OURS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
}
"""What positions of our own need."""
QUIET: dict[str, Any] = {"log_level": 0, "socket.timeout.ms": 10_000}
"""Of all clients, unless properties say otherwise: a broker that has been silent for so long is away."""
READING: dict[str, Any] = {"group.id": "onlinevi", "fetch.wait.max.ms": 100}
"""The same of those that read. The group is a name only: nobody joins it."""
SURELY: dict[str, Any] = {"enable.idempotence": True, "message.timeout.ms": 0, "linger.ms": 5}
"""And of those that write: in order, and however long the broker is away."""


def confluent() -> Any:
    """The module ``confluent_kafka``."""
    try:
        import confluent_kafka
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('Kafka needs confluent-kafka: pip install "onlinevi[kafka]"') from error
    return confluent_kafka


def properties(address: Address) -> dict[str, Any]:
    """What a client is told: the hosts, what the file ``ONLINEVI_KAFKA_PROPERTIES`` says, and above it the environment."""
    told = from_environment(ENVIRONMENT)
    named = told.pop("properties", None)
    path = None if named is None else Path(named)
    lines = [] if path is None else path.read_text(encoding="utf-8").splitlines()
    kept: dict[str, Any] = {"bootstrap.servers": ",".join(f"{host}:{port}" for host, port in address.hosts)}
    for number, line in enumerate(map(str.strip, lines), 1):
        name, equals, value = line.partition("=")
        if line and line[0] not in "#!":
            if not equals or not name.strip():
                raise ValueError(f"{path}, line {number}: needs name=value")  # which may hold a password: it is not shown
            kept[name.strip()] = value.strip()
    return kept | told


def client(kind: Any, settings: dict[str, Any]) -> Any:
    """A consumer or a producer; properties that it does not take are refused without what they hold."""
    try:
        return kind(settings)
    except confluent().KafkaException as error:
        reason = error.args[0].str()
        for name, value in settings.items():
            if "password" in name or "secret" in name or "key" in name:
                reason = reason.replace(str(value), "…") if str(value) else reason
        raise ValueError(f"Kafka's properties: {reason}") from None


class Contact:
    """What a client says of its connections: whether all brokers are away, which is told once, and why."""

    def __init__(self, address: Address) -> None:
        self._name, self._away, self.trouble, self.fatal = address.bare, False, "", ""

    def troubled(self, error: Any) -> None:
        """The client's call when something is wrong."""
        all_down = error.code() == confluent().KafkaError._ALL_BROKERS_DOWN  # which was told to be wrong of each before
        self.trouble = self.trouble if all_down and self.trouble else error.str()
        if error.fatal():
            self.fatal = self.trouble
        if all_down and not self._away:
            self._away = True
            LOG.warning("%s is away (%s): waiting for it", self._name, self.trouble)

    def made(self) -> None:
        """A broker has answered."""
        if self._away:
            self._away = False
            LOG.warning("%s is back", self._name)


class Kafka(Broker):
    """Topics of Kafka: each message's value is a JSON object, a row. Partitions are read in the order of their times."""

    schemes: ClassVar = {"kafka": Scheme(9092, "topic", f"{ENVIRONMENT}SASL_PASSWORD", several_hosts=True)}

    def connect(self, marks: Any, batch_rows: int) -> Log:
        return _KafkaLog(self.address, self.follow, marks, batch_rows)

    @staticmethod
    def sender(address: Address) -> Sender:
        return _KafkaSender(address)


class _KafkaLog(Log):
    kind = "kafka"

    def __init__(self, address: Address, follow: Follow, marks: Any, batch_rows: int) -> None:
        self._address, self._follow, self._most = address, follow, batch_rows
        self._kafka, self._contact = confluent(), Contact(address)
        settings = QUIET | READING | properties(address) | OURS | {"error_cb": self._contact.troubled}
        self._consumer = client(self._kafka.Consumer, settings)
        try:
            topics = self._topics()
            self.lanes, self._numbers = list[Lane](), dict[tuple[str, int], int]()
            self._add_lanes(topics)
            edges = [self._ask(self._consumer.get_watermark_offsets, self._partition(k)) for k in range(len(self.lanes))]
            self.marks = self._begin(edges) if marks is None else self._again(marks, edges)
        except BaseException:
            self.close()
            raise
        self._next, self._ends = list(self.marks), [high for _, high in edges] if follow.until_end else None
        self._held, self._looked = set[int](), time.monotonic()
        for number in range(len(self.lanes)):
            self._reached(number)
        self._assign()

    def fetch(self) -> None:
        if self._ends is None and time.monotonic() - self._looked > LOOKED:
            self._look_for_partitions()
        self._hold()
        first = self._consumer.poll(MOMENT)
        if first is None:
            return
        brought, trouble = set[int](), self._kafka.KafkaError
        for message in [first, *self._consumer.consume(self._most, 0)]:
            number, error = self._numbers.get((message.topic(), message.partition())), message.error()
            if error is not None and error.code() == trouble._AUTO_OFFSET_RESET and number is not None:
                self._refused(number)
                return
            if error is not None and error.code() != trouble._PARTITION_EOF:
                self._heard(error)
            elif number is not None and error is not None:
                self.lanes[number].ended = True
                brought.discard(number)  # its end is known, which may lie behind markers that are no messages
                self._reached(number, message.offset())
            elif number is not None and message.offset() >= self._next[number] and not self.lanes[number].closed:
                at = message.offset()
                self._next[number] = at + 1
                if self._ends is None or at < self._ends[number]:
                    self.lanes[number].waiting.append(Message(max(message.timestamp()[1], 0), at, at + 1, message.value()))
                brought.add(number)
        for number in brought:
            _, high = self._consumer.get_watermark_offsets(self._partition(number), cached=True)
            self.lanes[number].ended = 0 <= high <= self._next[number]
            self._reached(number)
        self._contact.made()

    def after(self, at: Any, nth: int) -> Any:
        return nth

    def place(self, lane: Lane, at: Any) -> Mapping[str, Any]:
        return {**lane.place, "offset": at}

    def told(self, marks: Sequence[Any]) -> Any:
        topics: dict[str, list[int]] = {}
        for lane, mark in zip(self.lanes, marks, strict=False):  # lanes that have joined since come last
            topics.setdefault(lane.place["topic"], []).append(mark)
        return {self.kind: topics}

    def piece(self, values: Sequence[Any], source: str, options: ReadOptions) -> Piece:
        return objects_piece([value or b"" for value in values], source, options)

    def close(self) -> None:
        self._consumer.close()

    def _topics(self) -> dict[str, int]:
        """How many partitions each topic has."""
        known = self._ask(self._consumer.list_topics).topics
        for topic in self._address.names:
            if topic not in known or known[topic].error is not None:
                there = ", ".join(sorted(name for name in known if not name.startswith("__"))[:10]) or "none"
                raise BadInput(f"{self._address.bare} has no topic {topic!r} that can be read; it has {there}")
        return {topic: len(known[topic].partitions) for topic in self._address.names}

    def _add_lanes(self, topics: Mapping[str, int]) -> int:
        """Lanes for the partitions that have none; how many there are."""
        more = [(topic, k) for topic, count in topics.items() for k in range(count) if (topic, k) not in self._numbers]
        for topic, partition in more:
            self._numbers[topic, partition] = len(self.lanes)
            self.lanes.append(Lane({"topic": topic, "partition": partition}))
        return len(more)

    def _look_for_partitions(self) -> None:
        """Partitions that have joined are read from their first message."""
        self._looked = time.monotonic()
        try:
            known = self._consumer.list_topics(timeout=ASKED).topics
        except self._kafka.KafkaException:  # it is away, as others say
            return
        joined = self._add_lanes({topic: len(known[topic].partitions) for topic in self._address.names if topic in known})
        if joined:
            LOG.warning("%s: %d partitions have joined", self._address, joined)
            self.marks += [0] * joined
            self._next += [0] * joined
            self._assign()

    def _ask(self, question: Any, *what: Any) -> Any:
        """The broker's answer, if it gives one in time; in between, signals are heard."""
        begun = time.monotonic()
        while True:
            try:
                answer = question(*what, timeout=ASKED)
                if answer is not None:
                    return answer
                reason = "no answer"
            except self._kafka.KafkaException as error:
                reason = error.args[0].str()
            self._consumer.poll(0)  # where the client tells why
            if time.monotonic() - begun > PATIENCE:
                trouble = self._contact.trouble or reason
                hint = "; does it want TLS or SASL (security.protocol)?" if trouble.endswith("brokers are down") else ""
                raise BadInput(f"{self._address.bare} cannot be reached: {trouble}{hint}")

    def _partition(self, number: int, *offset: int) -> Any:
        lane = self.lanes[number]
        return self._kafka.TopicPartition(lane.place["topic"], lane.place["partition"], *offset)

    def _begin(self, edges: Sequence[tuple[int, int]]) -> list[Any]:
        """Where a run begins that goes on from nowhere."""
        moment = self._follow.milliseconds
        if moment is None:
            return [low if self._follow.start == "earliest" else high for low, high in edges]
        found = self._ask(self._consumer.offsets_for_times, [self._partition(k, moment) for k in range(len(edges))])
        offsets = {(one.topic, one.partition): one.offset for one in found}
        told = [offsets[lane.place["topic"], lane.place["partition"]] for lane in self.lanes]
        return [offset if offset >= 0 else high for offset, (_, high) in zip(told, edges, strict=True)]

    def _again(self, marks: Any, edges: Sequence[tuple[int, int]]) -> list[Any]:
        """Where a run goes on; partitions that have joined since are read from their first message."""
        topics = marks.get(self.kind) if isinstance(marks, dict) else None
        if not isinstance(topics, dict) or set(topics) != set(self._address.names):
            read = "other places" if not isinstance(topics, dict) else f"topics {', '.join(topics)}"
            raise BadInput(f"{read} were read before, and not {self._address}: resume from the same topics, or start anew")
        for topic, read in topics.items():
            if (count := sum(lane.place["topic"] == topic for lane in self.lanes)) < len(read):
                gone = f"{count} partitions are there, and {len(read)} were before: it is new"
                lost(self._follow, f"{self._address.bare}, topic {topic!r}: {gone}")
        known = [dict(enumerate(topics[lane.place["topic"]])).get(lane.place["partition"], 0) for lane in self.lanes]
        return [self._there(k, mark, *edges[k]) for k, mark in enumerate(known)]

    def _there(self, number: int, mark: int, low: int, high: int) -> int:
        """Where a partition goes on: at its mark, if the broker still has what lies behind it."""
        lane = self.lanes[number]
        name = f"{self._address.bare}, topic {lane.place['topic']!r}, partition {lane.place['partition']}"
        if mark < low:
            lost(self._follow, f"{name}: {low - mark:,} offsets are gone that were not read, {mark} to {low - 1}")
            return low
        if mark > high:
            lost(
                self._follow,
                f"{name}: it ends at offset {high}, and {mark} was reached before: messages were lost, or it is new",
            )
            return high
        return mark

    def _refused(self, number: int) -> None:
        """The broker has nothing at the offset that was asked for: it is gone, or never came."""
        low, high = self._ask(self._consumer.get_watermark_offsets, self._partition(number))
        self._next[number] = self._there(number, self._next[number], low, high)
        if not self.lanes[number].waiting:
            self.marks[number] = self._next[number]
        self._assign()

    def _assign(self) -> None:
        self._consumer.assign([self._partition(number, offset) for number, offset in enumerate(self._next)])
        self._held.clear()

    def _hold(self) -> None:
        """Fetch no more of partitions of which enough waits for others."""
        if len(self.lanes) == 1:
            return
        full = {number for number, lane in enumerate(self.lanes) if len(lane.waiting) > self._most}
        if more := full - self._held:
            self._consumer.pause([self._partition(number) for number in more])
        if less := {number for number in self._held - full if not self.lanes[number].waiting}:
            self._consumer.resume([self._partition(number) for number in less])
        self._held = (self._held | more) - less

    def _reached(self, number: int, offset: int = 0) -> None:
        """Close a partition behind what was there at the beginning, where that is its end."""
        if self._ends is not None and max(self._next[number], offset) >= self._ends[number]:
            self.lanes[number].closed = True

    def _heard(self, error: Any) -> None:
        """An error of the broker: worth another try, or the end."""
        if not error.retriable() and error.code() > 0:
            raise BadInput(f"{self._address.bare}: {error.str()}")
        LOG.warning("%s: %s", self._address.bare, error.str())


class _KafkaSender(Sender):
    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._kafka, self._refusal, self._contact = confluent(), "", Contact(address)
        (self._topic,) = address.names
        settings = QUIET | SURELY | properties(address) | {"error_cb": self._contact.troubled}
        self._producer = client(self._kafka.Producer, settings)

    def send(self, key: str, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._delivered)
                return
            except BufferError:  # full of what waits
                self._producer.poll(SENT)
                self._check()
            except self._kafka.KafkaException as error:
                raise BadInput(f"{self.address} refused a message: {error.args[0].str()}") from error

    def flush(self) -> None:
        self._producer.poll(0)
        self._check()

    def settle(self) -> None:
        while self._producer.flush(SENT):
            self._check()
        self._check()
        self._contact.made()

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(SENT)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._refusal = self._refusal or error.str()

    def _check(self) -> None:
        if refusal := self._refusal or self._contact.fatal:
            raise BadInput(f"{self.address} refused a message: {refusal}")
