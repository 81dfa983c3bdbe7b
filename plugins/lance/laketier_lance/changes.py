"""The table as a log: what each version of a dataset appended. Driver, but for `shaped`.

A version's fragments are compared with those of the version before it, so it does not matter by which operation they
came: laketier's own rounds are a `Merge`, and so are new columns. Only of a version that took fragments away or changed
them the transaction says whether it moved rows (a `Rewrite`) or changed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laketier.kit.scans import check_versions
from laketier.spi import (
    LakeChanges,
    LakeSplit,
    OffsetsExpired,
    RowsChanged,
    ScanPlan,
    SnapshotNotFound,
    TableInfo,
    VersionBounds,
    pass_over,
)
from laketier.spi.schema import FIELD_ID, widens
from laketier_lance.dataset import open_dataset, read_transaction, reading
from laketier_lance.fragments import FragmentRun, fragments_of, grouped
from laketier_lance.lance_schema import with_field_ids
from laketier_lance.options import LanceOptions
from laketier_lance.private import data_path, moment_of
from laketier_lance.table import lasting_id, metadata_of
from laketier_lance.versions import versions_of

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment

_States = Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class Appended:
    """The fragments that ``version`` appended, and its dataset."""

    version: int
    dataset: LanceDataset
    fragments: tuple[LanceFragment, ...]


@dataclass(frozen=True)
class LanceChanges(LakeChanges):
    """A version is the dataset's."""

    table: TableInfo
    options: LanceOptions

    def versions(self) -> VersionBounds:
        return bounds(self.table.location, self.options.storage_options())

    def snapshot_at(self, version: int) -> int | None:
        """Versions begin at 1: there was no snapshot before."""
        return super().snapshot_at(version) if version else None

    def stamp(self, version: int) -> str | None:
        return stamp_of(self.table.location, self.options.storage_options(), version)

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        location, storage = self.table.location, self.options.storage_options()
        newest = open_dataset(location, storage)
        splits: list[LakeSplit] = []
        for each in appended(newest, location, storage, start, end, skip_changes=skip_changes):
            then = names_at(each.dataset, newest)
            for group in grouped(fragments_of(each.fragments), self.options.split_rows):
                payload = FragmentRun.of(group, each.version, names_then=then)
                rows, size = sum(fragment.rows for fragment in group), sum(fragment.bytes for fragment in group)
                splits.append(LakeSplit(index=len(splits), rows=rows, bytes=size, payload=payload))
        return ScanPlan(snapshot_id=end - 1, schema=newest.schema.remove_metadata(), splits=tuple(splits))


def bounds(location: str, storage: dict[str, str]) -> VersionBounds:
    """The changes of the oldest retained version can't be told, unless it is the first of all."""
    dataset = open_dataset(location, storage)
    newest = int(dataset.version)
    with reading(location):
        retained = set(versions_of(dataset))
        committed = moment_of(dataset)
    oldest = newest
    while oldest - 1 in retained:  # tags may hold older ones
        oldest -= 1
    return VersionBounds(
        earliest=oldest if oldest == 1 else oldest + 1,
        latest=newest + 1,
        latest_at=int(committed.timestamp() * 1000),
        lasting_id=lasting_id(location, metadata_of(dataset)),
    )


def stamp_of(location: str, storage: dict[str, str], version: int) -> str | None:
    """The moment that the version's manifest holds, and the random name of the file that came last. None for a version
    that was cleaned up or not reached. Its transaction has an id, but may be gone before it."""
    if version < 1:
        return None
    try:
        dataset = open_dataset(location, storage, version)
    except SnapshotNotFound:
        return None
    with reading(location):
        committed = moment_of(dataset)
        fragments = dataset.get_fragments()
    named = data_path(fragments[-1].metadata.files[-1]) if fragments else ""
    return f"{committed.replace(tzinfo=None).isoformat()} {named}".rstrip()


def appended(
    newest: LanceDataset, location: str, storage: dict[str, str], start: int, end: int, *, skip_changes: bool
) -> Iterator[Appended]:
    """List the rows that each version from ``start`` to ``end`` (exclusive) appended. Opens each of them, and the
    one before. Raises `RowsChanged`, `OffsetsExpired` and `SnapshotNotFound`."""
    # Which old ones are retained takes a listing: opening them tells as much.
    check_versions(start, end, VersionBounds(earliest=0, latest=int(newest.version) + 1), where=location)
    earlier = _at(location, storage, start - 1) if 1 < start < end else None
    before = _states(earlier.get_fragments()) if earlier is not None else {}
    for version in range(max(start, 1), end):
        dataset = _at(location, storage, version)
        fragments = dataset.get_fragments()
        now = _states(fragments)
        # One that was rewritten keeps its number, and gets other files or another list of deleted rows.
        changed = any(now.get(number) != state for number, state in before.items())
        new = tuple(fragment for fragment in fragments if fragment.fragment_id not in before)
        widened = changed and earlier is not None and _only_widened(earlier, dataset, before, now)
        earlier, before = dataset, now
        if widened or (not changed and not new):
            continue
        operation = _operation(newest, version)
        if operation is None and changed:
            raise OffsetsExpired(
                f"the transaction of version {version} is gone, so the rows that it appended are unknown",
                where=location,
            )
        if operation == "Rewrite":
            continue
        if changed or operation == "Restore":
            pass_over(version, operation or "unknown", where=location, skip_changes=skip_changes)
        else:
            yield Appended(version, dataset, new)


