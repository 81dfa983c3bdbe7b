"""What a reader finds after an operation, by what was there before and the number of the request."""

from __future__ import annotations

from typing import Any

from laketier_conformance.lake import SCHEMA, ids_of, name_of
from laketier_conformance.seen import Seen

OF_ID = "of_id"
UPSERTED = (1, 2, 3)


def empty(_: Seen, __: int) -> Seen:
    """A new table."""
    return {"columns": SCHEMA.names, "rows": []}


def of_two_files(_: Seen, __: int) -> Seen:
    """A table of files that lay there."""
    return {"columns": SCHEMA.names, "rows": [[i, name_of(i)] for epoch in (0, 1) for i in ids_of(epoch)]}


def there(before: Seen) -> dict[str, Any]:
    """The table, of which something is asked."""
    assert before is not None, "a table is there before something is done to it: expected its rows, found no table"
    return before


def with_a_column(before: Seen, number: int) -> Seen:
    """It has one more."""
    before = there(before)
    return {**before, "columns": [*before["columns"], f"extra{number}"]}


def with_other_rows(before: Seen, number: int) -> Seen:
    """They are those of two tasks."""
    return {**there(before), "rows": [[i, name_of(i)] for split in (0, 1) for i in ids_of(number + 1, split)]}


def with_more_rows(before: Seen, number: int) -> Seen:
    """Those of an epoch came."""
    before = there(before)
    return {**before, "rows": before["rows"] + [[i, name_of(i)] for i in ids_of(number + 1)]}


def with_an_index(before: Seen, _: int) -> Seen:
    """It covers all rows, and finds them."""
    before = there(before)
    ids = [row[0] for row in before["rows"]]
    return {**before, "indexes": [[OF_ID, len(ids), 0]], "found": [i for i in ids if i >= 1]}


def without_indexes(before: Seen, _: int) -> Seen:
    """Its rows are as they were."""
    before = there(before)
    return {"columns": before["columns"], "rows": before["rows"]}


def with_new_names(before: Seen, number: int) -> Seen:
    """Of the rows that were upserted."""
    return {**there(before), "rows": [[i, f"new {number}"] for i in UPSERTED]}
