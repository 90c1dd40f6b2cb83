"""Brokers as sources: Kafka's topics, Redis's streams.

Each is a module of its own, which says how its addresses begin; ``base.py`` has what they share, and ``merge.py`` the order of
several topics or streams.
"""

from __future__ import annotations

from onlinevi.data.brokers.address import Address, Scheme, address_of, is_address
from onlinevi.data.brokers.base import BROKERS, Broker, Follow, Log, Sender
from onlinevi.data.brokers.kafka import Kafka
from onlinevi.data.brokers.merge import Lane, Message
from onlinevi.data.brokers.redis import Redis

__all__ = [
    "Address",
    "Broker",
    "Follow",
    "Kafka",
    "Lane",
    "Log",
    "Message",
    "Redis",
    "Scheme",
    "Sender",
    "address_of",
    "broker",
    "is_address",
    "sender",
]

FOLLOWED = Follow()


def broker(address: str | Address, follow: Follow = FOLLOWED) -> Broker:
    """The source at an address.

    >>> broker("redis://localhost/clicks").name
    'redis://localhost:6379/clicks'
    """
    where = address if isinstance(address, Address) else address_of(address)
    return BROKERS[where.scheme](where, follow)


def sender(address: Address) -> Sender:
    """The sender to an address, which names one topic or stream."""
    if len(address.names) > 1:
        raise ValueError(f"{address}: there is one place to write to; name one")
    return BROKERS[address.scheme].sender(address)
