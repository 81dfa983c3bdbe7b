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


LATEST = (1 << 4 * _TIME_DIGITS) - 1
"""The last moment that the name of an attempt can hold, in ms since the epoch: in the year 10889."""


def new_attempt_id(after: int = 0) -> str:
    """32 hex digits, unguessable. For task attempts and commit ids. They begin with the time, as UUIDs of version 7 do,
    so that orphan collection can bar all attempts before a moment without knowing them.

    ``after``: the moment that attempts were barred up to when the round began (`TieringRound.attempts_after`). A host
    whose clock is behind it takes that moment, as Lamport's clocks do: such an attempt did begin later, whatever the
    clocks say.
    """
    return f"{min(max(host_time(), after), LATEST):0{_TIME_DIGITS}x}{secrets.token_hex(_RANDOM_BYTES)}"


def attempt_began_at(attempt: str) -> int:
    """The moment in its name: when `new_attempt_id` made it, in ms since the epoch by the clock of the host that did,
    or the horizon that it was told. 0, which is before everything, for a name that it did not make."""
    try:
        return int(attempt[:_TIME_DIGITS], 16) if len(attempt) == _TIME_DIGITS + 2 * _RANDOM_BYTES else 0
    except ValueError:
        return 0


@dataclass(frozen=True)
class StagedFile:
    """One staged data file.

    ``path`` is what `discard` needs to find it again: relative to the table's location, with ``/`` (`confined`), or to
    the folder elsewhere that the table's metadata names for data. ``partition``
    holds (partition field name, canonical text or None for null). ``payload`` is the format's own (a footer,
    statistics, fragment metadata), small.
    """

    path: str
    rows: int
    bytes: int
    partition: tuple[tuple[str, str | None], ...] = ()
    bucket: int | None = None
    payload: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class WriteResult:
    """What a writer staged, and what it was written against: after each reload the core compares the last three
    with the table and refuses to publish a file that was written for another one.

    ``replaced``: with `WriteMode.UPSERT`, the files of the base snapshot (`LakeSplit.files`) that leave the table in
    the step that publishes ``files``; set by the core.

    A format may subclass it: a frozen dataclass, ``kw_only``, with fields that `DataclassSerializer` knows. Its factory
    then overrides `LakeTieringFactory.write_result_serializer` with a ``DataclassSerializer`` of the subclass.
    """

    attempt: str
    table_uuid: str
    schema_fingerprint: str
    spec_id: int
    files: tuple[StagedFile, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(f.rows for f in self.files)

    @property
    def bytes(self) -> int:
        """Bytes on storage of all files."""
        return sum(f.bytes for f in self.files)

    @classmethod
    def of(cls, table: TableInfo, attempt: str, files: tuple[StagedFile, ...], **more: Any) -> Self:
        """A result for files that were written against ``table``. ``more``: the fields of a subclass."""
        return cls(
            attempt=attempt,
            table_uuid=table.table_uuid,
            schema_fingerprint=table.schema_fingerprint,
            spec_id=table.spec_id,
            files=files,
            **more,
        )


WR = TypeVar("WR", bound=WriteResult)


class LakeWriter(ABC, Generic[WR]):
    """Stages the rows of one task attempt. Runs on an executor, used by one thread.

    Call order: ``write`` any number of times, then exactly one of ``complete`` or ``abort``. As a context manager
    it aborts when the block raises. Nothing it writes is visible to a reader. It loads no table metadata: all it
    needs came with its factory and context. Memory is bounded whatever the number and size of the batches.
    """

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Stage rows. Columns are matched by name. Raises `IncompatibleData` when the batch does not fit."""

    @abstractmethod
    def complete(self) -> WR:
        """Make all that was written durable and describe it. No rows at all give a result without files."""

    @abstractmethod
    def abort(self) -> None:
        """Delete what this attempt staged. Called when its result was, and will be, given to nobody. Never raises
        for a file that is gone already; may be called twice, and after a failed ``write`` or ``complete``."""

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
