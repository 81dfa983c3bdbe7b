"""What others do to a table, by the hooks of the harness: each is seen to have done it, so that what follows from it is
the format's own doing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

import pyarrow as pa

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import Feature, Leaf, Op, ScanRequest
from laketier_conformance.expect import HarnessFailed, expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import SCHEMA, Table

_SNAPSHOTS = 100
CHANGED = "changed by others"
"""What they call rows."""


def roll_back(table: Table, harness: Harness, snapshot_id: int | None, rows: Collection[int]) -> None:
    """Take the table back to a snapshot, which has rows with these ids."""
    assert harness.roll_back is not None
    harness.roll_back(table.lake.storage, table.info, snapshot_id)
    expect(table.ids, sorted(rows), f"rows after the harness's roll_back took a table back to snapshot {snapshot_id}")


def expire(table: Table, harness: Harness, version: int) -> int:
    """Forget all versions but the newest, so also this one. The first that can still be read."""
    assert harness.expire is not None
    known = followed_by(table)
    harness.expire(table.lake.storage, table.info)
    earliest = table.changes.versions().earliest
    assert version < earliest, f"the harness's expire expired nothing: versions from {earliest} on can be read"
    expect(followed_by(table), known, "the identity by which a log knows a table, after old versions expired")
    return earliest


def followed_by(table: Table) -> str:
    """The identity by which who follows a table knows it: another one is another table, which is read anew."""
    return table.changes.versions().lasting_id or table.info.table_uuid


def compact(table: Table, harness: Harness) -> None:
    """Put the rows of small files into fewer ones."""
    assert harness.compact is not None
    before = _splits(table)
    harness.compact(table.lake.storage, table.info)
    after = _splits(table)
    assert after < before, f"the harness's compact compacted nothing: {before} splits became {after}"


def delete(table: Table, harness: Harness, ids: Collection[int]) -> None:
    """Delete the rows with these ids."""
    assert harness.delete_rows is not None
    stay = sorted(set(table.ids).difference(ids))
    harness.delete_rows(table.lake.storage, table.info, sorted(ids))
    expect(table.ids, stay, f"rows after the harness's delete_rows deleted those with the ids {sorted(ids)}")


def update(table: Table, harness: Harness, ids: Collection[int], column: str, text: str) -> None:
    """Set a column to a text in the rows with these ids."""
    assert harness.update_rows is not None
    harness.update_rows(table.lake.storage, table.info, sorted(ids), column, text)
    rows = table.read(columns=("id", column)).to_pylist()
    found = sorted(row["id"] for row in rows if row[column] == text)
    expect(found, sorted(ids), f"rows whose column {column} the harness's update_rows set to {text!r}")


def takes_partitions(work: Callable[[], object]) -> bool:
    """Whether hooks did this to a table with partitions. One that can't raises `NotImplementedError`."""
    try:
        work()
    except HarnessFailed as error:
        if isinstance(error.__cause__, NotImplementedError):
            return False
        raise
    return True


def collect(table: Table) -> None:
    """Delete what no snapshot needs, however young it is."""
    table.lake.let_age()
    collect_orphans(table.lake.storage, table.info, grace=timedelta(0))


def left_for(hook: str, table: Table) -> int | None:
    """How much there is for ``expire`` or ``compact`` to do; None where the format does not tell."""
    if hook == "compact":
        return _splits(table)
    if table.lake.declares(Feature.INCREMENTAL_READ):
        return -table.changes.versions().earliest
    return len(table.history.snapshots(_SNAPSHOTS)) if table.lake.declares(Feature.HISTORY) else None


def is_less(after: int | None, before: int | None) -> bool:
    """Whether the hook did what there was for it to do."""
    return after is not None and before is not None and after < before


def _splits(table: Table) -> int:
    return len(table.source.plan(ScanRequest()).splits)


# -- rows that are told by their names ------------------------------------------------------------------------------


def has_names(table: Table, names: Mapping[int, str | None], sentence: str) -> None:
    """Its rows are those with these ids and names, each once."""
    rows = table.read(columns=("id", "name")).to_pylist()
    ids = sorted(row["id"] for row in rows)
    expect(ids, sorted(set(ids)), f"{sentence}: each id is there once")
    expect({row["id"]: row["name"] for row in rows}, names, sentence)


def ids_named(table: Table, name: str | None) -> list[int]:
    """The ids of the rows that a filter by the name finds."""
    found = table.read(columns=("id", "name"), filters=(Leaf("name", Op.EQ, name),))
    return sorted(found["id"].to_pylist())


def rows_named(ids: Sequence[int], names: Sequence[str | None], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """Rows of a schema that begins with an id and a name; nulls in its other columns."""
    more = [pa.nulls(len(ids), each.type) for each in list(schema)[2:]]
    columns = [pa.array(ids, schema.field(0).type), pa.array(names, pa.string()), *more]
    return pa.record_batch(columns, schema=schema)
