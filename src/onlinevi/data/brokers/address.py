"""The address of topics or streams at a broker: ``kafka://host:port/topic[,topic]``, ``redis://host:port/stream[,stream]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple

ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<hosts>[^/]*)/?(?P<names>.*)", re.DOTALL)


class Scheme(NamedTuple):
    """What the addresses of a broker have."""

    port: int
    """The port where none is named."""
    name: str
    """What it calls that which an address names: a topic, a stream."""
    password: str
    """The variable of the environment that a password belongs in, and not the address."""
    several_hosts: bool = False
    """Whether it lives on several hosts, of which some may be named."""


SCHEMES: dict[str, Scheme] = {}
"""How addresses begin, of the brokers that have been imported."""


@dataclass(frozen=True)
class Address:
    """Where a broker is, and what of it is meant.

    >>> str(address_of("kafka://one,two:9093/clicks,views"))
    'kafka://one:9092,two:9093/clicks,views'
    """

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    """One or some hosts of the broker, and their ports."""
    names: tuple[str, ...]
    """Topics or streams."""

    def __str__(self) -> str:
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"{self.scheme}://{hosts}/{','.join(self.names)}"

    @property
    def identities(self) -> set[tuple[str, int, str]]:
        """The same of two spellings of one topic or stream, as far as names of hosts tell."""
        return {
            ("localhost" if _is_here(host) else host.lower(), port, name) for host, port in self.hosts for name in self.names
        }

    @property
    def bare(self) -> str:
        """Without what is meant of it, as messages call it."""
        return str(self).rpartition("/")[0]


def is_address(text: object) -> bool:
    """Whether it names a broker, rightly or not, and no file."""
    return isinstance(text, str) and ADDRESS.match(text) is not None


def address_of(text: str) -> Address:
    """The address that a text spells. A password has no place in it: command lines are seen by everyone on the machine."""
    found = ADDRESS.fullmatch(text)
    if found is None or found["scheme"] not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ValueError(
            f"{text.partition('://')[0]}:// is no broker that is known: needs {known}, or --import of one of yours"
        )
    scheme, hosts, kind = found["scheme"], found["hosts"], SCHEMES[found["scheme"]]
    if "@" in hosts:
        raise ValueError(
            f"{scheme}://…@{hosts.rpartition('@')[2]}: no user or password in an address, which all can read: set them in the "
            f"environment ({kind.password})"
        )
    names = tuple(found["names"].split(","))
    if not all(names) or len(set(names)) < len(names) or not hosts:
        raise ValueError(
            f"{text}: needs a host and different {kind.name}s, as {scheme}://localhost:{kind.port}/{kind.name},{kind.name}"
        )
    if "," in hosts and not kind.several_hosts:
        raise ValueError(f"{text}: needs one host")
    return Address(scheme, tuple(_host(text, one, kind.port) for one in hosts.split(",")), names)


def _is_here(host: str) -> bool:
    """Whether it is a name of this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host(text: str, host: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]\s]+))(?::([0-9]{1,5}))?", host)
    if found is None or not 0 < int(found[3] or port) < 1 << 16:
        raise ValueError(f"{text}: {host!r} is no host:port")
    return found[1] or found[2], int(found[3] or port)
