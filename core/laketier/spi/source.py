"""The reading half of a format: plans on the driver, reads on executors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Integral
from types import NoneType
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from laketier.spi.asked import as_columns, as_filters
from laketier.spi.committer import TableState
from laketier.spi.errors import ConfigError
from laketier.spi.predicate import Predicate, columns_of, refuse_unfit
from laketier.spi.serializer import DataclassSerializer, SimpleVersionedSerializer

S = TypeVar("S", bound=TableState)


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """The parameter of `LakeSource.plan`. Naming both ``snapshot_id`` and ``as_of`` is a `ConfigError`, as is any
    value of another shape than told here and a filter that is nested more than 100 deep or compares with text that is
    none (`laketier.spi.predicate.refuse_unfit`); naming neither means the current snapshot.

    Attributes:
        columns: The columns to read, each once, in this order. None for all; empty to count only. The plan has these
            columns and no others: a reader asks also for the columns that it needs for remaining filters. A filter that
            the plan accepts is applied also where its own column is not read.
        filters: Predicates that each row has to fulfil.
        limit: The number of rows that are needed at most, after the filters. Of any size.
        snapshot_id: The snapshot to read. Zero is a number like any other, and a negative one is no snapshot, nor is
            one of more than 64 bits.
        as_of: The moment to read, in ms since the epoch, UTC. It has all that was committed by then, the same
            millisecond included; from a rollback on, the snapshot that it went back to. It may lie beyond all
            calendars.
        state: A state that `LakeStorage.state` returned a moment ago. A plan of the current snapshot uses it, with its
            schema, and does not load the table again. A source that does not know ``state`` plans the current snapshot:
            compare `ScanPlan.snapshot_id` where exactly that state is needed.
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
        for name, given in (("limit", self.limit), ("snapshot_id", self.snapshot_id), ("as_of", self.as_of)):
            if given is not None and (isinstance(given, bool) or not isinstance(given, Integral)):
                raise ConfigError(
                    f"{name} of a scan is {given!r}, and no whole number", fix="Give an integer, or None."
                )
        if self.limit is not None and self.limit < 0:
            raise ConfigError(f"the limit of a scan is {self.limit}", fix="Give zero or more, or None for all rows.")
        object.__setattr__(self, "columns", as_columns(self.columns))
        object.__setattr__(self, "filters", as_filters(self.filters))
        self._refuse_odd_columns()
        refuse_unfit(self.filters)

    def _refuse_odd_columns(self) -> None:
        columns: Any = self.columns
        if columns is None:
            return
        if not all(isinstance(name, str) for name in columns):
            raise ConfigError(
                f"the columns of a scan are {columns!r}, and no names", fix="Give a tuple of names, or None for all."
            )
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise ConfigError(f"column {twice!r} of a scan is named twice", fix="Name each column once.")

    def seen(self, kind: type[S]) -> S | None:
        """The ``state``, for a plan of the current snapshot.

        Args:
            kind: The plugin's own class of states.

        Returns:
            The state. None where another snapshot is requested, or the state is not of that class.
        """
        current = self.snapshot_id is None and self.as_of is None
        return self.state if current and isinstance(self.state, kind) else None

    def projected(self, schema: pa.Schema, *, where: str) -> pa.Schema:
        """Compute the schema of the plan.

        Args:
            schema: The whole schema of the snapshot.
            where: The name of the table, for messages.

        Returns:
            The requested columns.

        Raises:
            ConfigError: A requested column, or a column of a filter, does not exist.
        """
        columns = schema.names if self.columns is None else self.columns
        unknown = sorted({*columns, *columns_of(self.filters)}.difference(schema.names))
        if unknown:
            raise ConfigError(
                f"the snapshot has no columns {unknown}", where=where, fix=f"It has {', '.join(schema.names)}."
            )
        return pa.schema([schema.field(name) for name in columns])


