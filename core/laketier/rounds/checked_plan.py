"""A source's plan of a range, held against the contract: a hole would be lost rows, an overlap doubled rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import NoReturn

from laketier.kit.library_errors import told
from laketier.spi import LogRange, LogSplit, PluginBroken


@dataclass(frozen=True)
class PlanCheck:
    """The splits of a plan for a range are held against it: they have all of its offsets, each once and in order.
    ``broken`` makes the error of a source that breaks its contract, from what is wrong and the rule."""

    wanted: LogRange
    broken: Callable[..., PluginBroken]

    def check(self, planned: Sequence[LogSplit]) -> None:
        """Raise `PluginBroken` for a plan that loses rows or reads some twice."""
        last: dict[str, LogSplit] = {}
        parts: dict[str, set[bytes]] = {}
        for split in planned:
            self._check_kinds(split)
            before = last.get(split.bucket)
            so_far = self.wanted.start.get(split.bucket, 0) if before is None else before.end
            if split.start == so_far:
                parts.pop(split.bucket, None)
            elif before is None or not _shares(before, split):
                self._refuse(split, so_far)
            else:
                others = parts.setdefault(split.bucket, {self._part(before)})
                if self._part(split) in others:
                    self._refuse(split, so_far)
                others.add(self._part(split))
            if split.end <= split.start:
                raise self.broken(
                    f"`plan` has a split from {split.start} to {split.end} of bucket {split.bucket!r}, which is empty"
                )
            last[split.bucket] = split
        self._check_ends({bucket: split.end for bucket, split in last.items()})

    def _check_kinds(self, split: LogSplit) -> None:
        if not isinstance(split, LogSplit):
            raise self.broken(f"`plan` has {split!r}, which is no LogSplit")
        if split.bucket not in self.wanted.end:
            raise self.broken(f"`plan` has bucket {split.bucket!r}, which the range has not")
        if type(split.start) is not int or type(split.end) is not int:
            raise self.broken(f"`plan` has the offsets {split.start!r} to {split.end!r}", "offsets are int")
        if not isinstance(split.bytes, Integral | None):
            raise self.broken(f"`plan` has a split of {split.bytes!r:.300} bytes", "the size of a split is int")

    def _check_ends(self, ends: Mapping[str, int]) -> None:
        """Refuse a plan that stops short of the range, or goes beyond it. ``ends``: by bucket, where its splits end."""
        for bucket, end in ends.items():
            if end != self.wanted.end[bucket]:
                raise self.broken(
                    f"`plan` ends at offset {end} of bucket {bucket!r}, and the range at {self.wanted.end[bucket]}"
                )
        for bucket, (start, end) in self.wanted.by_bucket.items():
            if bucket not in ends:
                raise self.broken(
                    f"`plan` leaves out bucket {bucket!r}, and the range has its offsets {start} to {end}",
                    "rows would be lost; where nothing is to be read, a split says so by its payload",
                )

    def _part(self, split: LogSplit) -> bytes:
        """Tells parts of the same offsets apart. A payload has no hash, and goes to its task as a pickle."""
        try:
            return pickle.dumps(split.payload)
        except Exception as error:
            raise self.broken(
                f"`plan` has the payload {split.payload!r:.300}, which can't be pickled: {told(error)}",
                "a payload is a frozen dataclass of the source's module",
            ) from error

    def _refuse(self, split: LogSplit, so_far: int) -> NoReturn:
        lost = split.start > so_far
        raise self.broken(
            f"`plan` has a split of bucket {split.bucket!r} that begins at offset {split.start}, "
            f"and those before it end at {so_far}",
            "rows would be lost" if lost else "rows would be read twice",
        )


def _shares(before: LogSplit, split: LogSplit) -> bool:
    """Whether two splits are parts of the same offsets, as the row groups of a file are. Their payloads say which."""
    same = (before.start, before.end) == (split.start, split.end)
    return same and split.payload is not None and before.payload is not None
