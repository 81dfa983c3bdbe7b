"""A driver without an engine: rounds of the protocol, one process, killed or failed by failpoints.

It treats the protocol as an engine does: it stages, commits, acknowledges, and aborts what fails.
"""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from laketier.kit.failpoints import VARIABLE, observed
from laketier.registry import configure, open_lake
from laketier.spi import (
    Decision,
    LaketierError,
    LakeTieringFactory,
    OpenFilesSlot,
    Refused,
    ScanRequest,
    Token,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tables import prepare_table
from laketier.tiering import RetryPolicy, TieringRound, write_task
from laketier.tiering.open_files import finish_open_files
from laketier_verification.faults import mutations, work
from laketier_verification.faults.progress import Progress, follow

QUICK = RetryPolicy(first_wait_seconds=0.001, longest_wait_seconds=0.05)


def live(request: dict[str, Any]) -> dict[str, Any]:
    """One life of the driver. Returns how it ended; a killed one returns nothing.

    Keys of ``request``: ``warehouse``, ``format``, ``progress``, ``epochs``, ``rows``, and what `_run_epoch` and
    `_limit` take; ``keys``: more of the table's configuration; ``open_files``: leave files open from epoch to epoch,
    and finish them at the end; ``failpoints`` as in LAKETIER_FAILPOINTS; ``record`` to return each failpoint passed
    with its epoch; ``broken`` names one of `mutations`. Instead of epochs: ``collect`` orphans, or ``finish_by_hand``
    what the pipeline left open.
    """
    os.environ[VARIABLE] = request.get("failpoints", "")
    if "broken" in request:
        mutations.BROKEN[request["broken"]]()
    passed: list[tuple[str, int]] = []
    progress = Progress(Path(request["progress"]))
    now = -1
    slot = OpenFilesSlot() if request.get("open_files") else None

    def note(name: str) -> None:
        passed.append((name, now))

    def run_epoch(epoch: int, content: str) -> None:
        nonlocal now
        now = epoch
        _run_epoch(request, progress.run, epoch, content, slot)

    with ExitStack() as stack:
        if request.get("record"):
            stack.enter_context(observed(note))
        try:
            _limit(request)
            if request.get("collect"):
                _collect(request)
            elif request.get("finish_by_hand"):
                _finish_by_hand(request)
            else:
                follow(progress, request["epochs"], lambda epoch: _content(request, epoch), run_epoch)
                if slot is not None:
                    finish_open_files(_factory(request), slot, ending=True)
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            return {**ending(error), "passed": passed}
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)  # for the answer
    return {"outcome": "finished", "passed": passed}


def ending(error: BaseException) -> dict[str, Any]:
    """How a life ended with ``error``."""
    kind = "refused" if isinstance(error, Refused) else "failed"
    text = str(error) if isinstance(error, LaketierError) else repr(error)
    return {"outcome": kind, "error": type(error).__name__, "message": text}


def _limit(request: dict[str, Any]) -> None:
    if "files_open" in request:
        used = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1 + request["files_open"],) * 2)
    if "file_bytes" in request:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_bytes"], resource.RLIM_INFINITY))


def _content(request: dict[str, Any], epoch: int) -> str:
    return f"file {epoch} of landing {request.get('salt', 0)}"


def _lake(request: dict[str, Any]) -> Any:
    values = {"lake.format": request["format"], "lake.warehouse": request["warehouse"], "lake.table": work.TABLE}
    values |= request.get("keys", {})
    return open_lake(configure(values, environment={}))


def _factory(request: dict[str, Any]) -> LakeTieringFactory[Any]:
    lake = _lake(request)
    return lake.tiering_factory(lake.load_table())


def _collect(request: dict[str, Any]) -> None:
    from datetime import timedelta

    from laketier.maintenance.orphans import collect_orphans

    lake = _lake(request)
    collect_orphans(lake.storage, lake.storage.catalog().load_table(lake.config.table), grace=timedelta(0))


def _finish_by_hand(request: dict[str, Any]) -> None:
    """As `laketier maintain open-files --finish` does."""
    lake = _lake(request)
    left = lake.maintenance(lake.load_table()).finish_open_files([work.PIPELINE])
    if left:
        raise AssertionError(f"still open: {left}")


def _run_epoch(request: dict[str, Any], run: str, epoch: int, content: str, slot: OpenFilesSlot | None = None) -> None:
    """``tasks``: how many. ``begin`` False: the engine gives no place for a first look. ``duplicates``: each task runs
    twice, and one result is taken. ``overwrite``: the epoch that replaces the table; ``overwrite_by``: the write mode
    that it does it with. ``fence``, ``pipeline``. ``slot``: where the first task leaves files open."""
    lake = _lake(request)
    info = prepare_table(lake, work.SCHEMA)
    factory = lake.storage.tiering_factory(info)
    replacing = request.get("overwrite") == epoch
    mode = WriteMode(request.get("overwrite_by", "overwrite")) if replacing else WriteMode.APPEND
    token = Token(request.get("pipeline", work.PIPELINE), run, epoch, request.get("fence", 0), content)
    tiering = TieringRound(factory, token=token, mode=mode, policy=QUICK)
    ids = work.ids_of(epoch, request["rows"], request.get("salt", 0))
    tasks = request.get("tasks", 2)
    messages: list[bytes] = []
    try:
        if request.get("begin", True) and tiering.begin() is Decision.DONE:
            tiering.confirm_done()
            return
        replaced: list[str] = []
        if mode is WriteMode.UPSERT:
            plan = lake.storage.source(info).plan(ScanRequest(snapshot_id=tiering.base_snapshot))
            replaced = [name for split in plan.splits for name in split.files]
        for index in range(tasks):
            copies = []
            for _ in range(2 if request.get("duplicates") else 1):
                context = WriterInitContext(
                    attempt=new_attempt_id(), split_index=index, mode=mode, open_files=slot if index == 0 else None
                )
                rows = work.batch_of(ids[index::tasks], request.get("width", 8))
                copies.append(write_task(factory, [rows], context, replaced if index == 0 else ()))
            messages.append(copies[-1])
    except BaseException:
        tiering.abort_messages(messages, commit_was_called=False)
        raise
    try:
        tiering.commit_messages(messages)
    except BaseException:
        tiering.abort_messages(messages, commit_was_called=True)
        raise
