"""The writing half of a format: runs on executors."""

from __future__ import annotations

import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from laketier.spi.clocks import host_time
from laketier.spi.table import TableInfo

log = logging.getLogger(__name__)

_TIME_DIGITS = 12
_RANDOM_BYTES = 10
# Of these 80 bits, the first four are the version of the UUID, and the 17th and 18th its variant.
_FIXED_BITS = 0xF << 76 | 0b11 << 62
_VERSION_AND_VARIANT = 7 << 76 | 0b10 << 62


LATEST = (1 << 4 * _TIME_DIGITS) - 1
"""The last moment that an attempt id can hold, in ms since the epoch: in the year 10889."""


def new_attempt_id(after: int = 0) -> str:
    """Make an id for a task attempt or a commit. Unguessable. It is a UUID of version 7 (RFC 9562), so it starts with
    the time, and orphan collection can refuse all attempts before a moment without knowing them.

    Args:
        after: The horizon of orphan collection when the round began (`TieringRound.attempts_after`), in ms since the
            epoch. A host with a slow clock uses this moment, as in Lamport's clocks: the attempt did begin later.

    Returns:
        32 hex digits.
    """
    free = secrets.randbits(8 * _RANDOM_BYTES)
    random = free & ~_FIXED_BITS | _VERSION_AND_VARIANT
    return f"{min(max(host_time(), after), LATEST):0{_TIME_DIGITS}x}{random:0{2 * _RANDOM_BYTES}x}"


def attempt_began_at(attempt: str) -> int:
    """Read the moment in an attempt id: the time of the host that made it, or the horizon that it was given.

    Args:
        attempt: The id.

    Returns:
        Milliseconds since the epoch. 0, which is before everything, for an id that `new_attempt_id` did not make.
    """
    try:
        return int(attempt[:_TIME_DIGITS], 16) if len(attempt) == _TIME_DIGITS + 2 * _RANDOM_BYTES else 0
    except ValueError:
        return 0


@dataclass(frozen=True)
class StagedFile:
    """One staged data file.

    Attributes:
        path: The path relative to the table's location, with ``/`` (`confined`), or relative to another folder that the
            table's metadata names for data. `LakeCommitter.discard` finds the file by it.
        rows: The number of rows.
        bytes: The size on storage.
        partition: The partition: (field name, canonical text or None for null) of each field.
        bucket: The bucket. None without buckets.
        payload: The format's own data, small: a footer, statistics, fragment metadata.
    """

    path: str
    rows: int
    bytes: int
    partition: tuple[tuple[str, str | None], ...] = ()
    bucket: int | None = None
    payload: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class WriteResult:
    """The files of one task attempt, and the table that they were written against. After each reload the core compares
    uuid, fingerprint and spec with the table, and refuses files that were written for another one.

    A format may subclass it: a frozen dataclass, ``kw_only``, with fields that `DataclassSerializer` knows. Its factory
    then overrides `LakeTieringFactory.write_result_serializer` with a ``DataclassSerializer`` of the subclass.

    Attributes:
        attempt: The id of the attempt.
        table_uuid: The identity of the table.
        schema_fingerprint: The fingerprint of the schema.
        spec_id: The partition spec.
        files: The staged files.
        replaced: With `WriteMode.UPSERT`, the files of the base snapshot (`LakeSplit.files`) that leave the table in
            the step that publishes ``files``. Set by the core.
        after: The table's snapshot when it was loaded for its writers: no snapshot up to it has one of ``files``. So a
            committer that looks whether they were published before looks at later ones alone. None where it is unknown.
    """

    attempt: str
    table_uuid: str
    schema_fingerprint: str
    spec_id: int
    files: tuple[StagedFile, ...] = ()
    replaced: tuple[str, ...] = ()
    after: int | None = None

    @property
    def rows(self) -> int:
        """The rows in all files."""
        return sum(f.rows for f in self.files)

    @property
    def bytes(self) -> int:
        """The bytes on storage of all files."""
        return sum(f.bytes for f in self.files)

    @classmethod
    def of(cls, table: TableInfo, attempt: str, files: tuple[StagedFile, ...], **more: Any) -> Self:
        """Make the result of files that were written against a table.

        Args:
            table: The table.
            attempt: The id of the attempt.
            files: The staged files.
            more: The fields of a subclass.

        Returns:
            The result.
        """
        return cls(
            attempt=attempt,
            table_uuid=table.table_uuid,
            schema_fingerprint=table.schema_fingerprint,
            spec_id=table.spec_id,
            files=files,
            **{"after": table.snapshot_id, **more},
        )


WR = TypeVar("WR", bound=WriteResult)


class LakeWriter(ABC, Generic[WR]):
    """Stages the rows of one task attempt. Runs on an executor, used by one thread.

    Call order: `write` any number of times, then exactly one of `complete` and `abort`. As a context manager it aborts
    when the block raises. Readers see nothing of what it writes. It loads no table metadata: factory and context hold
    all that it needs. Its memory is bounded, whatever the number and size of the batches.
    """

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Stage rows. Columns are matched by name.

        Args:
            batch: The rows.

        Raises:
            IncompatibleData: The batch does not fit the table.
            UnstorableRows: A row has a value that the table's files or partitions can't hold, and the rows without it
                could be written. `complete` may raise it too, for rows that waited in memory. The attempt is aborted
                then; the core finds the rows by other attempts, with fewer of them.
        """

    @abstractmethod
    def complete(self) -> WR:
        """Make the staged files durable, and describe them.

        Returns:
            The result. Without rows it has no files.
        """

    @abstractmethod
    def abort(self) -> None:
        """Delete the files that this attempt staged. Called when its result was given to nobody, and will be given to
        nobody. Never raises for a missing file. May be called twice, and after a failed `write` or `complete`."""

    def __enter__(self) -> LakeWriter[WR]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        try:
            self.abort()
        except Exception:
            # Whatever broke the writer may well break its clean-up; the first error is the one to tell.
            log.warning("staged files could not be deleted; orphan collection will find them", exc_info=True)
