"""Of several properties each is a commit of its own. Where the second is refused, the first stays."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_that_another_one_changed_is_left"
SAYS = "the properties after changes were refused: expected 4 entries, found 4; 1 is other than expected"


class OneByOneCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        if not all(isinstance(change, spi.SetProperty) for change in changes):
            return super().alter_table(path, changes)
        return [super(OneByOneCatalog, self).alter_table(path, [change]) for change in changes][-1]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("sets-properties-one-by-one", catalog=OneByOneCatalog)
