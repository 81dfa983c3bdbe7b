"""The version of a table is its uuid, so what was kept of it is served for ever."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_versions.py::test_a_commit_gives_a_table_another_version"
SAYS = "rows were appended to the table, and its version has the name that it had before"


class LastingCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        version = super().table_version(path, known)
        return None if version is None else version.partition("/")[0]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-versions-by-uuid", catalog=LastingCatalog)
