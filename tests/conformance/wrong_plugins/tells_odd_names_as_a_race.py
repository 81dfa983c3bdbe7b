"""A column that can't be stored is refused as if somebody had been first, so whoever asked asks for ever."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_columns_with_odd_names"
SAYS = "a table is created, and nobody else is there: expected a final error, as another try would end in the same way"


class RacingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        if any("," in name for name in descriptor.schema.names):
            raise spi.Conflict("a column name has a comma", fix="Rename the column.")
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tells-odd-names-as-a-race", catalog=RacingCatalog)