@dataclass(frozen=True, kw_only=True)
class LakeSplit:
    """A part of a snapshot that one task reads. It carries all that the task needs, and travels by
    `LakeSource.split_serializer`. A task trusts it: whoever can make one up can run code on the executors. So
    `LakeSource.plan` refuses the paths of hostile metadata, and `LakeSource.read` need not.

    Attributes:
        index: The number of the split in its plan, from 0.
        rows: The rows of the split. None where they are unknown.
        bytes: The size of the split. None where it is unknown.
        bucket: The bucket of the rows. -1 where the table has none, or the split spans several.
        partition: The partition fields and their values as text, None for null. Empty where they are unknown. An upsert
            skips splits by it, so integers are spelled ``42``, days ``2026-11-21``, and a text as it is. Of a transform
            all rows of the split have this one value: times before 1970 are rounded towards the past, numbers below
            zero away from zero, and a text is cut after characters, not bytes.
        plain_parquet: The URI or absolute path of a Parquet file that holds exactly the rows and columns of the split,
            partition columns included, without deletes. None where there is no such file, where `LakeSource.read`
            leaves out rows of it for a filter or limit that the plan accepted, and where an append may move the file
            while it is read.
        files: The data files or fragments whose live rows are exactly those of the split. A round that rewrites the
            split names them as `WriteResult.replaced`. Empty where a filter or limit cut the split, and where the
            format does not support upserts.
        limit: The most rows that are read of the split, where the limit of the plan cut it.
        payload: What else `LakeSource.read` needs: an instance of `LakeSource.split_payload`.
    """

    index: int
    rows: int | None = None
    bytes: int | None = None
    bucket: int = -1
    partition: tuple[tuple[str, str | None], ...] = ()
    plain_parquet: str | None = None
    files: tuple[str, ...] = ()
    limit: int | None = None
    payload: Any = field(default=None, hash=False)


@dataclass(frozen=True, kw_only=True)
class ScanPlan:
    """The splits of one snapshot, and the work that is left to the reader.

    Attributes:
        snapshot_id: The snapshot. None for a table that never had one.
        schema: The schema of the batches that `LakeSource.read` yields.
        splits: The splits.
        remaining: The filters that the reader must apply itself. A filter that only skips files remains.
    """

    snapshot_id: int | None
    schema: pa.Schema
    splits: tuple[LakeSplit, ...]
    remaining: tuple[Predicate, ...] = ()


class LakeSource(ABC):
    """Reads one table: plans on the driver, reads on executors. Picklable, as it goes to executors.

    History, changes and feed are capabilities of their own (`LakeStorage.history`, `LakeStorage.changes`,
    `LakeStorage.feed`). This class reads the splits that they plan.
    """

    split_payload: ClassVar[type] = NoneType
    """The type of `LakeSplit.payload`: a frozen dataclass that `DataclassSerializer` knows. None by default."""

    @abstractmethod
    def plan(self, request: ScanRequest) -> ScanPlan:
        """Plan a scan. Driver. An empty table gives no splits.

        Args:
            request: The columns, filters, limit and snapshot.

        Returns:
            The plan.

        Raises:
            SnapshotNotFound: The snapshot does not exist, or has expired.
            TableNotFound: The table was dropped.
            ConfigError: A column is unknown; `ScanRequest.projected` raises it.
            FeatureNotSupported: The format does not support this kind of time travel.
        """

    @abstractmethod
    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read a split. Executor. The filters that the plan accepted are applied. A column that was added after a file
        was written reads as null, or as the table's default for it. A task may read several splits at once, give up in
        the middle, and read a split again; the source can still be pickled afterwards.

        Args:
            split: A split of a plan.
            schema: The plan's schema, or some of its columns.

        Returns:
            Batches of exactly ``schema``, in the split's own order.

        Raises:
            CorruptTable: A file of the split is missing or damaged.
            SnapshotNotFound: The snapshot of the plan has expired.
        """

    @property
    def split_serializer(self) -> SimpleVersionedSerializer[LakeSplit]:
        """The serializer of splits that cross a process or are stored."""
        return DataclassSerializer(LakeSplit, version=2, payload=self.split_payload)
