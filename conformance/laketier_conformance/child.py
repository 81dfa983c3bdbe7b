"""Another process that drives rounds on request: to be killed, to race, to watch, to stage without a catalog.

Requests and answers are JSON, one a line; standard output is kept for them alone.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from laketier.config import document
from laketier.maintenance.orphans import collect_orphans
from laketier.registry import installed_formats, load_format
from laketier.spi import (
    Conflict,
    Decision,
    LaketierError,
    NotBegun,
    Refused,
    TableNotFound,
    Watermark,
    WriteMode,
    unpack,
)
from laketier.tiering import TieringRound
from laketier_conformance import (
    child_catalog,
    child_forks,
    child_indexes,
    child_looks,
    child_tasks,
    lives,
    search_bounds,
)
from laketier_conformance.answer_types import CONTRACT, WRONG, promised, watch
from laketier_conformance.asked import say, switch_on
from laketier_conformance.contained import contained
from laketier_conformance.expect import HarnessFailed, cause_of
from laketier_conformance.harness import Harness
from laketier_conformance.host_clocks import off
from laketier_conformance.interposed.supervisor import be_supervised
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import QUICK, SCHEMA, Lake, ids_of, token
from laketier_conformance.seen import past_of, seen


def make_ready(name: str, folder: str = "") -> str | None:
    """Find out what each process for a format would find out again: the installed plugins, what their methods answer,
    and how its options are parsed. ``folder``: an empty one, where its harness has something to warm up. Returns how
    that failed."""
    installed_formats()
    for contract in CONTRACT:
        promised(contract)
    list(document(load_format(name).options_type, ""))
    warm_up = Harness.of(name).warm_up if folder else None
    try:
        if warm_up is not None:
            warm_up(Path(folder))
    except HarnessFailed as error:  # nobody calls it again
        return str(error)
    return None


def serve(name: str) -> None:
    """Answer requests for a format until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not end up among the answers
    watch(Lake(name, "", {}).plugin)  # imports the plugin before the first request
    for line in sys.stdin:
        request = json.loads(line)
        lake = Lake(name, request["warehouse"], request["options"])
        if "supervised" in request:
            be_supervised(request["supervised"], request.get("sees", "effects"))
        say(answers, answer_of(lake, request, answers))


def answer_of(lake: Lake, request: dict[str, Any], answers: TextIO = sys.stdout) -> dict[str, Any]:
    """Do what a request says, in this process, which may be in a container. ``answers``: where it tells of what comes
    before its answer."""
    WRONG.clear()
    try:
        with contained() if request.get("contained") else nullcontext():
            if (conversation := _CONVERSATIONS.get(request["do"])) is not None:
                return conversation(lake, request, answers)
            return _REQUESTS[request["do"]](lake, request)
    except LaketierError as error:
        return {"refused": _kind(error), "message": str(error), "because": _causes(error)}
    except Exception as error:  # noqa: BLE001 - the parent decides what it means
        return {"failed": WRONG[0] if WRONG else f"{type(error).__name__}: {error}", "because": _causes(error)}


def _kind(error: LaketierError) -> str:
    """The error of the contract that it is. A format may have its own below it, which says the same."""
    ours = (each.__name__ for each in type(error).__mro__ if each.__module__.startswith("laketier."))
    return next(ours)


def _causes(error: BaseException) -> list[str]:
    """What an error was raised from, as a traceback tells it; it may be its own cause."""
    told: list[str] = []
    cause: BaseException | None = error
    while cause is not None and (cause := cause_of(cause)) is not None and len(told) < 10:
        told.append(f"{type(cause).__name__}: {cause}")
    return told


