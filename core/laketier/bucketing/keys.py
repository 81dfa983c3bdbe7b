"""Bucket keys: which Arrow types can be one, and their values in the units that the bucket functions hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from laketier.bucketing.rows import Integers, fixed_width
from laketier.kit import conform
from laketier.spi import ConfigError, IncompatibleData, TableDescriptor


class KeyKind(Enum):
    """The kind of a key, independent of its Arrow type. Named as in Fluss."""

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    DECIMAL = "decimal"
    STRING = "string"
    BYTES = "bytes"


_KINDS: Mapping[int, KeyKind] = {
    pa.bool_().id: KeyKind.BOOLEAN,
    pa.int8().id: KeyKind.TINYINT,
    pa.int16().id: KeyKind.SMALLINT,
    pa.int32().id: KeyKind.INT,
    pa.int64().id: KeyKind.BIGINT,
    pa.float32().id: KeyKind.FLOAT,
    pa.float64().id: KeyKind.DOUBLE,
    pa.date32().id: KeyKind.DATE,
    pa.date64().id: KeyKind.DATE,
    pa.time32("s").id: KeyKind.TIME,
    pa.time64("us").id: KeyKind.TIME,
    pa.timestamp("us").id: KeyKind.TIMESTAMP,
    pa.decimal128(1).id: KeyKind.DECIMAL,
    pa.string().id: KeyKind.STRING,
    pa.large_string().id: KeyKind.STRING,
    pa.binary().id: KeyKind.BYTES,
    pa.large_binary().id: KeyKind.BYTES,
    pa.binary(1).id: KeyKind.BYTES,
}

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class BucketKey:
    """One key column. ``type`` is the type that its values are read as: plain, without dictionary or view."""

    name: str
    type: pa.DataType
    kind: KeyKind

    def column(self, batch: pa.RecordBatch) -> pa.Array:
        """The key's column as `type`, also from a dictionary, a view, or a type that fits losslessly. Raises
        `IncompatibleData`."""
        index = batch.schema.get_field_index(self.name)
        if index < 0:
            raise IncompatibleData(f"the bucket key {self.name!r} is missing", fix="Add the column to the input.")
        array = batch.column(index)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if array.type.equals(self.type):
            return array
        schema = pa.schema([pa.field(self.name, self.type)])
        return conform(pa.RecordBatch.from_arrays([array], names=[self.name]), schema).column(0)

    def integers(self, array: pa.Array) -> Integers:
        """Integers as they are, booleans as 0 and 1, dates as days, times as ms of the day, timestamps in their own
        unit, decimals of up to 18 digits unscaled."""
        match self.kind:
            case KeyKind.BOOLEAN:
                return fixed_width(array.cast(pa.uint8()), np.uint8).astype(np.int64)
            case KeyKind.DECIMAL:
                return fixed_width(array, np.dtype((np.int64, 2)))[:, 0]
            case KeyKind.TIME:
                return self.rescaled(array, "ms")
        values = fixed_width(array, f"i{self.type.bit_width // 8}").astype(np.int64, copy=False)
        return values // 86_400_000 if pt.is_date64(self.type) else values

    def rescaled(self, array: pa.Array, unit: str) -> Integers:
        """Times and timestamps in ``unit``, towards the past where that is coarser."""
        values = fixed_width(array, f"i{self.type.bit_width // 8}").astype(np.int64, copy=False)
        have, want = _PER_SECOND[self.type.unit], _PER_SECOND[unit]
        return values * (want // have) if want >= have else values // (have // want)

    @property
    def precision(self) -> int:
        """Of a decimal its digits, of a timestamp the digits of its fraction."""
        if self.kind is KeyKind.TIMESTAMP:
            return len(str(_PER_SECOND[self.type.unit])) - 1
        return int(self.type.precision)


def bucket_keys(
    descriptor: TableDescriptor, function: str, allowed: Mapping[KeyKind, str | None]
) -> tuple[BucketKey, ...]:
    """The keys of ``descriptor``. ``allowed`` names the kinds that ``function`` takes; those with a text are refused
    for that reason. Raises `ConfigError`."""
    if descriptor.buckets is None:
        raise ConfigError("the table has no buckets", fix="Set lake.bucket-by, for example to bucket(16, id).")
    keys = []
    for name in descriptor.buckets.keys:
        declared = descriptor.schema.field(name).type
        plain = _plain(declared)
        kind = _KINDS.get(plain.id)
        reason = (
            allowed.get(kind, "the function has no form for it") if kind else "it is not a scalar type of the function"
        )
        if kind is KeyKind.DECIMAL and plain.scale < 0:
            reason = "its scale is negative"
        if kind is None or reason is not None:
            usable = ", ".join(kind.value for kind, refusal in allowed.items() if refusal is None)
            raise ConfigError(
                f"{name!r} of type {declared} can't be a bucket key of the function {function!r}",
                why=reason,
                fix=f"Choose a column of one of these types: {usable}.",
            )
        keys.append(BucketKey(name, plain, kind))
    return tuple(keys)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that a column of ``kind`` is read as."""
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    if pt.is_string_view(kind):
        return pa.large_string()
    if pt.is_binary_view(kind):
        return pa.large_binary()
    if pt.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return kind
