"""The reading half of a format: plans on the driver, reads on executors."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from laketier.spi.committer import TableState
from laketier.spi.errors import ConfigError, FeatureNotSupported, RowsChanged
from laketier.spi.features import Feature
from laketier.spi.predicate import Predicate, columns_of
from laketier.spi.serializer import DataclassSerializer, SimpleVersionedSerializer

log = logging.getLogger(__name__)

S = TypeVar("S", bound=TableState)

CHANGE_TYPE = "_change_type"
"""The column of `LakeSource.plan_change_feed`, named as Delta's and Iceberg's readers name it."""


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """What a reader wants.

    ``columns``: names in the order wanted, None for all; may be empty (count only). A plan has these columns and no
    others, whatever the filters name: the reader asks for those that it needs to apply what remains. ``filters``: a
    conjunction. ``limit``: at most this many rows are needed, after the filters. ``snapshot_id`` or ``as_of`` (ms
    since the epoch, UTC): which snapshot; neither means the current one, and both raise `ConfigError`.

    ``state``: what `LakeStorage.state` said of the table a moment ago. Where no snapshot is named, the plan is of that
    state, with its schema, and needs no other look. A source that does not know ``state`` plans what is current: so
    whoever needs just that state compares `ScanPlan.snapshot_id`.
    """

    columns: tuple[str, ...] | None = None
    filters: tuple[Predicate, ...] = ()
    limit: int | None = None
    snapshot_id: int | None = None
    as_of: int | None = None
    state: TableState | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.snapshot_id is not None and self.as_of is not None:
            raise ConfigError("a snapshot and a moment are both given", fix="Give one of them.")

    def seen(self, kind: type[S]) -> S | None:
        """``state``, if a plan of it is asked for, and it is of this plugin's ``kind``."""
        current = self.snapshot_id is None and self.as_of is None
        return self.state if current and isinstance(self.state, kind) else None

    def projected(self, schema: pa.Schema, *, where: str) -> pa.Schema:
        """The columns wanted, of a snapshot's whole ``schema``: the schema of its plan. Raises `ConfigError` for
        columns that are not there, those of filters too. ``where`` names the table."""
        columns = schema.names if self.columns is None else self.columns
        unknown = sorted({*columns, *columns_of(self.filters)}.difference(schema.names))
        if unknown:
            raise ConfigError(
                f"the snapshot has no columns {unknown}", where=where, fix=f"It has {', '.join(schema.names)}."
            )
        return pa.schema([schema.field(name) for name in columns])


@dataclass(frozen=True, kw_only=True)
class LakeSplit:
    """A part of a snapshot that one task reads. Serialisable (see `DataclassSerializer`); carries all it needs.

    ``bucket`` is -1 where unaware. ``files`` names the data files (or fragments) whose live rows are just this split's;
    a round that rewrites the split names them as `WriteResult.replaced`. It is empty where a filter or a limit cut the
    split, and where the format can't upsert. ``plain_parquet`` is the URI or absolute path of a Parquet file that holds
    exactly this split's rows and columns, without deletes, and with the partition columns inside; None otherwise. So
    it is None too where `LakeSource.read` leaves out rows of the file, for a filter or a limit that the plan accepted.
    """

    index: int
    rows: int | None = None
    bytes: int | None = None
    bucket: int = -1
    partition: tuple[tuple[str, str | None], ...] = ()
    plain_parquet: str | None = None
    files: tuple[str, ...] = ()
    payload: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class ScanPlan:
    """The splits of one snapshot, and what is left to do.

    ``schema`` is what `LakeSource.read` yields. ``remaining``: the filters that the reader must apply itself (a
    filter used only to skip files stays remaining). ``limit_done``: the splits together yield no more than the
    limit; otherwise the reader must stop by itself.
    """

    snapshot_id: int | None
    schema: pa.Schema
    splits: tuple[LakeSplit, ...]
    remaining: tuple[Predicate, ...] = ()
    limit_done: bool = False


@dataclass(frozen=True, kw_only=True)
class SnapshotInfo:
    """One line of a table's history. ``committed_at``: ms since the epoch, UTC. ``rows`` were added (None: unknown).
    ``pipeline`` and ``epoch`` where laketier made it."""

    snapshot_id: int
    committed_at: int | None
    operation: str
    rows: int | None = None
    pipeline: str | None = None
    epoch: int | None = None


