"""The dead letters of a round that was killed before it published its rows: the next round does not store them again.

Each is known by its record, and not by its offset alone. With other settings, another record of the same range may be a
bad one, or a dead letter a row; where only the offsets told, the former would be in neither table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from laketier.config import LakeConfig
from laketier.dead_letters.records import DeadLetter, scan_dead_letters
from laketier.spi import BadRecord

_BYTES = 16


def dead_letters_ahead(config: LakeConfig, start: Mapping[str, int], known: Mapping[str, int]) -> Iterator[DeadLetter]:
    """The dead letters beyond where the lake table has read to. Driver. Reads nothing where there are none.

    Args:
        config: The lake table.
        start: Where the lake table has read to, per bucket.
        known: Where the dead-letter table has read to, per bucket.

    Returns:
        The dead letters, in no order.
    """
    for bucket, end in known.items():
        first = start.get(bucket, 0)
        if end > first:
            yield from scan_dead_letters(config, bucket=bucket, offsets=(first, end)) or ()


def digests_ahead(config: LakeConfig, start: Mapping[str, int], known: Mapping[str, int]) -> frozenset[bytes]:
    """`record_digest` of each of `dead_letters_ahead`, for the tasks of a round."""
    return frozenset(record_digest(dead_letter.record) for dead_letter in dead_letters_ahead(config, start, known))


def record_digest(record: BadRecord) -> bytes:
    """What tells a bad record from others: its place and bytes. Of one without bytes its error, which tells a row from
    others."""
    told = record.error.encode("utf-8", "backslashreplace") if record.value is None else None
    digest = hashlib.sha256()
    for part in (record.bucket.encode(), str(record.offset).encode(), record.key, record.value, told):
        digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return digest.digest()[:_BYTES]
