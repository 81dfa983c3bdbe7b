"""Rounds in a process of their own, to be killed or raced.

A fork server that has imported everything, and has started no thread, makes each process in milliseconds; starting
an interpreter for each would take a minute over all tests.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from laketier import open_writer
from laketier.spi import (
    Decision,
    LakeStorageConfig,
    ScanRequest,
    TablePath,
    Token,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import TieringRound
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin

# Its path holds installed packages only, so it can't import this module itself.
_PRELOAD = [
    "pytest",
    "pyarrow.parquet",
    "laketier.tiering",
    "laketier.registry",
    "laketier_localfile.storage",
    "laketier.tiering.epochs",
]


def rounds(job: dict[str, Any], answers: Connection) -> None:
    os.environ["LAKETIER_FAILPOINTS"] = job["failpoints"]
    try:
        for epoch in job["epochs"]:
            answers.send(_round(job, epoch))
    except Exception:  # noqa: BLE001 - told to the test
        answers.send(traceback.format_exc())


def rows_of(ids: Sequence[int], regions: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """With ``ts``, where the table has it: each epoch lies in two hours, and these go on as the epochs do."""
    rows = {"id": ids, "region": regions, "ts": [_moment(each) for each in ids]}
    return pa.RecordBatch.from_pydict({name: rows[name] for name in schema.names}, schema=schema)


def _moment(number: int) -> datetime:
    epoch, i = divmod(number, 1000)
    return datetime(2026, 11, 24, 22) + timedelta(hours=epoch // 60 + i % 2)


def _round(job: dict[str, Any], epoch: int) -> str:
    storage = LocalFilePlugin().create_storage(
        LakeStorageConfig(job["warehouse"], LocalFileOptions(**job.get("options", {})))
    )
    table = storage.catalog().load_table(TablePath.parse(job["table"]))
    factory = storage.tiering_factory(table)
    work = TieringRound(factory, token=Token(job["pipeline"], "run", epoch), mode=WriteMode(job["mode"]))
    if work.begin() is Decision.DONE:
        return f"DONE {epoch}"
    results = []
    for part in range(2):
        writer = factory.create_writer(WriterInitContext(new_attempt_id(), split_index=part))
        ids = [epoch * 1000 + part * 2 + i for i in range(2)]
        writer.write(rows_of(ids, ["r0", "r1"], table.schema))
        results.append(writer.complete())
    if job["mode"] == "upsert":
        source = storage.source(storage.catalog().load_table(TablePath.parse(job["table"])))
        replaced = [name for split in source.plan(ScanRequest()).splits for name in split.files]
        results[0] = replace(results[0], replaced=tuple(replaced))
    return f"{work.commit(results).outcome.name} {epoch}"


def open_epochs(job: dict[str, Any], answers: Connection) -> None:
    """Epochs by one writer, whose files stay open from one to the next."""
    os.environ["LAKETIER_FAILPOINTS"] = job["failpoints"]
    schema = job["schema"]
    try:
        with open_writer(job["config"], schema) as writer:
            for epoch in job["epochs"]:
                ids = [epoch * 1000 + i for i in range(4)]
                rows = rows_of(ids, ["r0", "r1", "r2", "r3"], schema)
                answers.send(f"{writer.write(epoch, [rows]).outcome.name} {epoch}")
    except Exception:  # noqa: BLE001 - told to the test
        answers.send(traceback.format_exc())


class Child:
    """A running process."""

    def __init__(self, job: dict[str, Any], target: Callable[..., None] = rounds) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOAD)
        self._answers, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=target, args=(job, theirs))
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Of the process, for signals."""
        assert self._process.pid is not None
        return self._process.pid

    def answer(self) -> str | None:
        """The next thing that it says. None when it has ended."""
        try:
            said: str = self._answers.recv()
        except EOFError:
            return None
        return said

    def join(self) -> tuple[int, list[str]]:
        """Its exit code (negative for a signal) and what it said."""
        said: list[str] = []
        with self._answers:
            try:
                while True:
                    said.append(self._answers.recv())
            except EOFError:
                pass
        self._process.join()
        code = self._process.exitcode
        assert code is not None
        self._process.close()
        return code, said
