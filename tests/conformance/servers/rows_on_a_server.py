"""A table behind a server of this machine, as a database is: a commit carries its rows, and the server makes a file of
them. The parts of a right client, and of a wrong one."""

from __future__ import annotations

import os
import pickle
import socket
import socketserver
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable, Writer

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse

ADDRESS = "ROWS_ON_A_SERVER"


def committed(asked: Any) -> Any:
    """What the server does, and answers: a text where the table has moved on."""
    if asked is None:
        return "here"
    table, context, version, batches, watermark = asked
    committer = kit.ManifestCommitter(FeatherTable(Path(table.location)), context)
    state = committer.open()
    if state.snapshot_id != version:
        return "the table has moved on"
    writer = Writer(table, spi.new_attempt_id())
    for batch in batches:
        writer.write(batch)
    return committer.publish(state, [writer.complete()], watermark)


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        pickle.dump(committed(pickle.load(self.rfile)), self.wfile)  # noqa: S301 - of our own tests


@cache
def server() -> str:
    """Its port."""
    made = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return str(made.server_address[1])


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        os.environ[ADDRESS] = server()
        return Warehouse(str(folder / "warehouse"))


class Client(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        self.table.check_staged(state, results)
        batches = []
        for file in (file for result in results for file in result.files):
            with pa.ipc.open_file(str(self.table.location / file.path)) as staged:
                batches += [staged.get_batch(number) for number in range(staged.num_record_batches)]
        commit = self.commit(state, batches, watermark)
        self.discard(results)
        return commit

    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        """An error of the connection passes: nobody knows whether the rows have landed."""
        assert isinstance(state, kit.ManifestState)
        where, version = str(self.table.location), state.snapshot_id
        table = spi.TableInfo(spi.TablePath.parse("db.t"), state.metadata, state.table_uuid, where, version)
        answer = self.ask((table, self.context, version, batches, watermark))
        if isinstance(answer, str):
            raise spi.Conflict(answer, where=where)
        assert isinstance(answer, spi.LakeCommitResult)
        return answer

    def ask(self, request: object) -> object:
        """Each request has a connection of its own. None asks whether the server is there."""
        with socket.create_connection(("127.0.0.1", int(os.environ[ADDRESS]))) as connection:
            connection.sendall(pickle.dumps(request))
            with connection.makefile("rb") as answers:
                return pickle.load(answers)  # noqa: S301 - of our own tests


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("rows-on-a-server", committer=Client)
