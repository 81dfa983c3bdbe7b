"""Rows are sent, and committed by a request of their own, which is sent once more where no answer came. That can't
commit twice. But the server has crashed in between, and has no such rows any more."""

from __future__ import annotations

import os
import pickle
import socketserver
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable
from rows_on_a_server import ADDRESS, Client, committed

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse

CAUGHT_BY = "test_servers.py::test_a_round_in_which_a_server_crashes"
SAYS = "the round was acknowledged, and the rows: expected "
IN_MEMORY: dict[str, list[pa.RecordBatch]] = {}


def answer(asked: Any) -> Any:
    if len(asked) == 2:
        IN_MEMORY.update([asked])
        return "here"
    table, context, version, watermark = asked
    state = kit.ManifestCommitter(FeatherTable(Path(table.location)), context).open()
    if state.landed(context.commit_id):
        return spi.LakeCommitResult(state.snapshot_id or 0, rows=0, files=0, bytes=0)
    return committed((table, context, version, IN_MEMORY.pop(context.commit_id, []), watermark))


class ForgetfulHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        pickle.dump(answer(pickle.load(self.rfile)), self.wfile)  # noqa: S301 - of our own tests


@cache
def server() -> str:
    """Its port."""
    made = socketserver.ThreadingTCPServer(("127.0.0.1", 0), ForgetfulHandler)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return str(made.server_address[1])


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        os.environ[ADDRESS] = server()
        return Warehouse(str(folder / "warehouse"))

    def crash(self, _: Warehouse) -> None:
        IN_MEMORY.clear()


class Again(Client):
    def ask(self, request: Any) -> object:
        table, context, version, batches, watermark = request
        super().ask((context.commit_id, batches))
        with suppress(EOFError, OSError):
            return super().ask((table, context, version, watermark))
        return super().ask((table, context, version, watermark))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-what-its-server-lost", committer=Again)
