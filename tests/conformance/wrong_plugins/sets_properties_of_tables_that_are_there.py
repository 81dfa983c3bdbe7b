"""Creating a table that is there gives it the properties that were asked for, as `INSERT OR REPLACE` does: what
somebody changed since is undone by the next start of a pipeline."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_creating_again_leaves_comment_and_properties"
SAYS = "the properties of a table that is created again with none"


class ReplacingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        found = super().create_table(path, descriptor)
        now = found.descriptor.properties
        for name in {*now, *descriptor.properties}:
            wanted = descriptor.properties.get(name)
            if now.get(name) != wanted:
                found = self.alter_table(path, [spi.SetProperty(name, wanted, now.get(name))])
        return found


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-properties-of-tables-that-are-there", catalog=ReplacingCatalog)
