"""Merging segments of an index, on an executor: one that covers what they covered, made of their files. The column is
not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laketier.spi import (
    BuiltIndexPart,
    IndexPart,
    IndexResources,
    IndexSpec,
    LakeIndexBuilder,
    TableChanged,
    TableError,
)
from laketier_lance.dataset import LANCE_ERRORS, open_dataset, reason
from laketier_lance.index_builder import built_part
from laketier_lance.index_info import fragment_rows
from laketier_lance.location import refuse_links
from laketier_lance.options import LanceOptions

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index


@dataclass(frozen=True)
class LanceIndexMerger(LakeIndexBuilder):
    """Plain data, picklable. The units of its parts are ids of segments."""

    plan_id: str
    location: str
    options: LanceOptions
    spec: IndexSpec
    snapshot_id: int

    def within(self, resources: IndexResources) -> LanceIndexMerger:
        """A merge takes no limit: of full text, Lance collects what it merges, however much that is."""
        return self

    def build(self, part: IndexPart) -> BuiltIndexPart:
        refuse_links(self.location)
        dataset = open_dataset(self.location, self.options.storage_options(), self.snapshot_id)
        segments = self._segments(dataset, part)
        try:
            merged = dataset.merge_existing_index_segments(segments)
        except (*LANCE_ERRORS, TypeError, NotImplementedError) as error:
            raise TableError(
                f"Lance could not merge {len(segments)} segments of index {self.spec.name!r}",
                where=self.location,
                why=reason(error),
                fix="Build the index anew (mode `replace`).",
            ) from error
        covered = {int(each) for each in merged.fragment_ids}
        rows = sum(count for each, count in fragment_rows(dataset).items() if each in covered)
        return built_part(self.plan_id, self.location, self.spec, self.snapshot_id, part, merged, rows, {})

    def _segments(self, dataset: LanceDataset, part: IndexPart) -> list[Index]:
        from lance.dataset import Index

        found = next((each for each in dataset.describe_indices() if each.name == self.spec.name), None)
        there = {} if found is None else {each.uuid: each for each in found.segments}
        if found is None or not set(part.units) <= set(there):
            raise TableChanged(
                f"segments of part {part.number} are not those of version {self.snapshot_id}",
                where=self.location,
                why="the table was dropped and made again",
                fix="Merge the index again.",
            )
        return [
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
