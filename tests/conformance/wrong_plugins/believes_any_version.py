"""Whoever says that he knows a version of a table is believed where its number is the newest one."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_versions.py::test_a_version_that_was_never_told_is_none"
SAYS = "the version of a table, to who says that it knew"


class BelievingCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        now = super().table_version(path)
        return known if now and known and known[:32] == now[:32] and known[33:34] == now[33:34] else now


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("believes-any-version", catalog=BelievingCatalog)
