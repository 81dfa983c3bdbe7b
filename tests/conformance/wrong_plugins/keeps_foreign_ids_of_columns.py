"""A table is kept with all that its columns say of themselves: also the ids that they had in files of others."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_ids_of_columns_are_the_tables_own"
SAYS = "columns of a table have ids of their own, whatever they had elsewhere"


class Catalog(kit.ManifestCatalog):
    def _checked(self, descriptor: spi.TableDescriptor) -> spi.TableDescriptor:
        super()._checked(descriptor)
        return descriptor


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-foreign-ids-of-columns", catalog=Catalog)
