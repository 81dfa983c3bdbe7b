"""What another process does to a table while something else goes on, one entry each.

To add some, add an entry: what it needs, the request to the other process, and what a reader finds after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from laketier.spi import Feature, support_of
from laketier_conformance.harness import Harness
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import Lake, Table, name_of
from laketier_conformance.operations import NAME, Request
from laketier_conformance.seen import Seen

OTHERS = 900_000
"""Their ids begin here."""
_PIPELINE = "rival"


@dataclass(frozen=True)
class Work:
    """``told``: for messages. ``ask`` makes request number n for the table as it is. ``after``: what a reader finds
    once it was answered, by what was there before. ``may_be_late``: it stands on rows or files that may be moved
    meanwhile, and is refused then."""

    told: str
    ask: Callable[[Table, int], Request]
    after: Callable[[Seen, Request], Seen]
    needs: tuple[Feature, ...] = ()
    hook: str = ""
    may_be_late: bool = False

    def is_there(self, lake: Lake, harness: Harness) -> bool:
        """Whether the format has it."""
        full = all(support_of(lake.plugin.features, feature).full for feature in self.needs)
        return full and (not self.hook or getattr(harness, self.hook) is not None)


def _round(table: Table, number: int, **more: object) -> Request:
    mark = table.watermark(_PIPELINE)
    epoch = 0 if mark is None else mark.token.epoch + 1
    return {"do": "round", "table": NAME, "pipeline": _PIPELINE, "epoch": epoch, "tasks": [[OTHERS + number]], **more}


def _upsert(table: Table, number: int) -> Request:
    """Of the table's first row; the other rows of its file are staged again."""
    keyed, first = Keyed.of(table), min(table.ids)
    rows = [[i, name] for i, name in {**keyed.beside(first), first: f"new {number}"}.items()]
    request = _round(table, number, do="replace", rows=rows, replaced=keyed.files(first))
    return {**request, "new": first}


def _delete(table: Table, _: int) -> Request:
    """Its last row, and so not all of a file."""
    return {"do": "keep", "table": NAME, "hook": "delete_rows", "arguments": [[max(table.ids)]]}


def _alter(_: Table, number: int) -> Request:
    return {"do": "alter", "table": NAME, "columns": [f"extra{number}"]}


def _changed(before: Seen, rows: list[list[object]]) -> Seen:
    assert before is not None, "a table is there before something is done to it: expected its rows, found no table"
    return {**before, "rows": rows}


def _of(request: Request) -> list[list[object]]:
    return [[i, name_of(i)] for i in request["tasks"][0]]


def _kept(before: Seen) -> list[list[object]]:
    return [] if before is None else before["rows"]


def _with(before: Seen, request: Request) -> Seen:
    return _changed(before, sorted([*_kept(before), *_of(request)], key=lambda row: int(str(row[0]))))


def _renamed(before: Seen, request: Request) -> Seen:
    names = {row[0]: row[1] for row in request["rows"]}
    return _changed(before, [[row[0], names.get(row[0], row[1])] for row in _kept(before)])


def _without(before: Seen, request: Request) -> Seen:
    gone = request["arguments"][0]
    return _changed(before, [row for row in _kept(before) if row[0] not in gone])


def _wider(before: Seen, request: Request) -> Seen:
    changed = _changed(before, _kept(before))
    return None if changed is None else {**changed, "columns": [*changed["columns"], *request["columns"]]}


WORK = (
    Work("an append", _round, _with),
    Work(
        "an overwrite",
        lambda table, number: _round(table, number, mode="overwrite"),
        lambda before, request: _changed(before, _of(request)),
        needs=(Feature.OVERWRITE,),
    ),
    Work("an upsert", _upsert, _renamed, needs=(Feature.UPSERT,), may_be_late=True),
    Work("a deletion of rows", _delete, _without, hook="delete_rows", may_be_late=True),
    Work("a new column", _alter, _wider, needs=(Feature.ADD_COLUMN,), may_be_late=True),
)
