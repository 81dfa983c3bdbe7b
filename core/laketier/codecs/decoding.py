"""From the bytes of records to rows, and the one boundary behind which a record can do no harm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from laketier.codecs.bounds import RECORD_BYTES
from laketier.codecs.said import said
from laketier.spi import LaketierError

BLANKS = b" \t\n\r\x0b\x0c"
"""A line of these alone is no record."""


@dataclass(frozen=True)
class Undecodable:
    """The value at ``index`` of those handed in is none of the table's rows."""

    index: int
    error: str
    schema_version: str | None = None


@dataclass(frozen=True)
class Decoded:
    """``rows`` in order, and for each the index of the value that it came from. ``bad``: those that gave none."""

    rows: pa.RecordBatch
    index: Sequence[int]
    bad: Sequence[Undecodable] = ()


class BadValue(Exception):
    """One value can't be read; raised and caught within a decoder."""

    def __init__(self, error: str, schema_version: str | None = None) -> None:
        super().__init__(error)
        self.schema_version = schema_version


@dataclass(frozen=True, kw_only=True)
class Decoder(ABC):
    """Reads values of one format. Picklable; on an executor it makes what it needs when it is first used."""

    schema: pa.Schema
    """The columns that values give."""
    former_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Column → names that it had, where the format tells them (see `LogTable`)."""
    reads_tombstones: bool = False
    """Whether a record without a value is a row."""
    record_bytes: int = RECORD_BYTES
    """A longer value is a bad record."""
    record_option: str = "max-record-bytes"
    """The option that changes that bound."""

    @property
    def blanks(self) -> bytes:
        """Of what a line has to be, to be no record where records are lines."""
        return BLANKS

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The rows of ``values``. A value that can't be read is in ``bad``, whatever the libraries below raised over
        it; only what is no value's fault raises: a `LaketierError`, such as a registry's that does not answer."""
        bad: list[Undecodable] = []
        index: Sequence[int] = range(len(values))
        if max(map(len, filter(None, values)), default=0) > self.record_bytes:
            index = [at for at in index if len(values[at] or b"") <= self.record_bytes]
            bad = [self._too_long(at, values[at]) for at in sorted(set(range(len(values))) - set(index))]
            values = [values[at] for at in index]
        return self.by_halves(values, index, bad, self.read)

    def takes(self, values: Sequence[bytes]) -> bool:
        """Whether `decode` would find none bad. Which are is not searched for."""
        if max(map(len, filter(None, values)), default=0) > self.record_bytes:
            return False
        try:
            return not self.at_once(values).bad
        except Exception as error:  # noqa: BLE001 - the boundary, as in `_halves`
            raise_if_nobodys(error)
            return False

    def first_bad(self, values: Sequence[bytes]) -> Undecodable | None:
        """The first of what `decode` would find bad. Where each value is, this takes a few reads, and `decode` one for
        each value."""
        if self.takes(values):
            return None
        low, high = 0, len(values)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.takes(values[low:middle]) else (low, middle)
        for one in self.decode(values[low:high]).bad:
            return replace(one, index=low + one.index)
        # All were refused, and each alone is not: what is bad is then told by the same search as for rows.
        return next(iter(self.decode(values).bad), None)

    def at_once(self, values: Sequence[bytes]) -> Decoded:
        """What `read` gives, or raises anything where one is bad."""
        return self.read(values)

    def by_halves(
        self, values: Sequence[bytes], index: Sequence[int], bad: list[Undecodable], read: Callable[..., Decoded]
    ) -> Decoded:
        """What ``read`` gives of ``values``, which are those at ``index``, as `decode` tells it; with the ``bad`` that
        are known already."""
        parts = list(self._halves(values, 0, read))
        if len(parts) == 1 and not bad:
            return parts[0]
        for part in parts:
            bad += [Undecodable(index[one.index], one.error, one.schema_version) for one in part.bad]
        rows = one_batch([part.rows for part in parts], self.schema)
        found = [index[at] for part in parts for at in part.index]
        return Decoded(rows, found, sorted(bad, key=lambda one: one.index))

    @abstractmethod
    def read(self, values: Sequence[bytes]) -> Decoded:
        """What `decode` gives, for values of a length that is allowed. May raise anything over values that are bad:
        it is called again with fewer of them, until each is read or alone to blame."""

    def _halves(self, values: Sequence[bytes], first: int, read: Callable[..., Decoded]) -> Iterator[Decoded]:
        """The rows of ``values``, the first of which is at ``first``: at once, or else half by half."""
        pending = [(first, values)]
        while pending:
            at, some = pending.pop()
            try:
                found = read(some)
            except Exception as error:  # the boundary: what a record makes a library raise is its own
                raise_if_nobodys(error)
                if len(some) > 1:
                    half = len(some) // 2
                    pending += [(at + half, some[half:]), (at, some[:half])]
                elif some:
                    yield Decoded(one_batch([], self.schema), (), [undecodable(at, error)])
                else:
                    raise
                continue
            yield found if not at else _moved(found, at)

    def _too_long(self, index: int, value: bytes) -> Undecodable:
        return Undecodable(
            index, f"it has {len(value):,} bytes, more than {self.record_option} = {self.record_bytes:,} allows"
        )


def _moved(found: Decoded, by: int) -> Decoded:
    bad = [Undecodable(one.index + by, one.error, one.schema_version) for one in found.bad]
    return Decoded(found.rows, [at + by for at in found.index], bad)


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows of ``batches`` as one."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else no_rows(schema)


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """An empty batch, of any types: not all can be made of Python values."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def raise_if_nobodys(error: Exception) -> None:
    """Raise ``error`` when no bytes can have caused it: a registry that does not answer, a library that is not there, a
    disk or a network that refuses."""
    machine = isinstance(error, OSError) and error.errno is not None
    if machine or isinstance(error, LaketierError | ImportError):
        raise error


def undecodable(index: int, error: BaseException) -> Undecodable:
    """The value at ``index``, and what was raised over it."""
    return Undecodable(index, said(error), error.schema_version if isinstance(error, BadValue) else None)


def decode_each(values: Sequence[bytes], schema: pa.Schema, read: Callable[[bytes], dict[str, Any]]) -> Decoded:
    """For formats whose libraries read value by value: ``read`` gives a row, or raises anything but a `LaketierError`
    over one that is bad."""
    rows: list[dict[str, Any]] = []
    index: list[int] = []
    bad: list[Undecodable] = []
    for position, value in enumerate(values):
        try:
            rows.append(read(value))
            index.append(position)
        except Exception as error:  # noqa: BLE001 - as in `Decoder.decode`, whose search for the one to blame it saves
            raise_if_nobodys(error)
            bad.append(undecodable(position, error))
    # Where some value does not fit its column (a string with a lone surrogate, a decimal of too many digits), this
    # raises, and the caller finds out which.
    return Decoded(batch_of(rows, schema), index, bad)


def batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Python's values as columns. Raises what Arrow does over those that do not fit."""
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
