"""Arrow's own stream or file, from somebody who may have forged its lengths.

Arrow takes the lengths that a message claims for its buffers, and reserves as much before it looks at the bytes. So
each message is looked at here before Arrow gets it, whatever the stream comes from and however it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.codecs.bounds import BLOCK_BYTES, DECIMAL_SCALE, EXPANSION, SCHEMA_BYTES, SCHEMA_DEPTH, ZERO_SIZE_ROWS
from laketier.codecs.decoding import BadValue
from laketier.codecs.flatbuffer import Table

MAGIC = b"ARROW1"
_START = len(MAGIC) + 2
_CONTINUATION = 0xFFFFFFFF
_SCHEMA, _DICTIONARY, _RECORD_BATCH = 1, 2, 3
_SLICE_ROWS = 131_072


class CheckedMessages:
    """The messages of ``file`` as a stream for Arrow, each checked before it is handed on. ``size``: of the file.
    ``allowed``: so many bytes a message may expand to."""

    closed = False

    def __init__(self, file: Any, size: int, allowed: int = BLOCK_BYTES) -> None:
        self._file = file
        self._left = size
        self._allowed = allowed
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """The file is its owner's."""

    def read(self, size: int = -1) -> bytes:
        """What Arrow calls. Raises `BadValue` for a message that claims what can't be."""
        if not self._ready and not self._ended:
            self._ready = self._message()
        if size < 0 or size >= len(self._ready):
            taken, self._ready = self._ready, b""
            return taken
        taken, self._ready = self._ready[:size], self._ready[size:]
        return taken

    def _message(self) -> bytes:
        prefix = self._take(4)
        if not prefix:
            raise BadValue("it has no mark of its end: it was cut off")
        length = int.from_bytes(prefix, "little")
        if length == _CONTINUATION:
            length_bytes = self._take(4)
            prefix += length_bytes
            length = int.from_bytes(length_bytes, "little")
        if length == 0:
            self._ended = True
            return prefix
        if length > min(self._left, SCHEMA_BYTES):
            raise BadValue(f"a message claims {length:,} bytes of metadata, where {self._left:,} are left")
        metadata = self._take(length)
        body_length = _body_length(metadata)
        if not 0 <= body_length <= self._left:
            raise BadValue(f"a message claims {body_length:,} bytes, where {self._left:,} are left")
        body = self._take(body_length)
        _check(metadata, body, self._allowed)
        return prefix + metadata + body

    def _take(self, size: int) -> bytes:
        found: bytes = self._file.read(size)
        self._left -= len(found)
        if found and len(found) < size:
            raise BadValue("it was cut off")
        return found


def _body_length(metadata: bytes) -> int:
    try:
        return Table.root(metadata).number(3, "<q")
    except (struct.error, ValueError, RecursionError) as error:
        raise BadValue(f"a message is damaged: {error}") from None


def _check(metadata: bytes, body: bytes, allowed: int) -> None:
    """Raise `BadValue` for more rows than the bytes can hold, and for buffers that claim to expand beyond bounds."""
    try:
        message = Table.root(metadata)
        kind, header = message.number(1, "<B"), message.table(2)
        if kind == _DICTIONARY and header is not None:
            header = header.table(1)
        if kind not in (_DICTIONARY, _RECORD_BATCH) or header is None:
            return
        rows = header.number(0, "<q")
        expanded = _expanded(header, body)
    except (struct.error, ValueError) as error:
        raise BadValue(f"a message is damaged: {error}") from None
    if expanded > max(allowed, EXPANSION * len(body)) or expanded > max(16 * allowed, 8 * len(body)):
        raise BadValue(f"{len(body):,} bytes claim to expand to {expanded:,}")
    if rows > max(ZERO_SIZE_ROWS, 8 * expanded):
        raise BadValue(f"{expanded:,} bytes claim to be {rows:,} rows")


def _expanded(batch: Table, body: bytes) -> int:
    if batch.table(3) is None:
        return len(body)
    total = 0
    for offset, length in batch.structs(2, "<qq"):
        if length <= 0:
            continue
        if not 0 <= offset <= offset + length <= len(body) or length < 8:
            raise BadValue(f"a buffer claims the bytes {offset:,} to {offset + length:,} of {len(body):,}")
        (claimed,) = struct.unpack_from("<q", body, offset)
        if claimed < -1:
            raise BadValue(f"a buffer claims to expand to {claimed:,} bytes")
        total += length if claimed == -1 else claimed  # -1: it is not compressed
    return total


