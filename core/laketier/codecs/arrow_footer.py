"""Where the messages of an Arrow file are, as its footer tells."""

from __future__ import annotations

import struct
from itertools import starmap
from typing import Any, NamedTuple

from laketier.codecs.decoding import BadValue
from laketier.codecs.flatbuffer import Table

MAGIC = b"ARROW1"
_EIGHT, _ALIGNMENT = 8, 64
"""Bytes: what messages are aligned to, at least and at most."""
_TAIL = 4 + len(MAGIC)
_ROOT = 4
"""Bytes before the root of a message that has nothing else there. No message is as short."""
END = (0xFFFFFFFF).to_bytes(4, "little") + bytes(4)
"""The mark of the end of a stream."""


class FooterBlock(NamedTuple):
    """Where a message is in a file, as a footer says it. In bytes."""

    begins: int
    metadata: int
    body: int


class Span(NamedTuple):
    """Where the messages are. ``batches``: how many of them are rows, as the footer of a file tells, and ``blocks``
    where these and the dictionaries begin. ``bare``: the bytes of the schema, where no length comes before it."""

    start: int
    end: int
    batches: int | None = None
    blocks: list[FooterBlock] | None = None
    bare: int = 0


def span_of(file: Any, size: int) -> Span:
    """A file has zeros behind its magic, up to where its writer aligns messages, and a footer behind them."""
    head = file.read(_ALIGNMENT + len(MAGIC))
    if head[: len(MAGIC)] != MAGIC:
        return Span(0, size)
    zeros = len(head) - len(head[len(MAGIC) :].lstrip(b"\0"))
    start = max(_EIGHT, zeros // _EIGHT * _EIGHT)  # a length, which old writers begin with, may have zeros too
    end = size - _TAIL
    file.seek(max(0, end))
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little", signed=True)
    if tail[4:] != MAGIC or not 0 < length <= end - start:
        raise BadValue("it has no footer: it was cut off")
    file.seek(end - length)
    try:
        told = file.read(length)
        footer = Table.root(told)
        batches, dictionaries = (list(starmap(FooterBlock, footer.structs(field, "<qi4xq"))) for field in (3, 2))
    except (struct.error, ValueError) as error:
        raise BadValue(f"its footer is damaged: {error}") from None
    if batches != sorted(batches):
        raise BadValue("its footer tells of batches in another order than they have")
    if batches and dictionaries and batches[0] < min(dictionaries):
        raise BadValue(
            "its dictionaries lie behind its rows, as Polars' write_ipc leaves them: write it by write_ipc_stream, as "
            "Parquet, or with texts for categories"
        )
    blocks = sorted(batches + dictionaries)
    stop = _first_of(told + tail, file, end - length)
    file.seek(start)
    # Polars' files begin so: the first bytes are the schema's own, which tell where in it the root is.
    is_bare = int.from_bytes(file.read(4), "little") == _ROOT
    bare = max(0, (blocks[0].begins if blocks else stop - len(END)) - start) if is_bare else 0
    return Span(start, stop, len(batches), blocks, bare)


def _first_of(closing: bytes, file: Any, begins: int) -> int:
    """Where the first of equal footers begins: a writer that is closed twice writes the mark and its footer again."""
    earlier = closing + END
    while begins >= len(earlier):
        file.seek(begins - len(earlier))
        if file.read(len(earlier)) != earlier:
            break
        begins -= len(earlier)
    return begins
