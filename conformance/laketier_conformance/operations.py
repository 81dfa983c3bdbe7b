"""What is done to a table beside an append, one entry each, for whatever comes upon it.

To add an operation, add an entry: what it needs, the request to another process, and what a reader finds after it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from laketier.maintenance.orphans import list_orphans
from laketier.spi import AddColumn, DeliveryLevel, Feature, FeatureNotSupported, LaketierError, WriteMode, unpack
from laketier_conformance import child_indexes
from laketier_conformance.child import answer_of
from laketier_conformance.expect import NotShown, expect
from laketier_conformance.found_after import (
    OF_ID,
    UPSERTED,
    empty,
    of_two_files,
    with_a_column,
    with_an_index,
    with_more_rows,
    with_new_names,
    with_other_rows,
    without_indexes,
)
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_conformance.lying import LyingFiles
from laketier_conformance.seen import Seen, seen

Request = dict[str, Any]
Answer = dict[str, Any]
NAME, BESIDE = "db.t", "db.t_beside"


class NoExpiry(NotShown):
    """The format leaves it to others."""

    def __init__(self) -> None:
        Exception.__init__(self, "expiry: the format ends no snapshots itself")


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
    takes_away: bool = False
    """It deletes files: what is listed is looked at after each time."""


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


def _adopt(lake: Lake, number: int) -> Request:
    """Of a folder of its own. A format that takes none refuses here."""
    lying = LyingFiles.of(lake, f"lying{number}")
    lying.put("a.parquet", ids_of(0))
    lying.put("b.parquet", ids_of(1))
    return {"do": "adopt", "table": lying.name}


def _append(lake: Lake, number: int) -> Request:
    _made(lake, number)
    return {"do": "round", "pipeline": "p", "epoch": number + 1, "tasks": [ids_of(number + 1)]}


def _replay(lake: Lake, number: int) -> Request:
    _made(lake, number)
    return {"do": "round", "pipeline": "p", "epoch": 0, "tasks": [ids_of(0)]}


def _create_again(lake: Lake, number: int) -> Request:
    _made(lake, number)
    return {"do": "make_again"}


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


def _expiry(lake: Lake, number: int) -> Request:
    """Two snapshots more, of which the older one can end."""
    table = _made(lake, number)
    if number == 0:  # a format without one of these refuses here
        table.stage((), mode=WriteMode.OVERWRITE)
        maintenance = lake.storage.maintenance(table.info)
        try:
            maintenance.expire(retention=0, keep=1, delete=False)
        except FeatureNotSupported as refusal:
            raise NoExpiry from refusal
    for epoch in (2 * number + 1, 2 * number + 2):
        table.round(token(epoch), [ids_of(epoch)], WriteMode.OVERWRITE)
    return {"do": "end"}


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
        child_indexes.index(lake, {"table": NAME, "name": OF_ID})
    return {"do": "drop_index", "name": OF_ID}


def _kept(hook: str) -> Callable[[Lake, int], Request]:
    def prepare(lake: Lake, number: int) -> Request:
        table = _made(lake, number)
        table.append(number + 1)
        return {"do": "keep", "hook": hook}

    return prepare


OPERATIONS = (
    Operation("create", _create, empty),
    Operation("alter", _alter, with_a_column, needs=(Feature.ADD_COLUMN,), repeats=False),
    Operation("drop", _drop, lambda _, __: None, needs=(Feature.DROP_TABLE,), repeats=False),
    Operation("adopt", _adopt, of_two_files, needs=(Feature.ADOPTION,)),
    Operation("overwrite", _overwrite, with_other_rows, needs=(Feature.OVERWRITE,)),
    Operation("upsert", _upsert, with_new_names, needs=(Feature.UPSERT,), again=_upsert_again),
    Operation("discard", _discard, takes_away=True),
    Operation("collect", _collect, needs=(Feature.ORPHAN_COLLECTION,), takes_away=True),
    Operation("index", _index, with_an_index, needs=(Feature.INDEXING,)),
    Operation("drop-index", _drop_index, without_indexes, needs=(Feature.INDEXING,), repeats=False),
    Operation("expire", _kept("expire"), hook="expire", takes_away=True),
    Operation("compact", _kept("compact"), hook="compact", takes_away=True),
)

EXPIRY = Operation("expiry", _expiry, needs=(Feature.ORPHAN_COLLECTION, Feature.OVERWRITE), takes_away=True)
"""By the format's own hand, where it has one: for those that look at what it leaves."""

APPENDS = (
    Operation("append", _append, with_more_rows),
    Operation("replay", _replay),
    Operation("create-again", _create_again),
)
"""What other tests do at length, for those that look at each operation alike."""


def went_well(answer: Answer | None) -> bool:
    """Whether a request was done."""
    return answer is not None and not {"failed", "refused", "raised"} & answer.keys()


@dataclass(frozen=True)
class Asked:
    """One request, and what a reader finds before and after it."""

    operation: Operation
    lake: Lake
    request: Request
    before: Seen
    after: Seen

    @classmethod
    def of(cls, operation: Operation, lake: Lake, number: int) -> Asked:
        """Number ``number``: the table is brought where it needs it."""
        request = {"table": NAME, **operation.prepare(lake, number)}
        before = seen(lake, request["table"])
        return cls(operation, lake, request, before, operation.after(before, number))

    @property
    def seen(self) -> Seen:
        """What a reader finds now."""
        return seen(self.lake, self.request["table"])

    @property
    def again(self) -> Request:
        """The request of whoever does it again."""
        exactly_once = self.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE
        return self.request if exactly_once else self.operation.again(self.lake, self.request)

    def judge_all(self, told: str, answer: Answer | None) -> None:
        """What is there after the request, and once it was made again in this process, where it may be."""
        try:
            found = self.seen
        except LaketierError as error:
            pytest.fail(f"{told}: the table can't be read: {error}")
        said = (answer or {}).get("refused")
        assert found is None or said != "TableNotFound", f"{told}: it ended in {said}, and the table is there: {answer}"
        self.judge_both(told, answer, found)

    def judge_both(self, told: str, answer: Answer | None, found: Seen) -> None:
        """The same, of what was found after the request."""
        self.judge(told, went_well(answer), found)
        if self.operation.repeats or found != self.after:
            self.judge_again(told, found, answer_of(self.lake, self.again), self.seen)

    def judge(self, told: str, answered: bool, found: Seen) -> None:
        """What is there after the request."""
        if answered:
            expect(found, self.after, f"{told}: it was answered, and then a reader finds")
        elif self.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE:
            assert found in (self.before, self.after), (
                f"{told}: a part is there: expected {_shortly(self.before)} as before, or {_shortly(self.after)}, "
                f"found {_shortly(found)}"
            )

    def judge_again(self, told: str, found: Seen, answer: Answer, then: Seen) -> None:
        """What is there once the same request was made again."""
        told = f"{told}, and asked for again"
        assert went_well(answer), f"{told}: the answer is {answer}"
        if "outcome" in answer and self.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE:
            outcome = "ALREADY_THERE" if found == self.after else "PUBLISHED"
            expect(answer["outcome"], outcome, f"{told}: the outcome of the round")
        expect(then, self.after, f"{told}: a reader finds")


def _shortly(found: Seen) -> str:
    if found is None:
        return "no table"
    return f"{len(found['rows'])} rows such as {found['rows'][:1]} in columns {found['columns']}"
