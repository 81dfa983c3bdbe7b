"""The reading half of a format: plans on the driver, reads on executors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from laketier.spi.committer import TableState
from laketier.spi.errors import ConfigError
from laketier.spi.predicate import Predicate, columns_of
from laketier.spi.serializer import DataclassSerializer, SimpleVersionedSerializer

S = TypeVar("S", bound=TableState)


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


class LakeSource(ABC):
    """Reads one table: plans on the driver, reads on executors. Picklable: it goes to them.

    Whatever else a format can tell of a table is a capability of its own (`LakeStorage.history`, `LakeStorage.changes`,
    `LakeStorage.feed`); the splits that these plan are read here.
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

    @property
    def split_serializer(self) -> SimpleVersionedSerializer[LakeSplit]:
        """For splits that cross a process or are stored."""
        return DataclassSerializer(LakeSplit)
