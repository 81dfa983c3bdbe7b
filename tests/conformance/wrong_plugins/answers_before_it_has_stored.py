"""The server is told to answer a commit before it is on the disk, as that is faster. It has all until it crashes."""

from __future__ import annotations

import os
import pickle
import socketserver
import threading
from functools import cache
from pathlib import Path

from crooked import CrookedPlugin
from rows_on_a_server import ADDRESS, Client, committed

from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse

CAUGHT_BY = "test_servers.py::test_what_a_server_answered_survives_its_crash"
SAYS = "epoch 0 was published, and the server crashed: a reader finds the ids: expected [0, 1, 2, 3, 4], found []"
IN_MEMORY: set[Path] = set()


def manifests(location: str) -> set[Path]:
    return {path for path in Path(location, "_feather_manifests").rglob("*") if path.is_file()}


class HastyHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        asked = pickle.load(self.rfile)  # noqa: S301 - of our own tests
        before = manifests(asked[0].location)
        answer = committed(asked)
        IN_MEMORY.update(manifests(asked[0].location) - before)
        pickle.dump(answer, self.wfile)


@cache
def server() -> str:
    """Its port."""
    made = socketserver.ThreadingTCPServer(("127.0.0.1", 0), HastyHandler)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return str(made.server_address[1])


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        os.environ[ADDRESS] = server()
        return Warehouse(str(folder / "warehouse"))

    def crash(self, _: Warehouse) -> None:
        for path in IN_MEMORY:
            path.unlink()
        IN_MEMORY.clear()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("answers-before-it-has-stored", committer=Client)
