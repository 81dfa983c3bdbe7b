"""The other end of `laketier_source_conformance.children`. Requests and answers are JSON, one a line."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.kit.failpoints import observed
from laketier.registry import open_log_source
from laketier.rounds import LogRoundSettings, OnBadRecordPolicy
from laketier.rounds.checked_log import CheckedLog
from laketier.spi import LogOffsets, LogRange
from laketier_conformance.asked import say, switch_on
from laketier_conformance.host_clocks import off
from laketier_conformance.interposed.supervisor import be_supervised
from laketier_source_conformance.reads import each, read_range, read_splits
from laketier_source_conformance.system import ORIGIN
from laketier_source_conformance.tiered import config_of, run_rounds


def serve() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not end up among the answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            told = _DO[request["do"]](request)
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            told = {"failed": type(error).__name__, "message": str(error)[:1000]}
        say(answers, told)


def _read(request: dict[str, Any]) -> dict[str, Any]:
    log, splits = pickle.loads(Path(request["task"]).read_bytes())  # noqa: S301 - of the process that asks
    if "supervised" in request:
        be_supervised(request["supervised"], request["sees"])
    with off(request["ahead"], request["packages"]) if "ahead" in request else nullcontext():
        read = read_splits(log, splits)
    Path(request["to"]).write_bytes(pickle.dumps(read))
    return {"rows": len(read.rows), "modules": list(sys.modules)}


def _read_range(request: dict[str, Any]) -> dict[str, Any]:
    """Plan a range and read it, by a driver that knows its text alone."""
    source = open_log_source(request["kind"], request["options"], name="tested", origin=ORIGIN)
    try:
        log = CheckedLog.of(source.open(request["table"], request["table_options"]), request["table"])
        try:
            ends = (LogOffsets.from_text(request[end]) for end in ("start", "end"))
            read = read_range(log, LogRange(*ends))
        finally:
            log.close()
    finally:
        source.close()
    Path(request["to"]).write_bytes(pickle.dumps(read))
    return {"rows": len(read.rows)}


def _count(request: dict[str, Any]) -> dict[str, Any]:
    """Rows of splits, of which none is kept, and by how many bytes the process grew."""
    log, splits = pickle.loads(Path(request["task"]).read_bytes())  # noqa: S301 - of the process that asks
    rows = largest = 0
    before = _peak()
    for split in splits:
        for batch in each(log.read(split)):
            rows += batch.num_rows
            largest = max(largest, batch.num_rows)
    return {"rows": rows, "largest": largest, "grown": _peak() - before}


_BEGUN: list[Iterator[pa.RecordBatch]] = []
"""What is left of reads that were begun."""


def _begin(request: dict[str, Any]) -> dict[str, Any]:
    """Read the first batch of some splits."""
    log, splits = pickle.loads(Path(request["task"]).read_bytes())  # noqa: S301 - of the process that asks
    reads = each(chain.from_iterable([log.read(split) for split in splits]))
    first = sum(batch.num_rows for batch in islice(reads, 1))
    _BEGUN.append(reads)
    return {"rows": first}


def _go_on(request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    return {"rows": sum(batch.num_rows for batch in _BEGUN.pop())}


def _peak() -> int:
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _rounds(request: dict[str, Any]) -> dict[str, Any]:
    """Rounds of a table by a driver of its own, which may be killed in one."""
    switch_on(request)
    settings = LogRoundSettings(most=request["offsets"])
    if request["dead_letters"]:
        settings = LogRoundSettings(most=request["offsets"], on_bad_record=OnBadRecordPolicy.DEAD_LETTER)
    source = open_log_source(request["kind"], request["options"], name="tested", origin=ORIGIN)
    try:
        log = CheckedLog.of(source.open(request["table"], request["table_options"]), request["table"])
        try:
            made = run_rounds(log, config_of(request["format"], request["warehouse"]), settings, request["most"])
        finally:
            log.close()
    finally:
        source.close()
    return {"rounds": made}


def _stamp(request: dict[str, Any]) -> dict[str, Any]:
    """The stamp of a position, by a driver that knows nothing else of the table."""
    source = open_log_source(request["kind"], request["options"], name="tested", origin=ORIGIN)
    try:
        log = source.open(request["table"], request["table_options"])
        try:
            return {"stamp": log.stamp(LogOffsets.from_text(request["position"]))}
        finally:
            log.close()
    finally:
        source.close()


def _points(request: dict[str, Any]) -> dict[str, Any]:
    """The failpoints that these rounds pass."""
    passed: list[str] = []
    with observed(passed.append):
        _rounds(request)
    return {"points": list(dict.fromkeys(passed))}


_DO = {
    "read": _read,
    "begin": _begin,
    "go_on": _go_on,
    "count": _count,
    "rounds": _rounds,
    "points": _points,
    "stamp": _stamp,
    "range": _read_range,
}

if __name__ == "__main__":
    serve()
