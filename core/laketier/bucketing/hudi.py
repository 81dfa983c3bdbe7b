"""The bucket function of Apache Hudi, as Fluss applies it: Java's hash of a list of strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laketier.bucketing.assigner import KeyAssigner
from laketier.bucketing.keys import BucketKey, KeyKind, bucket_keys
from laketier.bucketing.murmur3 import Hashes
from laketier.bucketing.rows import ByteRows
from laketier.spi import BucketAssignerFactory, TableDescriptor, UnstorableRows

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"

_JAVA_TEXT = "Hudi hashes the text that Java makes of it, and that is not built yet"
_ALLOWED: Mapping[KeyKind, str | None] = {
    **dict.fromkeys(KeyKind),
    KeyKind.FLOAT: _JAVA_TEXT,
    KeyKind.DOUBLE: _JAVA_TEXT,
    KeyKind.TIMESTAMP: _JAVA_TEXT,
    KeyKind.BYTES: "Hudi's keys are text, and bytes have none",
}
_31 = np.uint32(31)
_31_INVERSE = np.uint32(pow(31, -1, 2**32))


class HudiAssigner(KeyAssigner):
    """Java's ``List<String>.hashCode()``, without its sign, modulo the count. A null is the text ``__null__`` in a
    single key and hashes as 0 in a composite one, where Hudi's own reserved texts and commas are refused."""

    function = "hudi"
    hashes_nulls = True

    def buckets(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        hashes = np.ones(len(columns[0]), dtype=np.uint32)
        for key, column in zip(self.keys, columns, strict=True):
            text = _text(key, column)
            if len(self.keys) == 1:
                text = text.fill_null(NULL_PLACEHOLDER)
            else:
                _refuse_reserved(key, text)
            element = java_string_hash(text)
            if text.null_count:
                element[text.is_null().to_numpy(zero_copy_only=False)] = 0
            hashes *= _31
            hashes += element
        return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % self.count


class HudiAssignerFactory(BucketAssignerFactory):
    """Takes any number of keys whose text Java and Arrow write alike."""

    def create(self, descriptor: TableDescriptor) -> HudiAssigner:
        keys = bucket_keys(descriptor, HudiAssigner.function, _ALLOWED)
        assert descriptor.buckets is not None
        return HudiAssigner(keys, descriptor.buckets.count)


def java_string_hash(text: pa.Array) -> Hashes:
    """Java's ``String.hashCode()`` of each value: a polynomial in 31 over its UTF-16 units.

    All units lie in one array; a unit at place ``j`` of it is weighted with 31 to the -j, so that differences of one
    running sum give every string's polynomial, up to the power that shifts it to its own end.
    """
    rows = ByteRows.of(text)
    first, last = int(rows.starts[0]), int(rows.starts[-1] + rows.lengths[-1])
    data = rows.data[first:last]
    starts, ends = rows.starts - first, rows.starts + rows.lengths - first
    units = data.astype(np.uint32)
    if len(data) and int(data.max()) >= 0x80:
        # A character takes a unit where its first byte is, and a second one if it needs four bytes.
        per_byte = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
        place = np.concatenate(([0], np.cumsum(per_byte)))
        starts, ends = place[starts], place[ends]
        units = np.frombuffer(data.tobytes().decode().encode("utf-16-le"), dtype="<u2").astype(np.uint32)
    weights = np.full(len(units) + 1, _31_INVERSE, dtype=np.uint32)
    weights[0] = 1
    np.cumprod(weights, dtype=np.uint32, out=weights)
    sums = np.zeros(len(units) + 1, dtype=np.uint32)
    np.cumsum(units * weights[:-1], dtype=np.uint32, out=sums[1:])
    powers = np.full(len(units) + 2, _31, dtype=np.uint32)
    powers[0] = _31_INVERSE
    np.cumprod(powers, dtype=np.uint32, out=powers)
    return (sums[ends] - sums[starts]) * powers[ends]


def _text(key: BucketKey, column: pa.Array) -> pa.Array:
    """What Java's ``String.valueOf`` makes of Fluss's value: dates are days, times ms of the day."""
    match key.kind:
        case KeyKind.STRING:
            return column
        case KeyKind.BOOLEAN:
            return column.cast(pa.string())
        case KeyKind.DECIMAL:
            return _plain_decimal(column)
    values = pa.array(key.integers(column)).cast(pa.string())
    return pc.if_else(column.is_valid(), values, pa.scalar(None, pa.string())) if column.null_count else values


def _plain_decimal(column: pa.Array) -> pa.Array:
    """``BigDecimal.toPlainString()``: never with an exponent, unlike Arrow's own text."""
    scale = column.type.scale
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), len(column), column.buffers(), offset=column.offset)
    if scale == 0:
        return unscaled.cast(pa.string())
    sign = pc.if_else(pc.less(unscaled, pa.scalar(0, unscaled.type)), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled.cast(pa.string()), "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, whole, ".", fraction, "")


def _refuse_reserved(key: BucketKey, text: pa.Array) -> None:
    for reserved, matches in (
        (",", pc.match_substring(text, ",")),
        (NULL_PLACEHOLDER, pc.equal(text, NULL_PLACEHOLDER)),
        (EMPTY_PLACEHOLDER, pc.equal(text, EMPTY_PLACEHOLDER)),
    ):
        if pc.any(matches).as_py():
            raise UnstorableRows(
                f"the bucket key {key.name!r} has a value with {reserved!r}",
                why="Hudi's composite record keys reserve it",
                fix="Replace it in the query, or bucket by a single key.",
            )
