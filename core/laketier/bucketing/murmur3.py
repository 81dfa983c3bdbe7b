"""Murmur3-32, vectorised: one hash per row, all rows of a column at a time.

Two variants differ in the last one to three bytes of a value: the standard one (Iceberg) mixes them as one partial
word, Flink's (Fluss, Paimon) mixes each, sign-extended, as a word of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from laketier.bucketing.rows import ByteRows

Hashes = npt.NDArray[np.uint32]

STANDARD_SEED = 0
FLINK_SEED = 42

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_FIVE = np.uint32(5)
_ADD = np.uint32(0xE6546B64)


def murmur3_words(words: Iterable[Hashes], rows: int, seed: int) -> Hashes:
    """Hash rows that all have the same whole number of words: one array per word position, little-endian."""
    hashes = np.full(rows, seed, dtype=np.uint32)
    count = 0
    for word in words:
        _mix(hashes, word)
        count += 1
    return _finish(hashes, np.uint32(4 * count))


def murmur3_standard(rows: ByteRows) -> Hashes:
    """The reference algorithm, seed 0."""
    hashes = _body(rows, STANDARD_SEED)
    tail = np.zeros(len(hashes), dtype=np.uint32)
    for position in range(3):
        index, byte = _tail_bytes(rows, position)
        tail[index] |= byte.astype(np.uint32) << np.uint32(8 * position)
    hashes ^= _scramble(tail)
    return _finish(hashes, rows.lengths.astype(np.uint32))


def murmur3_flink(rows: ByteRows) -> Hashes:
    """Flink's variant, seed 42."""
    hashes = _body(rows, FLINK_SEED)
    for position in range(3):
        index, byte = _tail_bytes(rows, position)
        part = hashes[index]
        _mix(part, byte.view(np.int8).astype(np.int32).view(np.uint32))
        hashes[index] = part
    return _finish(hashes, rows.lengths.astype(np.uint32))


def flink_bit_mix(codes: Hashes) -> npt.NDArray[np.int64]:
    """Flink's ``MathUtils.murmurHash`` of each code: not negative."""
    hashes = np.zeros(len(codes), dtype=np.uint32)
    _mix(hashes, codes)
    signed = _finish(hashes, np.uint32(4)).view(np.int32).astype(np.int64)
    signed[signed == -(2**31)] = 0
    return np.abs(signed)


def _body(rows: ByteRows, seed: int) -> Hashes:
    """Mix the whole words of each row. Rows are taken longest first, so the rows that still have a word at some
    position are always the first ones, and no position costs more than the rows that reach it."""
    hashes = np.full(len(rows.lengths), seed, dtype=np.uint32)
    words = rows.lengths >> 2
    longest = int(words.max(initial=0))
    if longest == 0:
        return hashes
    view = np.ndarray(shape=(len(rows.data) - 3,), dtype="<u4", buffer=rows.data.data, strides=(1,))
    if longest == int(words.min()):
        for position in range(longest):
            _mix(hashes, view[rows.starts + 4 * position])
        return hashes
    order = np.argsort(-words, kind="stable")
    starts = rows.starts[order]
    reach = len(words) - np.searchsorted(words[order][::-1], np.arange(longest), side="right")
    for position, active in enumerate(reach.tolist()):
        _mix(hashes[:active], view[starts[:active] + 4 * position])
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def _tail_bytes(rows: ByteRows, position: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint8]]:
    """The rows whose tail is longer than ``position``, and the byte there."""
    index = np.flatnonzero((rows.lengths & 3) > position)
    return index, rows.data[rows.starts[index] + (rows.lengths[index] & ~3) + position]


def _scramble(word: Hashes) -> Hashes:
    """A word before it is mixed in: a new array."""
    word = word * _C1
    _rotate(word, 15)
    word *= _C2
    return word


def _mix(hashes: Hashes, word: Hashes) -> None:
    hashes ^= _scramble(word)
    _rotate(hashes, 13)
    hashes *= _FIVE
    hashes += _ADD


def _rotate(values: Hashes, bits: int) -> None:
    high = values >> np.uint32(32 - bits)
    values <<= np.uint32(bits)
    values |= high


def _finish(hashes: Hashes, lengths: Hashes | np.uint32) -> Hashes:
    hashes ^= lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(0xC2B2AE35)
    hashes ^= hashes >> np.uint32(16)
    return hashes
