"""Arrow's own stream or file, from somebody who may have forged its lengths.

Arrow takes the lengths that a message claims for its buffers, and reserves as much before it looks at the bytes. So
each message is looked at here before Arrow gets it, whatever the stream comes from and however it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.arrow_footer import END, FooterBlock, Span, span_of
from laketier.codecs.arrow_sizes import expanded_bytes
from laketier.codecs.bounds import (
    BLOCK_BYTES,
    DECIMAL_SCALE,
    EXPANSION,
    MIB,
    SCHEMA_BYTES,
    SCHEMA_DEPTH,
    ZERO_SIZE_ROWS,
)
from laketier.codecs.decoding import BadValue
from laketier.codecs.flatbuffer import Table

_CONTINUATION = 0xFFFFFFFF
_SCHEMA, _DICTIONARY, _RECORD_BATCH = 1, 2, 3
_SLICE_ROWS = 131_072


class CheckedMessages:
    """The messages of ``file`` as a stream for Arrow, each checked before it is handed on. ``size``: how many bytes of
    it they are. ``allowed``: so many bytes a message may expand to. ``whole``: whether the bytes are known to be all,
    so that they need no mark of their end. ``bare``: the bytes of a first message that no length comes before."""

    closed = False

    def __init__(self, file: Any, size: int, allowed: int = BLOCK_BYTES, *, whole: bool = False, bare: int = 0) -> None:
        self._file = file
        self._bare = bare
        self._size = self._left = size
        self._allowed = allowed
        self._whole = whole
        self._ready: list[bytes] = []
        self._ended = False
        self.blocks: list[FooterBlock] = []
        """Of the messages with rows and dictionaries that were handed on; they begin from where the stream does."""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """The file is its owner's."""

    def read(self, size: int = -1) -> bytes:
        """What Arrow calls, for each part of a message on its own: a large body is not copied. Raises `BadValue` for a
        message that claims what can't be."""
        if not self._ready and not self._ended:
            self._ready = self._message()
        if self._ready and len(self._ready[0]) == size:
            return self._ready.pop(0)
        data = b"".join(self._ready)
        taken, rest = (data, b"") if size < 0 else (data[:size], data[size:])
        self._ready = [rest] if rest else []
        return taken

    def refuse_more(self) -> None:
        """Raise `BadValue` where anything but zeros and more such marks, as of a writer that was closed twice, follows
        the mark of the end: Arrow reads one stream, and whatever lies behind it, as the next of some that were joined,
        would be lost."""
        while rest := self._take(min(MIB, self._left)):
            if rest.strip(END):  # of its bytes alone no message is made
                more = self._left + len(rest)
                raise BadValue(
                    f"{more:,} bytes follow the mark of its end, as where several were joined; land each alone"
                )

    def _message(self) -> list[bytes]:
        if self._bare:
            return self._without_length()
        begins = self._size - self._left
        prefix = [self._take(4)]
        if not prefix[0]:
            if not self._whole:
                raise BadValue("it has no mark of its end: it was cut off")
            self._ended = True
            return []
        length = int.from_bytes(prefix[0], "little")
        if length == _CONTINUATION:
            prefix.append(self._take(4))
            length = int.from_bytes(prefix[1], "little")
        if length == 0:
            self._ended = True
            return prefix
        _check_length(length)
        if length > self._left:
            raise BadValue(f"a message claims {length:,} bytes of metadata, where {self._left:,} are left")
        metadata = self._take(length)
        body_length = _body_length(metadata)
        if not 0 <= body_length <= self._left:
            raise BadValue(f"a message claims {body_length:,} bytes, where {self._left:,} are left")
        body = self._take(body_length)
        if _check(metadata, body, self._allowed) in (_DICTIONARY, _RECORD_BATCH):
            self.blocks.append(FooterBlock(begins, sum(map(len, prefix)) + length, body_length))
        return [*prefix, metadata, body] if body else [*prefix, metadata]

    def _without_length(self) -> list[bytes]:
        """The message with its length, which Arrow needs."""
        _check_length(self._bare)
        metadata, self._bare = self._take(self._bare), 0
        if _body_length(metadata) or _check(metadata, b"", self._allowed) != _SCHEMA:
            raise BadValue("it begins with no schema")
        return [END[:4], len(metadata).to_bytes(4, "little"), metadata]

    def _take(self, size: int) -> bytes:
        found: bytes = self._file.read(min(size, self._left))
        self._left -= len(found)
        if found and len(found) < size:
            raise BadValue("it was cut off")
        return found