def names_at(dataset: LanceDataset, newest: LanceDataset) -> dict[str, str | None]:
    """The columns of ``newest`` that have another name or type in ``dataset``, or none, by Lance's own field ids."""
    then = {_id(field): field for field in with_field_ids(dataset.lance_schema)}
    now = with_field_ids(newest.lance_schema)
    gone = {field.name: field for number, field in then.items() if number not in {_id(each) for each in now}}
    names: dict[str, str | None] = {}
    for place, field in enumerate(now):
        old = then.get(_id(field)) or _widened(field, gone)
        if old is None:
            _check_new(field, place, dataset, gone)
            names[field.name] = None
        elif (old.name, old.type) != (field.name, field.type):
            names[field.name] = old.name
    return names


def _widened(field: pa.Field, gone: Mapping[str, pa.Field]) -> pa.Field | None:
    """What ``field`` was before it was widened: Lance writes its values anew, under another id."""
    old = gone.get(field.name)
    return old if old is not None and widens(old.type, field.type) else None


def _only_widened(earlier: LanceDataset, dataset: LanceDataset, before: _States, now: _States) -> bool:
    """Whether the rows are the same, and columns have a wider type, for which fragments get files."""
    then = {_id(field): field for field in with_field_ids(earlier.lance_schema)}
    kept = {_id(field) for field in with_field_ids(dataset.lance_schema)}
    gone = {field.name: field for number, field in then.items() if number not in kept}
    new = [field for field in with_field_ids(dataset.lance_schema) if _id(field) not in then]
    same_rows = {number: state[-1] for number, state in before.items()} == {n: state[-1] for n, state in now.items()}
    return bool(new) and same_rows and len(new) == len(gone) and all(_widened(field, gone) is not None for field in new)


def _check_new(field: pa.Field, place: int, dataset: LanceDataset, gone: Mapping[str, pa.Field]) -> None:
    """A column that is wider and stands in the place of one that is gone may be that one, or not: both lose their id,
    and their name. So may one of the same name and another type, that was cast or made anew."""
    names = dataset.schema.names
    same = gone.get(field.name)
    if same is not None and not same.type.equals(field.type):
        raise RowsChanged(
            f"version {dataset.version} has a column {field.name} of type {same.type}, and now it is {field.type}",
            where=str(dataset.uri),
            why="Lance gives a column that is cast another id, so it can't be told from one that was dropped and added",
            fix="Read changes from a version on that has the column.",
        )
    old = gone.get(names[place]) if place < len(names) else None
    if old is not None and widens(old.type, field.type):
        raise RowsChanged(
            f"version {dataset.version} has a column {old.name}, and now a wider one, {field.name}, is in its place",
            where=str(dataset.uri),
            why="Lance gives a column that is widened another id: if it was renamed, too, it can't be found again",
            fix="Read changes from a version on that has the column.",
        )


def shaped(batch: pa.RecordBatch, schema: pa.Schema, then: Mapping[str, str | None]) -> pa.RecordBatch:
    """The rows in ``schema``, read by the names that the columns had ``then``. Executor."""
    if not len(schema):
        return batch.select([]).replace_schema_metadata(None)
    names = [(field, then.get(field.name, field.name)) for field in schema]
    arrays = [
        pa.nulls(batch.num_rows, field.type) if old is None else batch.column(old).cast(field.type)
        for field, old in names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _at(location: str, storage: dict[str, str], version: int) -> LanceDataset:
    try:
        return open_dataset(location, storage, version)
    except SnapshotNotFound as error:
        raise OffsetsExpired(
            f"version {version} was cleaned up",
            where=location,
            fix="Clean versions up later than rounds lag behind.",
        ) from error


def _states(fragments: Iterable[LanceFragment]) -> _States:
    """Of each: its files, and its list of deleted rows."""
    metadata = ((fragment.fragment_id, fragment.metadata) for fragment in fragments)
    return {number: (*(data_path(file) for file in each.files), str(each.deletion_file)) for number, each in metadata}


def _operation(newest: LanceDataset, version: int) -> str | None:
    transaction = read_transaction(newest, version)
    return None if transaction is None else type(transaction.operation).__name__


def _id(field: pa.Field) -> bytes | None:
    found: bytes | None = (field.metadata or {}).get(FIELD_ID)
    return found
