"""Questions about a table's history, answered from its metadata: ancestors, rollbacks, old commits. Driver."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from laketier.spi import COLLECTOR, CorruptTable, RolledBack, UnknownOutcome, Watermark

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

WATERMARK = "laketier.watermark."
SEQUENCE = "laketier.sequence-number."
COMMIT_ID = "laketier.commit-id"
PIPELINE = "laketier.pipeline"
EPOCH = "laketier.epoch"


@dataclass(frozen=True)
class History:
    """The history of the branch ``main``. Immutable."""

    metadata: TableMetadata

    def ancestors(self) -> Iterator[Snapshot]:
        """The current snapshot and its ancestors, as far as they are retained."""
        by_id: dict[int | None, Snapshot] = {s.snapshot_id: s for s in self.metadata.snapshots}
        snapshot = self.metadata.current_snapshot()
        while snapshot is not None:
            yield snapshot
            snapshot = by_id.get(snapshot.parent_snapshot_id)

    def watermark(self, pipeline: str) -> Watermark | None:
        """The pipeline's watermark, unless the retained snapshots say that the one which carried it left the history.

        Looks at one property; walks the retained ancestors only when others have committed since, or the property is
        not there. Raises `RolledBack` and `CorruptTable`.
        """
        text = self.metadata.properties.get(WATERMARK + pipeline)
        if text is None:
            self._refuse_erased(pipeline)
            return None
        watermark = Watermark.from_json(text)
        if watermark.snapshot_id is not None and self.carries(watermark.snapshot_id, self.sequence(pipeline)) is False:
            raise rolled_back(watermark, pipeline)
        return watermark

    def pipelines(self) -> list[str]:
        """Those that have a watermark, and those of whose rounds the history still tells."""
        properties = (key.removeprefix(WATERMARK) for key in self.metadata.properties if key.startswith(WATERMARK))
        return list(dict.fromkeys([*properties, *(found for found in map(_pipeline, self.ancestors()) if found)]))

    def _refuse_erased(self, pipeline: str) -> None:
        """Others may remove any property, also all that they do not know. Whoever takes a pipeline for a new one then
        loads all its rows again."""
        if pipeline == COLLECTOR:  # asked of each round; a round whose files were collected is refused by itself
            return
        published = next((snapshot for snapshot in self.ancestors() if _pipeline(snapshot) == pipeline), None)
        if published is None or published.summary is None:
            return
        raise RolledBack(
            f"the table's history holds epoch {published.summary.get(EPOCH)} of the pipeline, and its watermark "
            "is gone from the properties",
            where=f"pipeline {pipeline!r}",
            why=f"another program removed {WATERMARK}{pipeline}, perhaps with all properties that it does not know",
            fix="Set that property again as an older metadata file has it, or find out which epoch the table's rows "
            "end with and run `laketier pipeline adopt`. If none of its rows are there, run `laketier pipeline "
            "forget`.",
        )

    def sequence(self, pipeline: str) -> int | None:
        """The sequence number of the snapshot that carried the pipeline's watermark; None where others removed the
        property that says it. Raises `CorruptTable`."""
        text = self.metadata.properties.get(SEQUENCE + pipeline)
        if text is not None and not text.isdecimal():
            raise CorruptTable(f"the property {SEQUENCE}{pipeline} is no number", why=repr(text))
        return None if text is None else int(text)

    def carries(self, snapshot_id: int, sequence: int | None) -> bool | None:
        """`carried` by the metadata of today."""
        found = self.metadata.snapshots
        links = {s.snapshot_id: Link(s.snapshot_id, s.parent_snapshot_id, s.sequence_number) for s in found}
        return carried(links, self.metadata.current_snapshot_id, snapshot_id, sequence)

    def _all_retained(self, after: int, before: int) -> bool:
        """Whether every snapshot with a sequence number between the two is still there: each has one of its own."""
        return _all_there({s.sequence_number for s in self.metadata.snapshots}, after, before)

    def landed(self, commit_id: str, since: int | None) -> bool:
        """Whether a retained snapshot has this commit id. ``since``: the last sequence number before the first
        attempt to publish; None when that is not known.

        Raises `UnknownOutcome` when it may have landed in a snapshot that has expired.
        """
        if any(s.summary is not None and s.summary.get(COMMIT_ID) == commit_id for s in self.metadata.snapshots):
            return True
        if self._all_retained(since or 0, self.metadata.next_sequence_number()):
            return False
        raise UnknownOutcome(
            f"commit {commit_id} is in no retained snapshot, and older ones have expired",
            why="the history does not reach back to where the commit began",
            fix="Count the rows of the batch in the table before you run it again.",
        )


class Link(NamedTuple):
    """A snapshot, as far as its place in the history goes. ``sequence``: None in a table of version 1."""

    snapshot_id: int
    parent: int | None
    sequence: int | None


def carried(links: Mapping[int, Link], current: int | None, snapshot_id: int, sequence: int | None) -> bool | None:
    """Whether a snapshot is the ``current`` one or an ancestor of it; None where so many have expired that the retained
    ones, ``links``, don't say. ``sequence``: its sequence number, if that is known."""
    link = None if current is None else links.get(current)
    if link is None:
        return False
    last = link
    for _ in links:
        if link is None:
            break
        if link.snapshot_id == snapshot_id:
            return True
        last, link = link, None if link.parent is None else links.get(link.parent)
    # The chain ends at its root, or where it was expired: pyiceberg's expiry makes the two look alike. Sequence
    # numbers only grow along a chain, so one that ends at or below the carrier's does not contain it.
    carrier = links.get(snapshot_id)
    if carrier is not None:  # others may have removed the property that says it
        sequence = carrier.sequence
    if sequence is None:
        return None
    there = {each.sequence for each in links.values()}
    end = last.sequence or 0
    is_elsewhere = end <= sequence or (carrier is not None and _all_there(there, sequence, end))
    return False if is_elsewhere else None


def _all_there(numbers: Collection[int | None], after: int, before: int) -> bool:
    return all(number in numbers for number in range(after + 1, before))


def rolled_back(watermark: Watermark, pipeline: str) -> RolledBack:
    """The error for a watermark whose snapshot is no ancestor of the current one."""
    return RolledBack(
        f"snapshot {watermark.snapshot_id}, which carried epoch {watermark.token.epoch}, is no longer part of the "
        "table's history",
        where=f"pipeline {pipeline!r}",
        why="the table was rolled back or replaced, or its main branch was set to another snapshot, and the property "
        "with the watermark stayed",
        fix="Find out which epoch the table's rows end with, then run `laketier pipeline adopt --epoch N`.",
    )


def _pipeline(snapshot: Snapshot) -> str | None:
    """The pipeline whose round made a snapshot."""
    return None if snapshot.summary is None else snapshot.summary.get(PIPELINE)
