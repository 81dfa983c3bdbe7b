"""The folder of a database is made where it is not there. Who makes the next table at that moment makes it, too."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_another_table_is_made_meanwhile"
SAYS = "and it ended with {'failed': \"FileExistsError"


class Catalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        database = self.location(path).parent
        if not database.exists():
            database.mkdir(parents=True)
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("makes-folders-that-nobody-else-makes", catalog=Catalog)
