"""A service that is killed again and again under eight clients: what it acknowledged is there, once, and replays to its state.

``python tests/helpers/killed_service.py 500`` kills it 500 times and prints what was found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

CLIENTS = 8
EVENTS_A_CALL = 4


def talk(port: int, folder: Path) -> None:
    """Eight clients that send events by their ids until told to stop, and write down what was acknowledged."""
    from helpers.served import rows

    from onlinevi.client import Client

    stock = rows(2000)
    failures = []

    def send(k: int) -> None:
        draw, count = random.Random(k), 0
        try:
            with (
                (folder / f"acknowledged-{k}").open("w") as file,
                Client(f"http://127.0.0.1:{port}", patience=120.0) as client,
            ):
                while not (folder / "stop").exists():
                    events = []
                    for _ in range(draw.randint(1, EVENTS_A_CALL)):
                        row = dict(draw.choice(stock))
                        events.append({"label": row.pop("y"), "row": row, "id": f"c{k}-{count}"})
                        count += 1
                    if draw.random() < 0.2:  # its label comes later
                        client["m"].predict_many([events[0]["row"]], ids=[events[0]["id"]])
                        del events[0]["row"]
                    answers = client["m"].learn_many(events)
                    told = {one["status"] for one in answers}
                    if not told <= {"learned", "known"}:
                        failures.append(f"client {k}: {answers}")
                    file.writelines(f"{event['id']}\n" for event in events)
                    file.flush()
        except Exception as error:
            failures.append(f"client {k}: {error!r}")

    threads = [threading.Thread(target=send, args=(k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (folder / "failures").write_text("\n".join(failures))


def serve(listening: socket.socket, folder: Path) -> None:
    """The service, until it is killed or told to stop."""
    from onlinevi.adapters.serve import Folder, Limits, create_app
    from onlinevi.adapters.serve.server import Server, until_stopped

    models = Folder(folder, Limits(snapshot_every=100))
    until_stopped(Server(create_app(models)), listening, models)
    models.close()


def forked(work: object, *arguments: object) -> int:
    """A process that does this; it has all that was imported, and so begins at once."""
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)  # type: ignore[operator]
        finally:
            os._exit(0)
    return child


def _wait_for_answers(notes: Path, calls: int) -> None:
    """Until about so many calls more were acknowledged."""
    before, end = _written(notes), time.monotonic() + 20.0
    while _written(notes) < before + 12 * calls and time.monotonic() < end:
        time.sleep(0.005)


def _written(notes: Path) -> int:
    return sum(path.stat().st_size for path in notes.glob("acknowledged-*"))


def main(kills: int) -> dict[str, int]:
    """Kill a service so many times; what was found behind it."""
    import helpers.served as helpers  # and all that it imports, before the forks
    from helpers.served import new_folder, same_jobs

    from onlinevi.adapters.serve.history import SNAPSHOTS, History
    from onlinevi.adapters.serve.server import listen

    root = Path(tempfile.mkdtemp(dir=helpers.IN_MEMORY))
    models, notes, draw = root / "models", root / "notes", random.Random(0)
    notes.mkdir()
    history = History(new_folder(models / "m"))
    history.take([helpers.asked(row, f"first-{k}") for k, row in enumerate(helpers.rows(50))])
    history.close()
    with listen("127.0.0.1", 0) as listening:
        clients = forked(talk, listening.getsockname()[1], notes)
        for _ in range(kills):
            service = forked(serve, listening, models)
            _wait_for_answers(notes, calls=draw.randint(0, 12))
            time.sleep(draw.expovariate(50.0))
            os.kill(service, signal.SIGKILL)
            os.waitpid(service, 0)
        service = forked(serve, listening, models)
        time.sleep(1.0)
        (notes / "stop").touch()
        os.waitpid(clients, 0)
        os.kill(service, signal.SIGTERM)
        os.waitpid(service, 0)
    failures = (notes / "failures").read_text()
    if failures:
        raise AssertionError(failures)
    said = [line for k in range(CLIENTS) for line in (notes / f"acknowledged-{k}").read_text().split()]
    history = History(models / "m")
    there = [event.id for block in history.journal.events() for event in block]
    shutil.rmtree(models / "m" / SNAPSHOTS)
    (models / "m" / SNAPSHOTS).mkdir()
    history.close()
    replayed = History(models / "m")
    found = {
        "kills": kills,
        "acknowledged": len(said),
        "lost": len(set(said) - set(there)),
        "learned_twice": len(there) - len(set(there)),
        "replays_to_the_same_bits": int(same_jobs(history.job, replayed.job)),  # type: ignore[arg-type]
    }
    replayed.close()
    shutil.rmtree(root)
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    print(json.dumps(main(int(sys.argv[1]))))