def ipc_schema(file: Any, size: int) -> pa.Schema:
    """The columns that it begins with, be it a file or a stream. Raises `BadValue`, and what Arrow raises."""
    with _opened(file, size) as stream:
        return stream.schema


def ipc_batches(buffer: pa.Buffer, allowed: int) -> Iterator[pa.RecordBatch]:
    """The rows of one value, at most ``allowed`` bytes for each batch. Raises as `ipc_file`, before the first."""
    found = list(ipc_file(pa.BufferReader(buffer), len(buffer), max(allowed, BLOCK_BYTES)))
    if sum(batch.nbytes for batch in found) > 16 * max(allowed, BLOCK_BYTES):
        raise BadValue("it expands beyond bounds")
    return iter(found)


def ipc_file(file: Any, size: int, allowed: int = BLOCK_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows, checked, in batches of a bounded number. Raises `BadValue`, and what Arrow raises over damage."""
    held = None
    if file.read(len(MAGIC)) == MAGIC:
        held = pa.ipc.open_file(file).num_record_batches
    file.seek(0)
    count = 0
    with _opened(file, size, allowed) as stream:
        for batch in stream:
            count += 1
            batch.validate(full=True)  # bytes from outside may point anywhere
            for start in range(0, batch.num_rows, _SLICE_ROWS):
                part = batch.slice(start, _SLICE_ROWS)
                if sum(map(expanded_bytes, part.columns)) > max(allowed, 4 * batch.get_total_buffer_size()):
                    raise BadValue("its rows expand beyond bounds")
                yield part
    if held is not None and held != count:
        raise BadValue(f"its footer tells of {held} batches, and it has {count}")


def _opened(file: Any, size: int, allowed: int = BLOCK_BYTES) -> Any:
    start = _START if file.read(len(MAGIC)) == MAGIC else 0
    file.seek(start)
    stream = pa.ipc.open_stream(pa.PythonFile(CheckedMessages(file, size - start, allowed), mode="r"))
    for field in stream.schema:
        check_type(field.type)
    return stream


def check_type(kind: pa.DataType, deep: int = 0) -> None:
    """Raise `BadValue` for types that are nested too deeply, and for those that no array can have: Arrow takes the
    numbers of a type as they stand in the message, and computes with them."""
    if deep > SCHEMA_DEPTH:
        raise BadValue(f"its types are nested more than {SCHEMA_DEPTH} deep")
    if pt.is_decimal(kind) and not -DECIMAL_SCALE <= kind.scale <= DECIMAL_SCALE:
        raise BadValue(f"a column claims to be {kind}, and no decimal has that scale")
    if pt.is_fixed_size_binary(kind) and kind.byte_width < 0:
        raise BadValue(f"a column claims values of {kind.byte_width:,} bytes")
    if pt.is_fixed_size_list(kind) and kind.list_size < 0:
        raise BadValue(f"a column claims lists of {kind.list_size:,} values")
    if pt.is_dictionary(kind):
        check_type(kind.value_type, deep + 1)
    for index in range(kind.num_fields if pt.is_nested(kind) else 0):
        check_type(kind.field(index).type, deep + 1)


def expanded_bytes(array: pa.Array) -> int:
    """How many bytes of text it is when nothing is said once for many rows, as in dictionaries and views."""
    kind = array.type
    if pt.is_dictionary(kind):
        lengths = _lengths(array.dictionary)
        return 0 if lengths is None else pc.sum(pc.take(lengths, array.indices)).as_py() or 0
    if pt.is_struct(kind):
        return sum(map(expanded_bytes, array.flatten()))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind) or pt.is_fixed_size_list(kind):
        inner = pa.ListArray.flatten(array) if pt.is_map(kind) else array.flatten()
        return expanded_bytes(inner)
    lengths = _lengths(array) if pt.is_string_view(kind) or pt.is_binary_view(kind) else None
    return 0 if lengths is None else pc.sum(lengths).as_py() or 0


def _lengths(array: pa.Array) -> pa.Array | None:
    kind = array.type
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)  # a view begins with its length
        return pa.array(views[array.offset : array.offset + len(array), 0].astype(np.int64))
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind):
        return pc.binary_length(array).cast(pa.int64())
    return None
