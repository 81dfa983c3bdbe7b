"""The version of a table is the number of its newest manifest: a table that was dropped and made anew has it again."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_versions.py::test_a_table_that_is_made_anew_has_another_version"
SAYS = "the table was dropped and made anew, and its version has the name that it had before"


class CountingCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        version = super().table_version(path, known)
        return None if version is None else version.split("/")[1]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-versions-by-number", catalog=CountingCatalog)
