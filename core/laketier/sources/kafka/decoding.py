"""From the values of records to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from laketier.spi import IncompatibleData
from laketier.spi.conform import conform


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


_NONE: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Decoder(ABC):
    """Reads values of one format. Picklable; on an executor it makes what it needs when it is first used."""

    schema: pa.Schema
    """The columns that values give."""
    former_names: Mapping[str, tuple[str, ...]] = _NONE
    """Column → names that it had, where the format tells them (see `LogTable`)."""
    reads_tombstones: bool = False
    """Whether a record without a value is a row."""

    @abstractmethod
    def decode(self, values: Sequence[bytes]) -> Decoded:
        """The rows of ``values``. A value that can't be read is in ``bad``; only what is no value's fault raises:
        `StorageError` for a registry that does not answer."""


class BadValue(Exception):
    """One value can't be read; raised and caught within a decoder."""

    def __init__(self, error: str, schema_version: str | None = None) -> None:
        super().__init__(error)
        self.schema_version = schema_version


@dataclass(frozen=True)
class RawDecoder(Decoder):
    """Values as they are, in one column of bytes."""

    schema: pa.Schema
    reads_tombstones: bool = True

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder`."""
        return Decoded(pa.record_batch([pa.array(values, pa.binary())], schema=self.schema), range(len(values)))


@dataclass(frozen=True)
class ArrowDecoder(Decoder):
    """Each value is an Arrow IPC stream or file, of any number of rows."""

    schema: pa.Schema

    def decode(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder`. Columns are matched by name, and cast only where no value changes."""
        batches: list[pa.RecordBatch] = []
        index: list[int] = []
        bad = []
        for position, value in enumerate(values):
            try:
                found = [self._conformed(batch) for batch in _ipc_batches(value)]
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, IncompatibleData) as error:
                bad.append(Undecodable(position, str(error)))
                continue
            for batch in found:
                batches.append(batch)
                index.extend([position] * batch.num_rows)
        return Decoded(one_batch(batches, self.schema), index, bad)

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        batch.validate(full=True)  # bytes from outside may point anywhere
        return conform(batch, self.schema)


def _ipc_batches(value: bytes) -> list[pa.RecordBatch]:
    buffer = pa.py_buffer(value)
    if value.startswith(b"ARROW1"):
        file = pa.ipc.open_file(buffer)
        return [file.get_batch(index) for index in range(file.num_record_batches)]
    with pa.ipc.open_stream(buffer) as stream:
        return list(stream)


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows of ``batches`` as one."""
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema)


def decode_each(values: Sequence[bytes], schema: pa.Schema, read: Callable[[bytes], dict[str, Any]]) -> Decoded:
    """For formats whose libraries read value by value: ``read`` gives a row or raises `BadValue`."""
    rows: list[dict[str, Any]] = []
    index: list[int] = []
    bad: list[Undecodable] = []
    for position, value in enumerate(values):
        try:
            rows.append(read(value))
            index.append(position)
        except BadValue as error:
            bad.append(Undecodable(position, str(error), error.schema_version))
    try:
        return Decoded(_from_rows(rows, schema), index, bad)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    # Some value does not fit its column (a string with a lone surrogate, a decimal of too many digits): find it.
    batches, kept = [], []
    for position, row in zip(index, rows, strict=True):
        try:
            batches.append(_from_rows([row], schema))
            kept.append(position)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            bad.append(Undecodable(position, str(error)))
    return Decoded(one_batch(batches, schema), kept, sorted(bad, key=lambda one: one.index))


def _from_rows(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
    )
