"""Who may come in: tokens with a role each, compared in constant time and never written down."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from onlinevi.adapters.serve.requests import Refused

Role: TypeAlias = Literal["read", "learn", "admin"]
ROLES: tuple[Role, ...] = ("read", "learn", "admin")
"""Each may do what those before it may."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})
SHORTEST = 16
"""Characters of a token."""


class Token(NamedTuple):
    role: Role
    digest: bytes


class Tokens:
    """The tokens of a file: a line for each, ``role token``; a word that begins with # begins a comment. Only digests are
    kept."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = tuple(tokens)

    @staticmethod
    def read(path: Path) -> Tokens:
        tokens = []
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is no text: write lines such as 'admin TOKEN'") from None
        for number, line in enumerate(text.splitlines(), 1):
            words = list(takewhile(lambda word: not word.startswith("#"), line.split()))
            if not words:
                continue
            if len(words) != 2 or words[0] not in ROLES:
                raise ValueError(f"{path}, line {number}: needs a role ({', '.join(ROLES)}) and a token")
            if len(words[1]) < SHORTEST:
                raise ValueError(f"{path}, line {number}: a token needs {SHORTEST} characters at least")
            tokens.append(Token(words[0], _digest(words[1])))
        if not tokens:
            raise ValueError(f"{path} has no token: write lines such as 'admin TOKEN'")
        return Tokens(tokens)

    def check(self, authorization: str | None, needed: Role) -> None:
        """Refuse who has no token, or one that may not do this."""
        scheme, _, given = (authorization or "").partition(" ")
        own, digest = -1, _digest(given.strip())
        for token in self._tokens:  # all of them, whichever fits
            if hmac.compare_digest(token.digest, digest):
                own = max(own, ROLES.index(token.role))
        if scheme.lower() != "bearer" or own < 0:
            raise Refused(401, "needs a token: send Authorization: Bearer TOKEN")
        if own < ROLES.index(needed):
            raise Refused(403, f"this needs a token that may {needed}; yours may {ROLES[own]}")


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogatepass")).digest()


def check_host(host: str | None) -> None:
    """Refuse who calls this machine by another name than its own: a page elsewhere may have a name that leads here."""
    name = (host or "").rpartition(":")[0] if (host or "").rpartition(":")[2].isdigit() else (host or "")
    if name not in LOOPBACK:
        raise Refused(403, f"host {name[:60]!r} is not this machine: call it localhost, or serve with --tokens")
