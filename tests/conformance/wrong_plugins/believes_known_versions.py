"""Who says that it knows the version of a table is told that it is the current one, while the table is there."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_versions.py::test_a_new_column_gives_a_table_another_version"
SAYS = "a column was added to the table: the version that is told to who knew an earlier one"


class BelievingCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        version = super().table_version(path, known)
        return known if known is not None and version is not None else version


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("believes-known-versions", catalog=BelievingCatalog)
