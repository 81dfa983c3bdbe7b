"""What older metadata files tell of a watermark that properties and snapshots of today say too little of. Driver.

Metadata files of before are retained for a while, a hundred by default, and hold the properties and the snapshots of
their time. They are read only where snapshots have expired: otherwise the history itself tells. Such a file is never
written again, may have megabytes, and each round of a pipeline that rests asks them: a process reads each once.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from laketier.spi import COLLECTOR, CorruptTable, RolledBack, Watermark
from laketier_iceberg.history import WATERMARK, History, Link, carried, rolled_back
from laketier_iceberg.stored import DAMAGE, document_at

if TYPE_CHECKING:
    from pyiceberg.table import Table

T = TypeVar("T")

_REQUESTS = 16
"""How many of them are read at a time."""
_KEPT = 16_384
"""Answers that a process keeps: those of a hundred files for more than a hundred pipelines."""


class _Says(Enum):
    """What a metadata file says of the snapshot that carried a watermark."""

    GONE = "it is gone, or damaged"
    BEFORE = "it is of before that snapshot"
    CARRIED = "that snapshot is part of the history"
    ELSEWHERE = "it is no part of the history"
    UNKNOWN = "that snapshot has expired, and others as old as it are there"
    ALL_NEWER = "all snapshots as old as that one have expired"


def refuse_rolled_back(table: Table, pipeline: str, watermark: Watermark) -> None:
    """Raise `RolledBack` where the newest metadata file that can say it says that the snapshot of ``watermark`` was no
    part of the history: main was set back, others went on, and what came in between has expired since."""
    history = History(table.metadata)
    snapshot_id, sequence = watermark.snapshot_id, history.sequence(pipeline)
    if pipeline == COLLECTOR or snapshot_id is None or history.carries(snapshot_id, sequence) is not None:
        return

    def says(document: Mapping[str, Any]) -> _Says:
        return _said(document, snapshot_id, sequence)

    question, older = (snapshot_id, sequence), _older(table)
    if sequence is not None and older:
        # Snapshots expire, and those that come are newer. So where the oldest file has none as old as that one, no file
        # has; and where some have, the newest of these is found by halves.
        def tells(file: str) -> bool:
            return next(_answers(table, [file], question, says))[1] is not _Says.ALL_NEWER

        known = [_answered.get(_key(table, file, question), _Says.GONE) for file in older]
        first = next((at + 1 for at in reversed(range(len(known))) if known[at] is _Says.ALL_NEWER), 0)
        last = next((at for at, said in enumerate(known) if said not in (_Says.ALL_NEWER, _Says.GONE)), len(older))
        if last == len(older) and not tells(older[-1]):
            return
        older = older[bisect.bisect_left(older, True, min(first, last), last, key=tells) :]
    for _, said in _answers(table, older, question, says):
        if said is _Says.ELSEWHERE:
            raise rolled_back(watermark, pipeline)
        if said in (_Says.CARRIED, _Says.BEFORE):
            return


def _said(document: Mapping[str, Any], snapshot_id: int, sequence: int | None) -> _Says:
    """Looks at a few fields alone: pyiceberg's parsing of thousands of snapshots takes many times longer."""
    try:
        last = int(document.get("last-sequence-number", 0))
        links = {
            int(each["snapshot-id"]): Link(
                int(each["snapshot-id"]), each.get("parent-snapshot-id"), each.get("sequence-number")
            )
            for each in document["snapshots"]
        }
        if sequence is None and snapshot_id not in links:
            return _Says.GONE  # perhaps of before the snapshot
        if sequence is not None and last < sequence:  # one of version 1 counts none
            return _Says.BEFORE
        if sequence is not None and all((each.sequence or 0) > sequence for each in links.values()):
            return _Says.ALL_NEWER if links else _Says.ELSEWHERE
        found = carried(links, document.get("current-snapshot-id"), snapshot_id, sequence)
    except (KeyError, TypeError, ValueError):
        return _Says.GONE
    return _Says.UNKNOWN if found is None else _Says.CARRIED if found else _Says.ELSEWHERE


def refuse_erased(table: Table, pipeline: str) -> None:
    """Raise `RolledBack` where the properties and the retained snapshots say nothing of ``pipeline``, and an older
    metadata file has its watermark."""
    metadata = table.metadata
    there = {snapshot.sequence_number for snapshot in metadata.snapshots}
    if pipeline == COLLECTOR or all(number in there for number in range(1, metadata.next_sequence_number())):
        return
    key = WATERMARK + pipeline
    answers = _answers(table, _older(table), key, lambda document: _properties(document).get(key))
    found = next(((file, text) for file, text in answers if text is not None), None)
    if found is None:
        return
    file, text = found
    try:
        watermark = Watermark.from_json(text)
    except CorruptTable:
        watermark = None
    if watermark is not None and watermark.forgotten:
        return
    told = "a watermark" if watermark is None else f"epoch {watermark.token.epoch}"
    raise RolledBack(
        f"an older metadata file of the table holds {told} of the pipeline, which is gone from the properties",
        where=f"pipeline {pipeline!r}",
        why=f"another program removed {key}, perhaps with all properties that it does not know, and the snapshots "
        f"that told of it have expired; {file} has it",
        fix="Set that property again as this file has it, or find out which epoch the table's rows end with and run "
        "`laketier pipeline adopt`. If none of its rows are there, run `laketier pipeline forget`.",
    )


def _older(table: Table) -> list[str]:
    """The locations of the older metadata files, the newest first."""
    return [entry.metadata_file for entry in reversed(table.metadata.metadata_log)]


_answered: OrderedDict[tuple[Hashable, ...], Any] = OrderedDict()
_lock = threading.Lock()


def _answers(
    table: Table, files: Iterable[str], question: Hashable, answer: Callable[[Mapping[str, Any]], T]
) -> Iterator[tuple[str, T]]:
    """What each of ``files`` says to a question, in their order: ``answer`` of its content. Nothing is in one that is
    gone, or that is no such file any more: nothing else needs it."""
    options = table.io.properties

    def answered(file: str) -> T:
        key = _key(table, file, question)
        with _lock:
            if key in _answered:
                _answered.move_to_end(key)
                known: T = _answered[key]
                return known
        found = answer(_document(options, file))
        with _lock:
            _answered[key] = found
            while len(_answered) > _KEPT:
                _answered.popitem(last=False)
        return found

    left, size = iter(files), 1  # mostly the first one tells
    with ThreadPoolExecutor(_REQUESTS) as pool:
        while some := list(itertools.islice(left, size)):
            yield from zip(some, pool.map(answered, some), strict=True)
            size = _REQUESTS


def _key(table: Table, file: str, question: Hashable) -> tuple[Hashable, ...]:
    return table.metadata.table_uuid, file, question


def _document(options: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    try:
        return document_at(options, file)
    except (FileNotFoundError, *DAMAGE):
        return {}


def _properties(document: Mapping[str, Any]) -> Mapping[str, str]:
    found = document.get("properties")
    return found if isinstance(found, dict) else {}
