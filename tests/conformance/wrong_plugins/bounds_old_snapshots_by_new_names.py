"""Bounds are found by the names that the newest snapshot has for the columns of a file, also where an older one is
read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from bounds_columns_by_their_former_names import RENAMING, RenamingSource, RenamingTable
from crooked import CrookedPlugin

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_reshape.py::test_filters_after_the_old_name_is_used_again"
SAYS = "rows were read by the filter word = 'c'"


class NewestSource(RenamingSource):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        manifests = self.table.manifests()
        names = manifests.metadata(manifests.current()[0]).schema.names
        equal = [leaf for leaf in filters if isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ]
        files = [entry for entry in snapshot.files() if all(self._holds(entry, leaf, names) for leaf in equal)]
        return files, filters

    def _holds(self, entry: FileEntry, leaf: spi.Leaf, names: Sequence[str]) -> bool:
        with pa.ipc.open_file(str(self.table.location / entry.path)) as file:
            rows = file.read_all()
        if leaf.column not in names[: rows.num_columns] or not isinstance(leaf.value, str):
            return True
        column = rows.column(names.index(leaf.column))
        if not pa.types.is_string(column.type):
            return True
        bounds = pc.min_max(column).as_py()
        return bounds["min"] is None or bool(bounds["min"] <= leaf.value <= bounds["max"])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin(
        "bounds-old-snapshots-by-new-names", features=RENAMING, table=RenamingTable, source=NewestSource
    )
