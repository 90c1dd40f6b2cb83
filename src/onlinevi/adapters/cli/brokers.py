"""The options of brokers: where a run begins and ends, and where Kafka's properties are."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from onlinevi.data import Follow, is_address

PROPERTIES = "ONLINEVI_KAFKA_PROPERTIES"


def add_brokers(command: argparse.ArgumentParser) -> None:
    """Add the options of sources that are brokers."""
    brokers = command.add_argument_group("brokers: where FILE is kafka://host:port/topic,… or redis://host:port/stream,…")
    brokers.add_argument(
        "--start",
        metavar="WHERE",
        help="begin at the earliest message that is kept, behind the latest, or at a time, as 2026-08-01T12:30:00; a run that "
        "is resumed goes on where it stopped (default: earliest)",
    )
    brokers.add_argument(
        "--until-end",
        action="store_true",
        help="end behind the last message that is there at the beginning; do not wait for more",
    )
    brokers.add_argument(
        "--lost",
        choices=("stop", "skip"),
        help="where the broker no longer has messages that were not read: stop, or say how many and go on (default: stop)",
    )
    brokers.add_argument(
        "--kafka-properties",
        type=Path,
        metavar="FILE",
        help=f"Kafka's properties, such as those of TLS and SASL, name=value a line (default: that of {PROPERTIES}); "
        "ONLINEVI_KAFKA_SASL_PASSWORD sets sasl.password, and so for each; of Redis ONLINEVI_REDIS_PASSWORD is heard",
    )


def follow_of(options: argparse.Namespace, sources: Sequence[str | None]) -> Follow:
    """How the brokers among these sources are read."""
    asked = {"--start": options.start, "--until-end": options.until_end, "--lost": options.lost}
    told = [name for name, value in asked.items() if value]
    if told and not any(map(is_address, sources)):
        raise ValueError(f"{told[0]} is for brokers: FILE is none, as kafka://localhost:9092/clicks is one")
    if options.kafka_properties is not None:
        if not options.kafka_properties.is_file():
            raise ValueError(f"--kafka-properties {options.kafka_properties}: no such file")
        os.environ[PROPERTIES] = str(options.kafka_properties)
    return Follow(options.start or "earliest", options.until_end, options.lost or "stop")
