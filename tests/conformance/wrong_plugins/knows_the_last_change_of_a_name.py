"""Readers rename columns of older files by a list of former names and those that came after them. A column that got its
first name back has the name that it had in between, in each file with the first one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, FeatherTable, Source

from laketier import kit, spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot, whole_file
from laketier.registry import hookimpl

CAUGHT_BY = "test_reshape.py::test_a_column_gets_its_first_name_back"
SAYS = "values of a column that was name, then title, then name"
RENAMING = {**FEATURES, spi.Feature.RENAME_COLUMN: spi.FULL}


class RenamingTable(FeatherTable):
    features: ClassVar = RENAMING


@dataclass(frozen=True)
class Former:
    """A file, and of each name that a column had the one that came after it."""

    path: str
    after: dict[str, str]


class RenamingSource(Source):
    split_payload: ClassVar[type] = Former

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        kept = [*(snapshot.written_with(each).names for each in snapshot.files()), snapshot.schema.names]
        after: dict[str, str] = {}
        for before, now in pairwise(kept):
            after |= {old: new for old, new in zip(before, now, strict=False) if old != new}
        return whole_file(index, entry, Former(entry.path, after))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = str(self.table.location / self.table.layout.data_path(split.payload.path, where="a split"))
        with kit.naming_damage(path), pa.ipc.open_file(path) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                after = split.payload.after
                named = batch.rename_columns([after.get(name, name) for name in batch.schema.names])
                yield kit.conform(named.select([n for n in schema.names if n in named.schema.names]), schema)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin(
        "knows-the-last-change-of-a-name", features=RENAMING, table=RenamingTable, source=RenamingSource
    )
