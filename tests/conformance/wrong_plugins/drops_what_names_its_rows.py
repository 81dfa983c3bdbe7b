"""A drop deletes the documents of a table. Its rows stay where they lie, as no name leads to them any more."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_drop_leaves_no_file"
SAYS = "files that are left where a table was that nobody shared, after it was dropped"


class Catalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        folder = Path(self.load_table(path).location)
        rows = {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*.feather")}
        super().drop_table(path)
        for name, data in rows.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("drops-what-names-its-rows", catalog=Catalog)
