"""A format whose tables have 500 columns at most, as a row of a database that has to fit a page."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl


class NarrowCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        if len(descriptor.schema) > 500:
            raise spi.UnsupportedType("a table has 500 columns at most", where=str(path), fix="Write fewer.")
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("narrow", catalog=NarrowCatalog)
