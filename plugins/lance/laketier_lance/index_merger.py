"""Merging segments of an index, on an executor: one that covers what they covered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laketier.spi import (
    BuiltIndexPart,
    IndexPart,
    TableChanged,
    TableError,
)
from laketier_lance.dataset import has_moved, indexes_of, lance_errors, reason
from laketier_lance.index_builder import BoundedIndexBuilder, built_part, new_segment
from laketier_lance.index_info import fragment_rows
from laketier_lance.index_resources import is_merged_within
from laketier_lance.index_settings import is_vector
from laketier_lance.index_units import deletions
from laketier_lance.vector_model import VectorModel, model_of

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index


@dataclass(frozen=True)
class LanceIndexMerger(BoundedIndexBuilder):
    """The units of its parts are ids of segments. The new one is made of their files, or, where `is_merged_within` says
    no, of the rows that they cover: such a build keeps to its limit, and answers alike. So it is where a compaction
    moved fragments without their indexes: of files, Lance makes a segment whose rows are where they were before."""

    def build(self, part: IndexPart) -> BuiltIndexPart:
        dataset = self.opened()
        segments, size = self._segments(dataset, part)
        covered = {int(each) for segment in segments for each in segment.fragment_ids}
        there = {each: rows for each, rows in fragment_rows(dataset).items() if each in covered}
        gone: dict[int, str] = {}
        try:
            if not there or (is_merged_within(self.spec.kind, self.resources, size) and not has_moved(dataset)):
                merged = dataset.merge_existing_index_segments(segments)
            else:
                gone = {each: file for each, file in deletions(dataset).items() if each in there}
                merged = new_segment(dataset, self.spec, there, self.resources, self._model(part))
                merged = replace(merged, fragment_ids=covered)  # type: ignore[arg-type] # also of fragments that are gone
        except lance_errors(TypeError, NotImplementedError) as error:
            raise TableError(
                f"Lance could not merge {len(segments)} segments of index {self.spec.name!r}",
                where=self.location,
                why=reason(error),
                fix="Build the index anew (mode `replace`).",
            ) from error
        rows = sum(there.values())
        return built_part(self.plan_id, self.location, self.spec, self.snapshot_id, part, merged, rows, gone)

    def _model(self, part: IndexPart) -> VectorModel | None:
        """Of an index of vectors: all its segments have the same, or none is added to it."""
        if not is_vector(self.spec.kind):
            return None
        return model_of(self.location, self.options.storage_options(), part.units[0])

    def _segments(self, dataset: LanceDataset, part: IndexPart) -> tuple[list[Index], int | None]:
        """The segments of a part, and the bytes of their files; None where Lance does not tell them."""
        from lance.dataset import Index

        found = next((each for each in indexes_of(dataset) if each.name == self.spec.name), None)
        there = {} if found is None else {each.uuid: each for each in found.segments}
        if found is None or not set(part.units) <= set(there):
            raise TableChanged(
                f"segments of part {part.number} are not those of version {self.snapshot_id}",
                where=self.location,
                why="the table was dropped and made again",
                fix="Merge the index again.",
            )
        sizes = [size for unit in part.units if (size := there[unit].size_bytes) is not None]
        told = sum(sizes) if len(sizes) == len(part.units) else None
        segments = [
            Index(
                uuid=unit,
                name=self.spec.name,
                fields=list(found.fields),
                dataset_version=there[unit].dataset_version_at_last_update,
                fragment_ids={int(each) for each in there[unit].fragment_ids},  # type: ignore[arg-type] # it takes a set
                index_version=there[unit].index_version,
                # Lance takes no more from it than which kind it is, and reads the settings from the segment's files.
                index_details=(found.type_url, b""),
            )
            for unit in part.units
        ]
        return segments, told