def _round(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """Run a round; between staging and commit wait for the parent's word, if asked to. ``clock``: by how many
    milliseconds its clock is ahead, and to which packages. ``earlier``: an epoch that it runs before, of one task."""
    with off(*request["clock"]) if "clock" in request else nullcontext():
        if "earlier" in request:
            _run_round(lake, request | {"epoch": request["earlier"], "tasks": [ids_of(request["earlier"])]}, answers)
        return _run_round(lake, request, answers)


def _replay(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """As an engine does: of an epoch that is there it runs no task, so none syncs a folder that it has in common with
    commits."""
    return _run_round(lake, request, answers, is_replay=True)


def _run_round(lake: Lake, request: dict[str, Any], answers: TextIO, *, is_replay: bool = False) -> dict[str, Any]:
    table = lake.table(request["table"])
    mode = WriteMode(request.get("mode", "append"))
    switch_on(request)
    factory = table.factory
    name = token(request["epoch"], pipeline=request["pipeline"], fence=request.get("fence", 0))
    tiering = TieringRound(factory, token=name, mode=mode, policy=QUICK)
    is_there = tiering.begin() is Decision.DONE
    tasks = [] if is_there and is_replay else request["tasks"]
    results = [
        unpack(factory.write_result_serializer, table.stage(ids, index, factory, mode))
        for index, ids in enumerate(tasks)
    ]
    if request.get("wait"):
        say(answers, {"ready": True})
        sys.stdin.readline()
    result = tiering.commit(results)
    return {"outcome": result.outcome.name, "rows": result.rows, "conflicts": result.conflicts}


def _replace(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """A round of one task whose rows, pairs of id and name, take the place of files."""
    import pyarrow as pa

    table = lake.table(request["table"])
    switch_on(request)
    name = token(request["epoch"], pipeline=request["pipeline"])
    tiering = TieringRound(table.factory, token=name, mode=WriteMode.UPSERT, policy=QUICK)
    tiering.begin()
    ids, names = (list(column) for column in zip(*request["rows"], strict=True))
    columns = [pa.array(ids, pa.int64()), pa.array(names, pa.string()), pa.nulls(len(ids), pa.float64())]
    staged = table.stage_arrow([pa.record_batch(columns, schema=SCHEMA)], mode=WriteMode.UPSERT)
    result = tiering.commit([replace(staged, replaced=tuple(request["replaced"]))])
    return {"outcome": result.outcome.name}


def _publish(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """One bare publish of a message, without the loop, and without a pipeline for a ``batch``. ``certain``: whether its
    error says that another commit or a refusal kept it out. ``absent``: whether it says that nothing landed, for
    whatever reason."""
    table = lake.table(request["table"])
    if request.get("interrupted"):  # a process in the background may ignore it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with closing(table.committer(commit_id=request["commit"])) as committer:
            state = committer.open()
            staged = unpack(table.factory.write_result_serializer, base64.b64decode(request["message"]))
            mark = None if request.get("batch") else Watermark(token(request["epoch"]), request["commit"])
            committer.publish(state, [staged], mark)
    except Exception as error:  # noqa: BLE001 - the parent decides what it means
        certain = isinstance(error, Conflict | Refused)
        absent = certain or isinstance(error, NotBegun)
        return {"failed": f"{type(error).__name__}: {error}", "certain": certain, "absent": absent}
    return {"published": request["epoch"]}


def _rounds(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """Several epochs, one after the other."""
    say(answers, {"ready": True})
    sys.stdin.readline()
    table = lake.table(request["table"])
    outcomes = [table.append(epoch, ids, pipeline=request["pipeline"]) for epoch, ids in enumerate(request["epochs"])]
    return {"outcomes": [result.outcome.name for result in outcomes]}


def _imports(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Use an empty warehouse as the other requests do. The modules that took."""
    table = lake.create()
    table.append(0)
    return {"rows": len(table.ids), "modules": list(sys.modules)}


def _collect(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Delete all orphans that are there."""
    collected = collect_orphans(lake.storage, lake.table(request["table"]).info, grace=timedelta(0))
    return {"removed": [file.path for file in collected.removed]}


def _end(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """End all snapshots but the newest, by the format's own hand."""
    maintenance = lake.storage.maintenance(lake.table(request["table"]).info)
    lake.let_age()
    return {"removed": [file.path for file in maintenance.expire(retention=0, keep=1, delete=True).removed]}


def _discard(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Delete what some messages name. What `discard` itself raises is ``raised``."""
    table = lake.table(request["table"])
    serializer = table.factory.write_result_serializer
    results = [unpack(serializer, base64.b64decode(message)) for message in request["messages"]]
    committer = table.committer()
    try:
        committer.discard(results)
    except Exception as error:  # noqa: BLE001 - the parent decides what it means
        return {"raised": f"{type(error).__name__}: {error}"}
    finally:
        committer.close()
    return {"discarded": len(results)}


def _keep(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """What a foreign tool does to a table, by a hook of the harness."""
    hook = getattr(Harness.of(lake.format), request["hook"])
    hook(lake.storage, lake.table(request["table"]).info, *request.get("arguments", ()))
    return {"done": request["hook"]}


def _finish(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """What a reader finds in a table; then do what another request says, unless it is there and may not be repeated."""
    found = seen(lake, request["table"])
    if found == request["after"] and not request["repeats"]:
        return {"seen": found, "then": {}, "after": found}
    again = request["then"]
    if "replaced" in again:  # whoever replays the round merges with the table as it is now
        again = {**again, "replaced": Keyed.of(lake.table(request["table"])).files()}
    then = answer_of(lake, again, answers)
    return {"seen": found, "then": then, "after": seen(lake, request["table"])}


def _recover(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """What is found in a table and in its older snapshots, and what a replay of an epoch then makes of it."""
    table = lake.table(request["table"])
    try:
        seen, past = table.ids, past_of(table)
    except TableNotFound:
        seen, past = None, []
    table = child_catalog.made(lake, request)
    outcome = table.append(request["epoch"]).outcome
    return {"seen": seen, "past": past, "outcome": outcome.value, "after": table.ids}


def _each(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Several requests at once, each in a thread."""
    with ThreadPoolExecutor(len(request["requests"])) as pool:
        return {"answers": list(pool.map(partial(answer_of, lake), request["requests"]))}


_REQUESTS = {
    "each": _each,
    "publish": _publish,
    "replace": _replace,
    "publish_index": child_indexes.publish_index,
    "index": child_indexes.index,
    "drop_index": child_indexes.drop_index,
    "make": child_catalog.make,
    "fill": child_catalog.fill,
    "make_again": child_catalog.make,
    "drop": child_catalog.drop,
    "collect": _collect,
    "end": _end,
    "recover": _recover,
    "discard": _discard,
    "keep": _keep,
    "tell": child_looks.tell,
    "stage": child_tasks.stage,
    "stage_elsewhere": child_tasks.stage_elsewhere,
    "read": child_tasks.read,
    "stage_rows": child_tasks.stage_rows,
    "read_rows": child_tasks.read_rows,
    "write_much": child_tasks.write_much,
    "round_of_many": child_tasks.round_of_many,
    "read_much": child_tasks.read_much,
    "imports": _imports,
    "bounds": search_bounds.bounds,
    "live": lives.live,
    "fork": child_forks.fork,
}
_CONVERSATIONS = {
    "round": _round,
    "replay": _replay,
    "rounds": _rounds,
    "documents": child_indexes.documents,
    "create": child_catalog.create,
    "adopt": child_catalog.adopt,
    "alter": child_catalog.alter,
    "finish": _finish,
    "watch": child_looks.watch,
    "stage_slowly": child_tasks.stage_slowly,
}
"""Those that say something before their answer, and may wait for a word."""

if __name__ == "__main__":
    serve(sys.argv[1])
