"""``onlinevi serve``: models behind HTTP that learn as labels come."""

from __future__ import annotations

import argparse
import sys
from math import inf
from pathlib import Path
from typing import Any, get_args

from onlinevi.adapters.cli.options import TASKS, Commands, add_import, add_kinds, add_rule, names
from onlinevi.adapters.cli.outcome import print_json
from onlinevi.adapters.cli.parser import add_json
from onlinevi.learners import Effort

EXAMPLES = """examples:
  onlinevi serve models/ --port 8080
  onlinevi serve --new clicks --target clicked --task classes
  onlinevi serve models/ --host 0.0.0.0 --tokens tokens.txt

The first serves a folder of models on this machine alone, the second makes a model in the folder "models", unless it
is there, and the third serves others, each with a token. With --json the address and the models are told on standard
output, as one line, when calls are answered."""
FIRST = ("--new", "--target", "--task", "--port", "--host", "--tokens")
LEAST = {"snapshot_every": 1, "queue": 1, "waiting": 0, "wait_days": 0.0, "body_mb": 0.001}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "serve",
        first=FIRST,
        help="serve models over HTTP that learn from each label, and show them live",
        description="Serve a folder of models: predict rows, learn their labels when they come, and lose nothing that was\n"
        "acknowledged. The page at / shows each model as it learns.",
        epilog=EXAMPLES,
    )
    command.add_argument(
        "folder",
        metavar="FOLDER",
        type=Path,
        nargs="?",
        default=Path("models"),
        help="the folder of the models; made where it is not there (default: models)",
    )
    service = command.add_argument_group("service")
    service.add_argument("--port", type=int, default=8080, metavar="N", help="the port; 0 takes a free one (default: 8080)")
    service.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="the address; other than this machine's needs --tokens"
    )
    service.add_argument(
        "--tokens", type=Path, metavar="FILE", help="who may come in: a line each, its role (read, learn, admin) and a token"
    )
    service.add_argument("--snapshot-every", type=int, default=10_000, metavar="N", help="events between snapshots")
    service.add_argument("--queue", type=int, default=20_000, metavar="N", help="rows that may wait to be written")
    service.add_argument("--waiting", type=int, default=1_000_000, metavar="N", help="rows that may wait for their labels")
    service.add_argument(
        "--wait-days", type=float, default=30.0, metavar="DAYS", help="how long a row waits for its label (default: 30)"
    )
    service.add_argument("--body-mb", type=float, default=10.0, metavar="MB", help="the largest body (default: 10)")
    add_json(service)
    new = command.add_argument_group("a new model")
    new.add_argument("--new", metavar="NAME", help="make this model, unless it is there")
    new.add_argument("--target", metavar="COL", help="the name of what it predicts")
    new.add_argument("--task", choices=TASKS, help="what the labels are (default: by the looks of the first ones)")
    new.add_argument("--classes", type=names, default=(), metavar="A,B", help="the labels in the order of their codes")
    add_rule(new)
    new.add_argument("--effort", choices=get_args(Effort), default="default", help="of auto, how much an event may cost")
    add_kinds(new)
    add_import(new)
    command.set_defaults(command=_serve)


def _serve(options: argparse.Namespace) -> int:
    try:
        from onlinevi.adapters.serve import Limits, serve
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f'{error.name} is not there: pip install "onlinevi[serve]"') from error
    if options.host not in LOOPBACK and options.tokens is None:
        raise ValueError(f"--host {options.host}: others could change the models; say who may come in with --tokens FILE")
    if not 0 <= options.port < 1 << 16:
        raise ValueError(f"--port {options.port}: needs a number from 0 to 65535; 0 takes a free one")
    for flag, least in LEAST.items():
        value = getattr(options, flag)
        if not least <= value < inf:
            raise ValueError(f"--{flag.replace('_', '-')} {value:g}: needs a number from {least:g}")
    limits = Limits(
        queued=options.queue,
        waiting=options.waiting,
        wait_seconds=options.wait_days * 24 * 3600.0,
        snapshot_every=options.snapshot_every,
    )
    new = None
    for flag in ("target", "task", "classes", "kinds"):
        if options.new is None and getattr(options, flag):
            raise ValueError(f"--{flag}: of which model? name a new one: --new NAME")
    if options.new is not None:
        if options.target is None:
            raise ValueError("--new: which column is to be predicted? name it: --target COL")
        chosen = {name: getattr(options, name) for name in ("target", "task", "classes", "rule", "effort", "kinds")}
        new = options.new, chosen
    return serve(
        options.folder,
        host=options.host,
        port=options.port,
        tokens=options.tokens,
        limits=limits,
        new=new,
        imported=options.imports,
        most_bytes=int(options.body_mb * 2**20),
        say=options.voice.say,
        ready=_tell if options.json else None,
    )


def _tell(served: dict[str, Any]) -> None:
    """At once, as whoever reads it waits for it."""
    print_json(served)
    sys.stdout.flush()
