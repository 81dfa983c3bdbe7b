"""What parts of an index cover: fragments by names that stay the same as long as an index of them stays right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from laketier_lance.fragments import rows_of
from laketier_lance.private import data_path

if TYPE_CHECKING:
    from lance import LanceDataset


def unit_rows(dataset: LanceDataset, column: str) -> dict[str, int]:
    """The rows of each fragment by its unit: its id, and the files that hold ``column``. A unit stays the same as long
    as an index of it stays right: deletes don't change it, and every rewrite of values does."""
    ids = set(_field_ids(dataset.lance_schema.field(column)))
    found = {}
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        files = [data_path(file) for file in metadata.files if ids.intersection(file.fields)]
        found["@".join([str(metadata.id), *files, *map(repr, metadata.overlays)])] = rows_of(fragment)
    return found


def fragment_of(unit: str) -> int:
    """The id of the fragment of a unit."""
    return int(unit.partition("@")[0])


def _field_ids(field: Any) -> list[int]:
    return [field.id(), *(each for child in field.children() for each in _field_ids(child))]


def deletions(dataset: LanceDataset) -> dict[int, str]:
    """The file of deleted rows of each fragment that has one, by the fragment's id."""
    found = {}
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        if metadata.deletion_file is not None:
            found[int(metadata.id)] = str(metadata.deletion_file.path(metadata.id))
    return found
