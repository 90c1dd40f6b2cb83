"""Models behind HTTP that learn: ``onlinevi serve``, for programs.

``journal.py`` keeps every event on disk, as a line of which ``lines.py`` makes numbers; ``history.py`` makes the job of them
that they amount to, ``keeper.py`` has the one thread that writes, ``folder.py`` the models by their names. ``requests.py``
reads bodies, ``access.py`` says who may come in, ``guard.py`` what passes through; ``service.py`` carries calls out,
``app.py`` has the routes, ``quick.py`` a short way to two of them, ``inference.py`` the Open Inference Protocol,
``measures.py`` what Prometheus reads, ``live.py`` the page, ``server.py`` the process.
"""

from onlinevi.adapters.serve.app import create_app
from onlinevi.adapters.serve.folder import Folder
from onlinevi.adapters.serve.keeper import Limits
from onlinevi.adapters.serve.server import serve

__all__ = ["Folder", "Limits", "create_app", "serve"]