@dataclass(frozen=True, kw_only=True)
class VersionBounds:
    """Which versions' changes can be read: from ``earliest`` to ``latest`` (exclusive). ``latest_at``: when the newest
    was committed (ms since the epoch, UTC). ``lasting_id``: the table's identity, where `TableInfo.table_uuid` is one
    that old versions take with them when they expire."""

    earliest: int
    latest: int
    latest_at: int | None = None
    lasting_id: str | None = None


class LakeSource(ABC):
    """Reads one table. Picklable: made on the driver, planned there, read on executors.

    A table is a log too, where the format has `Feature.INCREMENTAL_READ`: its commits have *versions*, integers from 0
    that only grow and need not be dense, and `plan_changes` reads what some of them appended.
    """

    @abstractmethod
    def plan(self, request: ScanRequest) -> ScanPlan:
        """Plan a scan on the driver. Raises `SnapshotNotFound`, `ConfigError` for unknown columns (as
        `ScanRequest.projected` does), and `FeatureNotSupported` for time travel that the format can't do. An empty
        table gives no splits."""

    @abstractmethod
    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read a split on an executor: batches of exactly ``schema``, in the split's own order. That is the plan's, or
        one with some of its columns. The filters that the plan accepted are applied. Columns added after a file was
        written read as null, or as the default that the table has for them. Raises `CorruptTable`, or
        `SnapshotNotFound`, when what the plan names is gone."""

    def history(self, limit: int) -> list[SnapshotInfo]:
        """The newest ``limit`` snapshots that can still be read, newest first. Driver. Part of
        `Feature.TIME_TRAVEL`: a format that declares it implements this."""
        raise FeatureNotSupported(Feature.TIME_TRAVEL.value, reason="it does not list its snapshots")

    def versions(self) -> VersionBounds:
        """Which versions there are now. Driver. Costs no more for a long history than for a short one, but for a
        listing of what is retained."""
        raise self._no_incremental_read()

    def snapshot_at(self, version: int) -> int | None:
        """The id (`ScanRequest.snapshot_id`) of the snapshot that was current when ``version`` was the newest; None
        when the table had none yet. Driver. Raises `SnapshotNotFound`."""
        return version

    def plan_changes(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        """Plan, on the driver, the rows that the commits ``start`` to ``end`` (exclusive) appended, in the columns that
        the table has now. The same versions give the same rows each time. Reads what these commits wrote, not the
        history before them.

        Commits that moved rows to other files (compaction) or changed the schema alone add nothing. One that deleted,
        updated or replaced rows raises `RowsChanged`; with ``skip_changes`` it is passed over whole, with the rows
        that it added. Raises `OffsetsExpired` when a version is retained no more, and `SnapshotNotFound` when the
        table has not come to ``end``.
        """
        raise self._no_incremental_read()

    def check_change_feed(self) -> None:
        """Driver. Raises `FeatureNotSupported` for a format without `plan_change_feed`, and `ConfigError` for a table
        that does not keep a change feed."""
        raise FeatureNotSupported("a change feed", reason="it does not tell which rows a commit changed")

    def plan_change_feed(self, start: int, end: int) -> ScanPlan:
        """As `plan_changes`, but of all that the commits did to rows, with the text column `CHANGE_TYPE` after the
        table's: ``+I``, ``+U`` and ``-D``. No commit raises `RowsChanged`. The splits are in the order of the versions,
        and within one the rows that went come before those that came. A row's old state is ``-D``, as a format knows
        no key that would stay. Raises `IncompatibleTable` for versions from before the feed was kept."""
        self.check_change_feed()
        raise NotImplementedError

    def _no_incremental_read(self) -> FeatureNotSupported:
        return FeatureNotSupported(Feature.INCREMENTAL_READ.value, reason="it does not tell what a commit appended")

    @property
    def split_serializer(self) -> SimpleVersionedSerializer[LakeSplit]:
        """For splits that cross a process or are stored."""
        return DataclassSerializer(LakeSplit)


def pass_over(version: int, operation: str, *, where: str, skip_changes: bool) -> None:
    """What `LakeSource.plan_changes` does of a commit that changed rows: raises `RowsChanged`, or passes it over and
    says so in the log."""
    if skip_changes:
        log.warning("version %d (%s) of %s changed rows, and is passed over", version, operation, where)
        return
    raise RowsChanged(
        f"version {version} ({operation}) deleted, updated or replaced rows, and only appended ones can be followed",
        where=where,
        fix="Set read.skip-changes to pass such commits over, with the rows that they added; or read the table anew "
        "into another one.",
    )
