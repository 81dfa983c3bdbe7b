"""The names of a table's buckets as buckets of a log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Partition:
    """A partition now. Its id never comes back, its name may: after a partition was dropped and made again, offsets
    begin again."""

    name: str
    id: int


@dataclass(frozen=True)
class Bucket:
    """``3``, or of a partitioned table ``eu#17/3``: partition, its id, and the bucket in it."""

    number: int
    partition: Partition | None = None

    def __str__(self) -> str:
        at = self.partition
        return str(self.number) if at is None else f"{at.name}#{at.id}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> Bucket:
        """What `__str__` wrote. Raises `ValueError` for anything else."""
        partition, slash, number = text.rpartition("/")
        if not slash:
            return cls(int(number))
        name, _, known = partition.rpartition("#")
        return cls(int(number), Partition(name, int(known)))
