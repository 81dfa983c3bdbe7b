"""The database is on this machine, behind a socket of Unix, so a connection that ends is taken for a commit that was
refused."""

from __future__ import annotations

import os
import pickle
import socket
import socketserver
import tempfile
import threading
from functools import cache
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from rows_on_a_server import ADDRESS, Client, Handler

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse

CAUGHT_BY = "test_answers.py::test_an_answer_to_a_publish_is_no_conflict"
SAYS = "to unix /"


@cache
def server() -> str:
    """The name of its socket."""
    path = str(Path(tempfile.mkdtemp(prefix="rows-"), "socket"))
    made = socketserver.ThreadingUnixStreamServer(path, Handler)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return path


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        os.environ[ADDRESS] = server()
        return Warehouse(str(folder / "warehouse"))


class LocalClient(Client):
    def ask(self, request: object) -> object:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.environ[ADDRESS])
            connection.sendall(pickle.dumps(request))
            with connection.makefile("rb") as answers:
                return pickle.load(answers)  # noqa: S301 - of our own tests

    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().commit(state, batches, watermark)
        except (OSError, EOFError) as error:
            raise spi.Conflict("the database refused it", where=str(self.table.location)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-lost-answers-on-a-socket-for-conflicts", committer=LocalClient)
