"""A table is the one that was asked for if names and types are the same: whether columns may be null was forgotten."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_another_schema_is_refused[other-nullability]"
SAYS = "a table that is there is created with another schema"


class LenientCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        try:
            found = self.load_table(path)
        except spi.TableNotFound:
            return super().create_table(path, descriptor)
        if [(f.name, f.type) for f in found.schema] == [(f.name, f.type) for f in descriptor.schema]:
            descriptor = replace(descriptor, schema=found.schema)
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("compares-names-and-types", catalog=LenientCatalog)
