"""The steps of a table's life that are recorded, and what must be there after each."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

from laketier.config import parse_options
from laketier.kit.failpoints import FailpointError, observed
from laketier.registry import load_format
from laketier.spi import (
    AddColumn,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    PartitionField,
    TableDescriptor,
    TableNotFound,
    TablePath,
    Token,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RetryPolicy, TieringRound, write_task

PATH = TablePath.parse("db.t")
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("part", pa.string())])
QUICK = RetryPolicy(first_wait_seconds=0.001, longest_wait_seconds=0.01)
ROWS_PER_PART = 3

Rows = Counter[tuple[int, str]]

FOR_OTHERS = {
    "durable._fsync": "",
    "durable.fsync_file": "file",
    "durable.fsync_published": "file",
    "durable.fsync_directory": "directory",
    "local_folder.sync_folder": "directory",
    "local_folder.make_folders": "parent directory",
    "local_store.sync": "directory",
    "local_store.make_folders": "parent directory",
}
"""What syncs because its caller asked for it, and what that is to the caller, who is the one that may forget it."""


@dataclass(frozen=True)
class Step:
    """One commit. ``parts``: per task, the partitions that it writes to."""

    name: str
    epoch: int | None = None
    parts: tuple[str, ...] = ()
    mode: WriteMode = WriteMode.APPEND
    fails_at: str | None = None
    rows: Rows | None = field(default_factory=Counter)
    """All rows after it; None where there is no table."""


def _steps() -> tuple[Step, ...]:
    """A table made, filled, overwritten, widened, filled over a failure, and dropped."""
    told = [
        Step("create"),
        Step("append", 0, ("ab", "a")),
        Step("append more", 1, ("a",)),
        Step("overwrite", 2, ("bc", "c"), WriteMode.OVERWRITE),
        Step("widen"),
        Step("append after a failure", 3, ("ad",), fails_at="publish.after_manifest_before_renames"),
        Step("append nothing", 4),
        Step("overwrite with nothing", 5, (), WriteMode.OVERWRITE),
        Step("append again", 6, ("ae",)),
        Step("drop", rows=None),
    ]
    steps: list[Step] = []
    rows: Rows = Counter()
    for step in told:
        if step.rows is not None:
            rows = Counter() if step.mode is WriteMode.OVERWRITE else Counter(rows)
            rows += Counter(row for task in tasks_of(step) for row in task)
        after = None if step.rows is None else rows
        steps.append(Step(step.name, step.epoch, step.parts, step.mode, step.fails_at, after))
    return tuple(steps)


def tasks_of(step: Step) -> Iterator[list[tuple[int, str]]]:
    for task, parts in enumerate(step.parts):
        start = ((step.epoch or 0) * 10 + task) * 100
        yield [(start + 10 * p + i, part) for p, part in enumerate(parts) for i in range(ROWS_PER_PART)]


STEPS = _steps()


@cache
def _plugin() -> LakeStoragePlugin:
    return load_format("localfile")


def storage_at(folder: Path) -> LakeStorage:
    """The warehouse, opened anew."""
    options = parse_options(_plugin().options_type, {"manifests-per-rollup": "2"}, prefix="", origin="powercut")
    return _plugin().create_storage(LakeStorageConfig(str(folder), options))


def run(storage: LakeStorage, step: Step) -> str:
    """Do it, as any driver would: also when it is done already, or in part."""
    catalog = storage.catalog()
    if step.name == "create":
        catalog.create_table(PATH, TableDescriptor(SCHEMA, partition_by=(PartitionField("part"),)))
    elif step.name == "widen":
        catalog.alter_table(PATH, [AddColumn(pa.field("more", pa.int64()))])
    elif step.name == "drop":
        try:
            catalog.drop_table(PATH)
        except TableNotFound:
            return "already there"
    else:
        return _round(storage, step)
    return "done"


def _round(storage: LakeStorage, step: Step) -> str:
    factory = storage.tiering_factory(storage.catalog().load_table(PATH))
    assert step.epoch is not None
    tiering = TieringRound(factory, token=Token("p", "run", step.epoch), mode=step.mode, policy=QUICK)
    if tiering.begin().name == "DONE":
        return tiering.confirm_done().outcome.value
    with _failing(step.fails_at):
        messages = []
        for index, rows in enumerate(tasks_of(step)):
            batch = pa.RecordBatch.from_pylist([{"id": key, "part": part} for key, part in rows], schema=SCHEMA)
            context = WriterInitContext(attempt=new_attempt_id(), split_index=index, mode=step.mode)
            messages.append(write_task(factory, [batch], context))
        return tiering.commit_messages(messages).outcome.value


@contextmanager
def _failing(point: str | None) -> Iterator[None]:
    hits: list[str] = []

    def observe(name: str) -> None:
        if name == point and not hits:
            hits.append(name)
            raise FailpointError(name)

    with observed(observe):
        yield


def announcing_syncs(say: Callable[[str], None], without: str) -> None:
    """Name the code that asks for a sync, before each. That of one site is left out, as if it had been forgotten."""
    fsync = os.fsync

    def announced(fd: Any) -> None:
        frame = sys._getframe(1)
        kind = "directory" if os.path.isdir(f"/proc/self/fd/{fd}") else "file"
        while (code := _name_of(frame)) in FOR_OTHERS and frame.f_back is not None:
            kind = FOR_OTHERS[code] or kind
            frame = frame.f_back
        site = f"{code} of a {kind}"
        if site != without:
            say(f"sync at {site}")
            fsync(fd)

    os.fsync = announced


def _name_of(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"


def main() -> None:
    """``MARKS WITHOUT FOLDER:FIRST:LAST …``: in each folder the steps from FIRST to before LAST, with ``begin N`` and
    ``ack N`` in the file MARKS."""
    marks = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def say(text: str) -> None:
        os.write(marks, f"{text}\n".encode())

    announcing_syncs(say, sys.argv[2])
    for job in sys.argv[3:]:
        folder, first, last = job.rsplit(":", 2)
        for number in range(int(first), int(last)):
            say(f"begin {number}")
            outcome = run(storage_at(Path(folder)), STEPS[number])
            say(f"ack {number} {outcome}")


if __name__ == "__main__":
    main()
