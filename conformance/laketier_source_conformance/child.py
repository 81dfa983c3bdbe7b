"""The other end of `laketier_source_conformance.children`. Requests and answers are JSON, one a line."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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
from laketier_conformance.started import restore
from laketier_source_conformance.own_process import kept_process, of_the_process, put_variables
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


@contextmanager
def _opened(request: dict[str, Any]) -> Iterator[CheckedLog]:
    """The log, by a driver of its own, and its end."""
    source = open_log_source(request["kind"], request["options"], name="tested", origin=ORIGIN)
    try:
        log = CheckedLog.of(source.open(request["table"], request["table_options"]), request["table"])
        try:
            yield log
        finally:
            log.close()
    finally:
        source.close()


def _read_range(request: dict[str, Any]) -> dict[str, Any]:
    """Plan a range and read it, by a driver that knows its text alone."""
    with _opened(request) as log:
        ends = (LogOffsets.from_text(request[end]) for end in ("start", "end"))
        read = read_range(log, LogRange(*ends))
    Path(request["to"]).write_bytes(pickle.dumps(read))
    return {"rows": len(read.rows)}


def _live(request: dict[str, Any]) -> dict[str, Any]:
    """Open, read and close a log in a process that has nothing of its source, and the variables that the run began
    with. What of it changed, and which variables were put."""
    restore(request["environment"], {})
    with kept_process(), put_variables() as put:
        before = of_the_process()
        with _opened(request) as log:
            read_range(log)
        found = of_the_process()
    changed = {what: [repr(before[what]), repr(found[what])] for what in before if found[what] != before[what]}
    return {"changed": changed, "put": sorted(put)}


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
    with _opened(request) as log:
        made = run_rounds(log, config_of(request["format"], request["warehouse"]), settings, request["most"])
    return {"rounds": made}


def _stamp(request: dict[str, Any]) -> dict[str, Any]:
    """The stamp of a position, by a driver that knows nothing else of the table."""
    with _opened(request) as log:
        return {"stamp": log.stamp(LogOffsets.from_text(request["position"]))}


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
    "live": _live,
}

if __name__ == "__main__":
    serve()
