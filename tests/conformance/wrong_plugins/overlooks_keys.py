"""A table is the one that was asked for if its columns are. That it was asked for with another key is not seen."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert_keys.py::test_another_key_is_refused"
SAYS = "a table is created again with the primary key ('name',)"


class KeylessCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        try:
            found = self.load_table(path)
        except spi.TableNotFound:
            return super().create_table(path, descriptor)
        return super().create_table(path, replace(descriptor, primary_key=found.descriptor.primary_key))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("overlooks-keys", catalog=KeylessCatalog)
