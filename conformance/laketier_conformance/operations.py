"""What is done to a table beside an append, one entry each, for whatever comes upon it.

To add an operation, add an entry: what it needs, the request to another process, and what a reader finds after it.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from laketier.maintenance.orphans import list_orphans
from laketier.spi import AddColumn, Feature, WriteMode, unpack
from laketier_conformance import child_indexes
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import SCHEMA, Lake, Table, ids_of, name_of, token
from laketier_conformance.seen import Seen

Request = dict[str, Any]
NAME, BESIDE = "db.t", "db.t_beside"
OF_ID = "of_id"
UPSERTED = (1, 2, 3)


@dataclass(frozen=True)
class Operation:
    """``prepare`` brings the table where request number n needs it, and makes the request. ``after``: what a reader
    finds once it was answered, by what was there before and n."""

    name: str
    prepare: Callable[[Lake, int], Request]
    after: Callable[[Seen, int], Seen] = lambda before, _: before
    needs: tuple[Feature, ...] = ()
    hook: str = ""
    """The member of the harness that it takes."""
    repeats: bool = True
    """It may be asked for again after it landed."""
    again: Callable[[Lake, Request], Request] = lambda _, request: request
    """What is asked for again, of a format that may have made a part of it."""


def _made(lake: Lake, number: int) -> Table:
    """The table. With the first request it gets the rows of epoch 0."""
    if number:
        return lake.table(NAME)
    table = lake.create(name=NAME)
    table.append(0)
    return table


def _create(lake: Lake, number: int) -> Request:
    if number:
        table = lake.table(f"{NAME}{number - 1}")
        assert table.path in lake.storage.catalog().list_tables("db"), (
            f"a table that was created is listed: {table.path}"
        )
        table.append(0)
    return {"do": "make", "table": f"{NAME}{number}"}


def _overwrite(lake: Lake, number: int) -> Request:
    table = _made(lake, number)
    if number == 0:  # a format without it refuses here
        table.stage((), mode=WriteMode.OVERWRITE)
    tasks = [ids_of(number + 1, 0), ids_of(number + 1, 1)]
    return {"do": "round", "mode": "overwrite", "pipeline": "p", "epoch": number + 1, "tasks": tasks}


def _upsert(lake: Lake, number: int) -> Request:
    keyed = Keyed.of(lake.table(NAME) if number else lake.create(name=NAME, primary_key=("id",)))
    if number == 0:
        keyed.round(0, keyed.staged(dict.fromkeys(UPSERTED, "old")))
    rows = [[i, f"new {number}"] for i in UPSERTED]
    return {"do": "replace", "pipeline": "p", "epoch": number + 1, "rows": rows, "replaced": keyed.files()}


def _upsert_again(lake: Lake, request: Request) -> Request:
    """Whoever replays the round merges with the table as it is now."""
    return {**request, "replaced": Keyed.of(lake.table(NAME)).files()}


def _discard(lake: Lake, number: int) -> Request:
    """Of what never landed, beside what did and is handed over by mistake."""
    table = lake.table(NAME) if number else lake.create(name=NAME)
    factory = table.factory
    landed, first, second = (table.stage(ids_of(epoch), 0, factory) for epoch in (number, 700, 800))
    table.commit([unpack(factory.write_result_serializer, landed)], token(number))
    messages = [base64.b64encode(message).decode() for message in (first, landed, second)]
    return {"do": "discard", "messages": messages}


def _alter(lake: Lake, number: int) -> Request:
    table = _made(lake, number)
    if number == 0:  # a format without it refuses here
        lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("first", pa.int64()))])
    return {"do": "alter", "columns": [f"extra{number}"]}


def _drop(lake: Lake, number: int) -> Request:
    if number == 0:
        lake.storage.catalog().drop_table(lake.create(name="db.t_gone").path)
    table = lake.create(name=NAME)
    assert table.ids == [], "a table that was dropped, and made anew, has no rows"
    table.append(0)
    return {"do": "drop"}


def _collect(lake: Lake, number: int) -> Request:
    table = _made(lake, number)
    if number == 0:  # a format without it refuses here
        list_orphans(lake.storage, table.info, grace=timedelta(0))
    table.staged(ids_of(9))
    return {"do": "collect"}


def _index(lake: Lake, number: int) -> Request:
    table = _made(lake, number)
    indexer = lake.storage.indexer(table.info)  # a format without it refuses here
    if indexer.indexes():
        indexer.drop(OF_ID)
    table.append(number + 1)
    return {"do": "index", "name": OF_ID}


def _drop_index(lake: Lake, number: int) -> Request:
    table = _made(lake, number)
    if not lake.storage.indexer(table.info).indexes():
        child_indexes.index(lake, {"table": NAME, "name": OF_ID}, sys.stdout)
    return {"do": "drop_index", "name": OF_ID}


def _kept(hook: str) -> Callable[[Lake, int], Request]:
    def prepare(lake: Lake, number: int) -> Request:
        table = _made(lake, number)
        table.append(number + 1)
        return {"do": "keep", "hook": hook}

    return prepare


def _empty(_: Seen, __: int) -> Seen:
    return {"columns": SCHEMA.names, "rows": []}


def _with_a_column(before: Seen, number: int) -> Seen:
    assert before is not None
    return {**before, "columns": [*before["columns"], f"extra{number}"]}


def _with_other_rows(before: Seen, number: int) -> Seen:
    assert before is not None
    return {**before, "rows": [[i, name_of(i)] for split in (0, 1) for i in ids_of(number + 1, split)]}


def _with_an_index(before: Seen, _: int) -> Seen:
    assert before is not None
    ids = [row[0] for row in before["rows"]]
    return {**before, "indexes": [[OF_ID, len(ids), 0]], "found": [i for i in ids if i >= 1]}


def _without_indexes(before: Seen, _: int) -> Seen:
    assert before is not None
    return {"columns": before["columns"], "rows": before["rows"]}


def _with_new_names(before: Seen, number: int) -> Seen:
    assert before is not None
    return {**before, "rows": [[i, f"new {number}"] for i in UPSERTED]}


OPERATIONS = (
    Operation("create", _create, _empty),
    Operation("alter", _alter, _with_a_column, needs=(Feature.ADD_COLUMN,), repeats=False),
    Operation("drop", _drop, lambda _, __: None, needs=(Feature.DROP_TABLE,), repeats=False),
    Operation("overwrite", _overwrite, _with_other_rows, needs=(Feature.OVERWRITE,)),
    Operation("upsert", _upsert, _with_new_names, needs=(Feature.UPSERT,), again=_upsert_again),
    Operation("discard", _discard),
    Operation("collect", _collect, needs=(Feature.ORPHAN_COLLECTION,)),
    Operation("index", _index, _with_an_index, needs=(Feature.INDEXING,)),
    Operation("drop-index", _drop_index, _without_indexes, needs=(Feature.INDEXING,), repeats=False),
    Operation("expire", _kept("expire"), hook="expire"),
    Operation("compact", _kept("compact"), hook="compact"),
)
