"""The dead letters of a round that was killed before it published its rows: the next round does not store them again.

Each is known by its record, and not by its offset alone. With other settings, another record of the same range may be a
bad one, or a dead letter a row; where only the offsets told, the former would be in neither table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

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


class DigestsAhead:
    """`record_digest` of each of `dead_letters_ahead`, for the tasks of a round. Driver. Order of calls: `noting` for
    the dead letters, which others may look at on the way, then `note_rest`. So they are read once."""

    def __init__(self) -> None:
        self._found: dict[str, set[bytes]] = {}
        self._left: Iterator[DeadLetter] = iter(())

    def noting(self, dead_letters: Iterator[DeadLetter]) -> Iterator[DeadLetter]:
        """Note each that is taken.

        Args:
            dead_letters: The dead letters.

        Returns:
            The same ones.
        """
        self._left = self._noted(dead_letters)
        return self._left

    def note_rest(self) -> None:
        """Note those that nobody took."""
        for _ in self._left:
            pass

    def of(self, buckets: Iterable[str]) -> frozenset[bytes]:
        """Look up those of some buckets of the log.

        Args:
            buckets: The buckets.

        Returns:
            Their digests.
        """
        return frozenset[bytes]().union(*(self._found.get(bucket, ()) for bucket in set(buckets)))

    def _noted(self, dead_letters: Iterator[DeadLetter]) -> Iterator[DeadLetter]:
        for each in dead_letters:
            self._found.setdefault(each.record.bucket, set()).add(record_digest(each.record))
            yield each


def record_digest(record: BadRecord) -> bytes:
    """What tells a bad record from others: its place and bytes. Of one without bytes its error, which tells a row from
    others."""
    told = record.error.encode("utf-8", "backslashreplace") if record.value is None else None
    digest = hashlib.sha256()
    for part in (record.bucket.encode(), str(record.offset).encode(), record.key, record.value, told):
        digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return digest.digest()[:_BYTES]
