"""That there is no table is seen before its folder is made. Then its first manifest is put there, whatever has come
meanwhile."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_a_rival_fills_the_table_that_is_made"
SAYS = "rows of the rival, which created the table and wrote to it: expected [0, 1, 2, 3, 4], found []"


class OverwritingCatalog(kit.ManifestCatalog):
    def _made(self, path: spi.TablePath, wanted: spi.TableDescriptor) -> spi.TableInfo:
        try:
            return self.load_table(path)
        except spi.TableNotFound:
            folder = self.store(path).folder
            assert folder is not None
            folder.mkdir(parents=True, exist_ok=True)
            for there in folder.glob("*.feather"):
                there.unlink()
            (folder / self.table_type.layout.table_file).unlink(missing_ok=True)
            return super()._made(path, wanted)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("creates-over-a-rival", catalog=OverwritingCatalog)