def _check_length(length: int) -> None:
    if length > SCHEMA_BYTES:
        raise BadValue(f"a message claims {length:,} bytes of metadata, and {SCHEMA_BYTES:,} are the most")


def _body_length(metadata: bytes) -> int:
    try:
        return Table.root(metadata).number(3, "<q")
    except (struct.error, ValueError, RecursionError) as error:
        raise BadValue(f"a message is damaged: {error}") from None


def _check(metadata: bytes, body: bytes, allowed: int) -> int:
    """Which kind of message it is. Raises `BadValue` for more rows than the bytes can hold, and for buffers that claim
    to expand beyond bounds."""
    try:
        message = Table.root(metadata)
        kind, header = message.number(1, "<B"), message.table(2)
        if kind == _DICTIONARY and header is not None:
            header = header.table(1)
        if kind not in (_DICTIONARY, _RECORD_BATCH) or header is None:
            return kind
        rows = header.number(0, "<q")
        expanded = _expanded(header, body)
    except (struct.error, ValueError) as error:
        raise BadValue(f"a message is damaged: {error}") from None
    if expanded > max(allowed, EXPANSION * len(body)) or expanded > max(16 * allowed, 8 * len(body)):
        raise BadValue(f"{len(body):,} bytes claim to expand to {expanded:,}")
    if rows > max(ZERO_SIZE_ROWS, 8 * expanded):
        raise BadValue(f"{expanded:,} bytes claim to be {rows:,} rows")
    return kind


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
    with _stream(_messages(file, span_of(file, size), BLOCK_BYTES)) as stream:
        return stream.schema


def ipc_batches(buffer: pa.Buffer, allowed: int) -> Iterator[pa.RecordBatch]:
    """The rows of one value, at most ``allowed`` bytes for each batch. A value is whole, as its log has its length, so
    a stream needs no mark of its end. Raises as `ipc_file`, before the first."""
    allowed = max(allowed, BLOCK_BYTES)
    found = list(ipc_file(pa.BufferReader(buffer), len(buffer), allowed, whole=True))
    if sum(batch.nbytes for batch in found) > 16 * allowed:
        raise BadValue("it expands beyond bounds")
    return iter(found)


def ipc_file(file: Any, size: int, allowed: int = BLOCK_BYTES, *, whole: bool = False) -> Iterator[pa.RecordBatch]:
    """The rows, checked, in batches of a bounded number. ``whole``: whether a stream may lack the mark of its end.
    Raises `BadValue`, and what Arrow raises over damage."""
    span = span_of(file, size)
    count = 0
    messages = _messages(file, span, allowed, whole=whole)
    with _stream(messages) as stream:
        for batch in stream:
            count += 1
            batch.validate(full=True)  # bytes from outside may point anywhere
            for start in range(0, batch.num_rows, _SLICE_ROWS):
                part = batch.slice(start, _SLICE_ROWS)
                if sum(map(expanded_bytes, part.columns)) > max(allowed, 4 * batch.get_total_buffer_size()):
                    raise BadValue("its rows expand beyond bounds")
                yield part
    messages.refuse_more()
    if span.batches is not None and span.batches != count:
        raise BadValue(f"its footer tells of {span.batches} batches, and it has {count}")
    there = [each._replace(begins=span.start + each.begins) for each in messages.blocks]
    if span.blocks is not None and span.blocks != there:
        raise BadValue("its footer tells of other places of rows than it has: readers of files find other ones")


def _messages(file: Any, span: Span, allowed: int, *, whole: bool = False) -> CheckedMessages:
    file.seek(span.start)
    whole = whole or span.batches is not None
    return CheckedMessages(file, span.end - span.start, allowed, whole=whole, bare=span.bare)


def _stream(messages: CheckedMessages) -> Any:
    stream = pa.ipc.open_stream(pa.PythonFile(messages, mode="r"))
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
    if isinstance(kind, pa.BaseExtensionType):
        check_type(kind.storage_type, deep + 1)
    if pt.is_dictionary(kind):
        check_type(kind.value_type, deep + 1)
    for index in range(kind.num_fields if pt.is_nested(kind) else 0):
        check_type(kind.field(index).type, deep + 1)
