"""Each change of properties is looked at, and the last one is written: nobody changes two in one step."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_that_another_one_changed_is_left"
SAYS = "two properties that were changed in one step, the second of which was removed"


class LastCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        of_properties = [change for change in changes if isinstance(change, spi.SetProperty)]
        properties = self.load_table(path).descriptor.properties
        for change in of_properties:
            change.applied_to(properties, where=str(path))
        return super().alter_table(path, of_properties[-1:] or changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-the-last-property", catalog=LastCatalog)
