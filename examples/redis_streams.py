"""A stream of Redis learned from while it grows: its server killed meanwhile, its events trimmed, then trimmed too early.

python examples/redis_streams.py      # starts a redis-server of its own
"""

# %% A server, with each write on its disk before it is acknowledged, and clicks as fields
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import redis

from onlinevi.adapters.cli import main

if shutil.which("redis-server") is None:
    sys.exit("no redis-server here: apt-get install redis-server")
folder = tempfile.mkdtemp()
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
rng, client = np.random.default_rng(0), redis.Redis("127.0.0.1", port)


def serve():
    call = (
        f"redis-server --port {port} --bind 127.0.0.1 --dir {folder} --appendonly yes --appendfsync always --loglevel warning"
    )
    server = subprocess.Popen(shlex.split(call), stdout=subprocess.DEVNULL)
    while True:
        try:
            client.ping()
            return server
        except redis.ConnectionError:
            time.sleep(0.05)


def shell(command):
    print("$ onlinevi", command)
    return main(shlex.split(command))


def happen(count):
    for hour, price in zip(rng.integers(0, 24, count), rng.uniform(1, 9, count), strict=True):
        clicked = "yes" if rng.random() < 1 / (1 + np.exp(2 * price - hour / 2)) else "no"
        client.xadd("clicks", {"hour": int(hour), "price": f"{price:.2f}", "clicked": clicked})


# %% The server is killed while the run waits for the last 200 of 600 events, and comes back
server = serve()
happen(400)
call = f"run redis://127.0.0.1:{port}/clicks --target clicked --rule implicit --look 200 --rows :600 --resume"
call += f" --checkpoint {folder}/clicks.ovi"


def disturb():
    global server
    while not client.info("clients")["blocked_clients"]:  # until the run waits
        time.sleep(0.05)
    server.kill()
    server.wait()
    time.sleep(0.5)
    server = serve()
    happen(200)


disturber = threading.Thread(target=disturb)
disturber.start()
shell(call)
disturber.join()

# %% Events that were learned may be trimmed; where one goes that was not, the run says how many
client.xtrim("clicks", maxlen=100, approximate=False)
happen(150)
client.xtrim("clicks", maxlen=120, approximate=False)
print("ended with", shell(call))
server.kill()
server.wait()
