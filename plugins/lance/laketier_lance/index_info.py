"""What an index covers, as one version of its dataset tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from laketier.spi import CorruptTable, IndexInfo, IndexKind
from laketier_lance.dataset import reading
from laketier_lance.index_settings import described_settings, kind_of, told_settings
from laketier_lance.index_units import fragment_of, unit_rows

if TYPE_CHECKING:
    from lance import LanceDataset


def covered_by(found: Any) -> set[int]:
    """The fragments in it, also those that the dataset has no more."""
    return {int(each) for segment in found.segments for each in segment.fragment_ids}


def fragment_rows(dataset: LanceDataset) -> dict[int, int]:
    """The rows of each fragment by its id, in the order of the dataset, without deleted ones."""
    return {fragment_of(unit): rows for unit, rows in unit_rows(dataset, dataset.schema.names[0]).items()}


def segments_in_order(found: Any, rows: Mapping[int, int]) -> Sequence[tuple[str, int]]:
    """The segments of an index and their rows, in the order in which the dataset has their first fragments."""
    place = {fragment: at for at, fragment in enumerate(rows)}
    order = []
    for each in found.segments:
        covered = [int(fragment) for fragment in each.fragment_ids if int(fragment) in rows]
        first = min((place[fragment] for fragment in covered), default=-1)
        order.append((first, each.uuid, sum(rows[fragment] for fragment in covered)))
    return [(segment, count) for _, segment, count in sorted(order)]


def index_info(dataset: LanceDataset, found: Any, rows: Mapping[int, int]) -> IndexInfo:
    """An index at the version of ``dataset``. Raises `TableError`."""
    covered = covered_by(found)
    segments = segments_in_order(found, rows)
    damage, deleted, options = None, 0, described_settings(found)
    try:
        options = told_settings(dataset, found)
        deleted = _deleted(dataset, found, sum(rows[each] for each in covered if each in rows))
    except CorruptTable as error:
        damage = f"{error.where}: {error.what}" + (f", because {error.why}" if error.why else "")
    made = [each.created_at for each in found.segments if each.created_at is not None]
    return IndexInfo(
        name=found.name,
        column=",".join(found.field_names),
        kind=str(kind_of(found) or found.index_type),
        options=options,
        segments=tuple(segment for segment, _ in segments),
        rows_indexed=sum(count for each, count in rows.items() if each in covered),
        rows_not_indexed=sum(count for each, count in rows.items() if each not in covered),
        snapshot_id=int(dataset.version),
        bytes=found.total_size_bytes,
        segment_rows=tuple(count for _, count in segments),
        rows_deleted=deleted,
        built_at=int(max(made).timestamp() * 1000) if made else None,
        damage=damage,
    )


def _deleted(dataset: LanceDataset, found: Any, live: int) -> int:
    """The rows that a full-text index counts, though they were deleted. Other kinds count nothing."""
    if kind_of(found) is not IndexKind.INVERTED:
        return 0
    with reading(dataset.uri):
        segments = dataset.stats.index_stats(found.name)["segments"]
    return max(0, sum(int(each.get("num_docs", 0)) for each in segments) - live)
