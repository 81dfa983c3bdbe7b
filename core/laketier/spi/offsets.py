"""Positions and ranges of a log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from laketier.spi.errors import CorruptTable


class LogOffsets(Mapping[str, int]):
    """A position in a log: the next offset to read, per bucket. Immutable. Its text is canonical: equal positions have
    equal text in tokens."""

    def __init__(self, offsets: Mapping[str, int] | None = None) -> None:
        self._offsets = dict(sorted((offsets or {}).items()))

    def __getitem__(self, bucket: str) -> int:
        return self._offsets[bucket]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __hash__(self) -> int:
        return hash(self.to_text())

    def __repr__(self) -> str:
        return f"LogOffsets({self._offsets})"

    def to_text(self) -> str:
        """The position as canonical JSON."""
        return json.dumps(self._offsets, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> LogOffsets:
        """Read text that `to_text` wrote.

        Args:
            text: The text.

        Returns:
            The position.

        Raises:
            CorruptTable: The text is no position.
        """
        try:
            offsets = json.loads(text)
            if not isinstance(offsets, dict) or any(type(offset) is not int for offset in offsets.values()):
                raise TypeError("not a mapping of buckets to integers")
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptTable("the offsets of a log can't be read", why=f"{error}: {text[:200]!r}") from error
        return cls(offsets)


@dataclass(frozen=True)
class LogRange:
    """A range of a log. Both positions have the same buckets.

    Attributes:
        start: The first offsets.
        end: The offsets after the last ones.
    """

    start: LogOffsets
    end: LogOffsets

    @property
    def by_bucket(self) -> dict[str, tuple[int, int]]:
        """The buckets that have offsets in the range, each with its first offset and the one after its last. A plan
        has a split of each of them, and of no other bucket."""
        starts = ((bucket, self.start.get(bucket, 0), end) for bucket, end in self.end.items())
        return {bucket: (start, end) for bucket, start, end in starts if start < end}

    @property
    def is_empty(self) -> bool:
        """Whether the range holds no offset."""
        return not self.by_bucket

    @property
    def offsets(self) -> int:
        """The number of offsets in the range: at least the number of records."""
        return sum(end - start for start, end in self.by_bucket.values())


@dataclass(frozen=True)
class BucketBounds:
    """The offsets that a bucket holds. Integers from 0 to below 2**63.

    Attributes:
        earliest: The first offset.
        latest: The offset after the last one.
        latest_at: When the newest record was written, in ms since the epoch, UTC. None where that is unknown, or there
            is no record.
        initial: Where a reader starts that has read nothing of the bucket. None for ``earliest``; or for 0, where the
            reader has read other buckets of the log and this one came later. It may be lower than ``earliest``: the log
            then serves the range from there to ``latest`` although its records expired, as lake tables do from a
            snapshot.
    """

    earliest: int
    latest: int
    latest_at: int | None = None
    initial: int | None = None
