"""Requests to another process that do the work of an executor: with what came as bytes, or with very many rows."""

from __future__ import annotations

import base64
import os
import pickle
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TextIO

import pyarrow as pa

from laketier.spi import IncompatibleData, WriterInitContext, new_attempt_id, unpack
from laketier.tiering import write_task
from laketier_conformance.asked import say
from laketier_conformance.lake import Lake, batch, token


def stage(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Stage with a factory that came as bytes, and tell what was opened and imported meanwhile."""
    opened: list[tuple[str, str]] = []

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str):
            mode, flags = arguments[1], arguments[2]
            reads = (mode is None and not flags & (os.O_WRONLY | os.O_RDWR)) or (mode is not None and "r" in str(mode))
            opened.append((arguments[0], "read" if reads else "write"))

    sys.addaudithook(audit)
    os.chdir(os.path.abspath(os.sep))  # executors run in folders of their own
    factory = pickle.loads(base64.b64decode(request["factory"]))  # noqa: S301 - as Spark does
    message = write_task(factory, [batch(request["ids"])], WriterInitContext(attempt=new_attempt_id()))
    seen = list(opened)
    return {"message": base64.b64encode(message).decode(), "opened": seen, "modules": sorted(sys.modules)}


def stage_elsewhere(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Stage as a host does whose folder for ``temporary`` files is another one, which it stays. The columns are in
    another order, and a batch before them does not fit."""
    os.environ["TMPDIR"], tempfile.tempdir = request["temporary"], None
    os.chdir(os.path.abspath(os.sep))
    factory = pickle.loads(base64.b64decode(request["factory"]))  # noqa: S301 - as Spark does
    rows = batch(request["ids"])
    rows = rows.select(rows.schema.names[::-1])
    with factory.create_writer(WriterInitContext(attempt=new_attempt_id())) as other, suppress(IncompatibleData):
        other.write(rows.append_column("more", rows["id"]))
        other.complete()
        return {"took": "a column that the table does not have"}
    other.abort()
    message = write_task(factory, [rows], WriterInitContext(attempt=new_attempt_id()))
    return {"staged": base64.b64encode(message).decode()}


def stand_elsewhere() -> None:
    """In a folder that is deep, and has nothing that anybody would read: above the root is the root, so from there a
    path that leads upwards from a folder of the driver's would arrive all the same."""
    deep = os.path.join(pa.get_include(), "arrow", "compute")
    os.chdir(deep if os.path.isdir(deep) else os.path.abspath(os.sep))


def read(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """Read one split with a source and a split that came as bytes."""
    stand_elsewhere()
    source = pickle.loads(base64.b64decode(request["source"]))  # noqa: S301 - as Spark does
    schema = pickle.loads(base64.b64decode(request["schema"]))  # noqa: S301 - as Spark does
    split = unpack(source.split_serializer, base64.b64decode(request["split"]))
    return {"ids": [value for rows in source.read(split, schema) for value in rows.column("id").to_pylist()]}


def stage_rows(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """A task of an engine that keeps its workers: rows of any schema. With ``fails`` what feeds it fails after them."""
    factory = pickle.loads(base64.b64decode(request["factory"]))  # noqa: S301 - as Spark does
    with pa.ipc.open_stream(base64.b64decode(request["rows"])) as stream:
        rows = list(stream)

    def fed() -> Iterator[pa.RecordBatch]:
        yield from rows
        if request["fails"]:
            raise _Fails

    try:
        message = write_task(factory, fed(), WriterInitContext(attempt=new_attempt_id()))
    except _Fails:
        return {"failed": True}
    return {"staged": base64.b64encode(message).decode()}


def stage_slowly(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """A task that waits for the parent's word after each batch but the last."""
    factory = pickle.loads(base64.b64decode(request["factory"]))  # noqa: S301 - as Spark does

    def fed() -> Iterator[pa.RecordBatch]:
        for number, ids in enumerate(request["batches"]):
            if number:
                say(answers, {"ready": True})
                sys.stdin.readline()
            yield batch(ids)

    message = write_task(factory, fed(), WriterInitContext(attempt=new_attempt_id()))
    return {"staged": base64.b64encode(message).decode()}


class _Fails(Exception):
    """As a query does that a task runs."""


def read_rows(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    """The rows of splits, with a source that came as bytes."""
    source = pickle.loads(base64.b64decode(request["source"]))  # noqa: S301 - as Spark does
    schema = pickle.loads(base64.b64decode(request["schema"]))  # noqa: S301 - as Spark does
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for packed in request["splits"]:
            for rows in source.read(unpack(source.split_serializer, base64.b64decode(packed)), schema):
                stream.write_batch(rows)
    return {"rows": base64.b64encode(sink.getvalue()).decode()}


def write_much(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """One large task, and by how many bytes this process grew."""
    from laketier_conformance import weigh  # it needs `resource`, which not every system has

    return {"grown": weigh.write(lake.table(request["table"]))}


def round_of_many(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """A round of one task with many rows."""
    from laketier_conformance import weigh  # it needs `resource`, which not every system has

    result = lake.table(request["table"]).publish_arrow(weigh.in_batches(weigh.MANY), token(request["epoch"]))
    return {"outcome": result.outcome.value, "rows": result.rows}


def read_much(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """All rows of a large table, and by how many bytes this process grew."""
    from laketier_conformance import weigh  # it needs `resource`, which not every system has

    rows, grown = weigh.read(lake.table(request["table"]))
    return {"rows": rows, "grown": grown}
