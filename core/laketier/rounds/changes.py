"""The rules of a log of changes: per key the newest change wins, and deletes remove. Pure Arrow, no table and no log.

Keys are compared as Arrow compares values, so they may be of any type but floats, whose zeros and NaNs have no one
notion of equality, and nested ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.kit import conform
from laketier.kit.views import only, schema_without_views
from laketier.spi import ConfigError, IncompatibleData, UnstorableRows, UnsupportedType

UPSERTS = ("+I", "+U")
OUTDATED = "-U"
"""The change type of a row's state before an update. Its key's next change says what it is now."""
DELETE = "-D"
CHANGE_TYPES = (*UPSERTS, OUTDATED, DELETE)

_KNOWN = pa.array(CHANGE_TYPES)
_PENDING_ROWS = 65_536
_PENDING_BYTES = 32 * 1024 * 1024
_DELETED = "laketier deleted"
_ROW = "laketier row"
_COMPARED = 1_000


def check_key(schema: pa.Schema, key: Sequence[str], *, where: str | None = None) -> None:
    """Raise `ConfigError` for a key that is empty or no columns, and `UnsupportedType` for one that can't be
    compared."""
    missing = [name for name in key if name not in schema.names]
    if missing or not key:
        raise ConfigError(
            f"the primary key has no column {missing[0]!r}" if missing else "the primary key is empty",
            where=where,
            fix=f"The columns are {', '.join(schema.names)}.",
        )
    for name in key:
        kind = schema.field(name).type
        if pt.is_floating(kind) or pt.is_nested(kind) or pt.is_null(kind):
            raise UnsupportedType(
                f"column {name!r} is {kind}, which can't be part of a primary key",
                where=where,
                why="zeros and NaNs of floats, and nested values, have no one notion of equality",
                fix="Use an integer, decimal, string, binary, boolean, date or timestamp column.",
            )


class LatestChanges:
    """What a range of a log of changes comes down to: for each key its newest row, or that it is deleted.

    ``schema``: of the rows; batches are fitted to it by name. ``change_column``: the batches' column of change types;
    None for a log whose rows are all upserts. ``unordered``: nothing says which of two rows is newer, so different ones
    of a key are refused. Holds at most about twice what its distinct keys need. One thread.
    """

    def __init__(
        self, schema: pa.Schema, key: Sequence[str], change_column: str | None, *, unordered: bool = False
    ) -> None:
        fields = [field for field in schema if field.name != change_column]
        self._schema = pa.schema(fields)
        check_key(self._schema, key)
        self._key = list(key)
        self._unordered = unordered
        self._change_columns = [] if change_column is None else [change_column]
        # A delete needs no more than its key: the other columns may be null whatever the table says.
        self._relaxed = pa.schema([field.with_nullable(True) for field in fields])
        self._latest = pa.schema([*self._relaxed, pa.field(_DELETED, pa.bool_())]).empty_table()
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the changes of ``batch``, which come after all that were added before.

        Raises `IncompatibleData` for a null in a key, for what is no change type, and for rows that do not fit."""
        kinds = self._kinds(batch)
        rows = batch.drop_columns(self._change_columns)
        if kinds is not None:
            current = pc.not_equal(kinds, OUTDATED)
            rows, kinds = only(rows, current), kinds.filter(current)
        deleted = None if kinds is None else pc.equal(kinds, DELETE)
        try:
            self._take(conform(rows, self._relaxed), deleted)
        except UnstorableRows:
            if deleted is None:
                raise
            # What a delete says of columns beside its key is stored nowhere, so it need not fit.
            for start, end, is_delete in _runs(deleted.to_numpy(zero_copy_only=False)):
                part = rows.slice(start, end - start)
                part = conform(part.select(self._key) if is_delete else part, self._relaxed)
                self._take(part, deleted.slice(start, end - start))

    def _take(self, rows: pa.RecordBatch, deleted: pa.Array | None) -> None:
        if not rows.num_rows:
            return
        for name in self._key:
            if nulls := rows.column(name).null_count:
                raise IncompatibleData(
                    f"{nulls} rows have null in {name!r}, which is part of the primary key",
                    fix="Correct the producer, or choose a key whose columns are always set.",
                )
        if deleted is None:
            deleted = pa.repeat(pa.scalar(False), rows.num_rows)
        self._pending.append(rows.append_column(_DELETED, deleted))
        self._pending_rows += rows.num_rows
        self._pending_bytes += rows.nbytes
        if self._pending_rows >= max(_PENDING_ROWS, self._latest.num_rows) or self._pending_bytes >= max(
            _PENDING_BYTES, self._latest.nbytes
        ):
            self._compact()

    @property
    def keys(self) -> pa.Table:
        """All keys that were touched, each once."""
        self._compact()
        return self._latest.select(self._key)

    def rows(self) -> pa.Table:
        """The newest row of each key that is not deleted, without the change column, in the order of the log."""
        self._compact()
        kept = only(self._latest, pc.invert(self._latest.column(_DELETED))).select(self._schema.names)
        return pa.Table.from_arrays(kept.columns, schema=self._schema)

    def _kinds(self, batch: pa.RecordBatch) -> pa.Array | None:
        if not self._change_columns:
            return None
        [name] = self._change_columns
        index = batch.schema.get_field_index(name)
        if index < 0:
            raise IncompatibleData(
                f"the rows have no column {name!r}, which is to hold the change types",
                fix=f"They have {', '.join(batch.schema.names)}.",
            )
        return _change_types(batch.column(index), name)

    def _compact(self) -> None:
        if not self._pending:
            return
        schema = self._latest.schema
        # As batches, not as one array: strings of more than 2 GiB don't fit into one.
        table = pa.Table.from_batches([*self._latest.to_batches(), *self._pending], schema=schema)
        newest = (
            _comparable(table.select(self._key))
            .append_column(_ROW, pa.array(np.arange(table.num_rows)))
            .group_by(self._key, use_threads=False)
            .aggregate([(_ROW, "max")])
        )
        if newest.num_rows < table.num_rows:
            if self._unordered:
                self._refuse_others(table, newest)
            table = only(table, _mask(newest.column(f"{_ROW}_max"), table.num_rows))
        # Slices would keep the memory of what was left out.
        self._latest = table.combine_chunks()
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    def _refuse_others(self, table: pa.Table, newest: pa.Table) -> None:
        """Raise `IncompatibleData` for two rows of a key in ``table`` that are not the same, of which either would be a
        guess. ``newest``: for each key its last row."""
        numbered = _comparable(table.select(self._key)).append_column(_ROW, pa.array(np.arange(table.num_rows)))
        pairs = numbered.join(newest, self._key, use_threads=False)
        own, last = pairs.column(_ROW).combine_chunks(), pairs.column(f"{_ROW}_max").combine_chunks()
        is_older = pc.not_equal(own, last)
        table = _told(table)
        older, kept = table.take(own.filter(is_older)), table.take(last.filter(is_older))
        for at in range(0, older.num_rows, _COMPARED):
            one, other = older.slice(at, _COMPARED), kept.slice(at, _COMPARED)
            if not one.equals(other):
                self._refuse_other(zip(one.to_pylist(), other.to_pylist(), strict=True))

    def _refuse_other(self, pairs: Iterator[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        for one, other in pairs:
            if one == other or repr(one) == repr(other):  # NaN equals nothing, not even itself
                continue
            key = {name: one[name] for name in self._key}
            raise IncompatibleData(
                f"two rows of a snapshot have the same primary key, {key!r:.500}",
                why="the rows of a snapshot have no order, so it is not known which of them is the newest",
                fix="Follow a table that has one row of each key; or append its rows as they are, by primary-key: [].",
            )


def _told(table: pa.Table) -> pa.Table:
    """The same rows, in types that Arrow takes from and Python can tell: it has no nanoseconds."""
    plain = schema_without_views(table.schema)
    fields = [f.with_type(pa.int64()) if pt.is_timestamp(f.type) and f.type.unit == "ns" else f for f in plain]
    return table.cast(pa.schema(fields))


def matching_keys(rows: pa.RecordBatch | pa.Table, keys: pa.Table) -> pa.Table:
    """Those of ``keys`` that ``rows`` have, in their order."""
    return only(keys, _mask(_joined(keys, rows.select(keys.column_names)), keys.num_rows))


def without_keys(batch: pa.RecordBatch, keys: pa.Table) -> pa.RecordBatch:
    """The rows of ``batch`` whose key is none of ``keys``, in their order. The columns of ``keys`` are the key; a row
    with null in one has none, and stays."""
    if not batch.num_rows or not keys.num_rows:
        return batch
    found = _joined(batch.select(keys.column_names), keys)
    if not len(found):
        return batch
    return only(batch, pa.array(~_mask(found, batch.num_rows)))


def _joined(left: pa.RecordBatch | pa.Table, right: pa.RecordBatch | pa.Table) -> pa.ChunkedArray:
    """The numbers of the rows of ``left`` that are among those of ``right``, in any order. Only keys are joined, as
    Arrow's joins know no nested columns."""
    table = _comparable(left if isinstance(left, pa.Table) else pa.Table.from_batches([left]))
    other = _comparable(right if isinstance(right, pa.Table) else pa.Table.from_batches([right]))
    names = table.column_names
    other = other.select(names)
    if other.schema.types != table.schema.types:
        other = other.cast(pa.schema([pa.field(name, table.schema.field(name).type) for name in names]))
    numbered = table.append_column(_ROW, pa.array(np.arange(table.num_rows)))
    found = numbered.join(other, names, join_type="left semi", use_threads=False)
    return found.column(_ROW)


def _comparable(table: pa.Table) -> pa.Table:
    """With the plain types of views and dictionaries, which Arrow neither groups by nor joins on."""
    kinds = [_plain(field.type) for field in table.schema]
    if kinds == table.schema.types:
        return table
    fields = zip(table.schema, kinds, strict=True)
    return table.cast(pa.schema([pa.field(field.name, kind, field.nullable) for field, kind in fields]))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(kind):
        return _plain(kind.value_type)
    if pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary_view(kind):
        return pa.binary()
    return kind


def refused_changes(batch: pa.RecordBatch, key: Sequence[str], change_column: str | None) -> dict[int, str]:
    """The rows, by their place, that are no change of a row: those of no change type, and those with null in the key.
    For each, why. Raises `IncompatibleData` for a column that can't hold change types."""
    found: dict[int, str] = {}
    current = None
    if change_column is not None and change_column in batch.schema.names:
        kinds = _as_text(batch.column(change_column), change_column)
        known = pc.is_in(kinds, value_set=_KNOWN)
        if not pc.all(known).as_py() and len(kinds):
            odd = pc.indices_nonzero(pc.invert(known))
            found = {at: _no_change(change_column, kinds[at].as_py()) for at in odd.to_pylist()}
        current = pc.fill_null(pc.not_equal(kinds, OUTDATED), True)
    for name in key:
        column = batch.column(name)
        if column.null_count:
            nulls = column.is_null() if current is None else pc.and_(column.is_null(), current)
            for at in pc.indices_nonzero(nulls).to_pylist():
                found.setdefault(at, f"it has null in {name!r}, which is part of the primary key")
    return found


def places_of(batch: pa.RecordBatch, kinds: Sequence[str], key: Sequence[str], change_column: str | None) -> list[int]:
    """The changes of ``batch`` of one of these ``kinds``, by their place, without those that are no change of a row.
    Without change types, all rows are ``+I``."""
    kept = np.ones(batch.num_rows, bool)
    kept[list(refused_changes(batch, key, change_column))] = False
    if change_column is not None and change_column in batch.schema.names:
        found = _as_text(batch.column(change_column), change_column)
        kept &= pc.is_in(found, value_set=pa.array(kinds)).to_numpy(zero_copy_only=False)
    elif UPSERTS[0] not in kinds:
        return []
    return [int(place) for place in np.flatnonzero(kept)]


def _runs(flags: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int, bool]]:
    """Where a value begins that the next ones share, where they end, and which it is."""
    starts = np.flatnonzero(np.diff(flags)) + 1
    bounds = [0, *starts.tolist(), len(flags)]
    for start, end in itertools.pairwise(bounds):
        yield start, end, bool(flags[start])


def _no_change(name: str, value: str | None) -> str:
    return f"column {name!r} has {'null' if value is None else repr(value)}, which is no change type"


def _change_types(column: pa.Array, name: str) -> pa.Array:
    """As text. Raises `IncompatibleData` for anything that is not one of them."""
    kinds = _as_text(column, name)
    known = pc.is_in(kinds, value_set=_KNOWN)
    if not pc.all(known).as_py() and len(kinds):
        odd = kinds.filter(pc.invert(known))[0].as_py()
        raise IncompatibleData(_no_change(name, odd), fix=f"They are {', '.join(CHANGE_TYPES)}.")
    return kinds


def _as_text(column: pa.Array, name: str) -> pa.Array:
    plain = _plain(column.type)
    if not (pt.is_string(plain) or pt.is_large_string(plain)):
        raise IncompatibleData(
            f"column {name!r} is {column.type}, and is to hold the change types",
            fix=f"It must be text: {', '.join(CHANGE_TYPES)}.",
        )
    return column if column.type.equals(pa.string()) else column.cast(plain).cast(pa.string())


def _mask(rows: pa.ChunkedArray, count: int) -> npt.NDArray[np.bool_]:
    found = np.zeros(count, dtype=bool)
    found[rows.to_numpy()] = True
    return found
