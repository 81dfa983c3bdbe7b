"""The version of a table counts the commits whose clean-up is done, so a commit whose driver was killed has none."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_round_is_killed"
SAYS = "who knew a version of the table is told that it is the newest, and it has other rows"


class CountingCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        try:
            hint = self.table_type(self.location(path)).manifests()._hint()
        except spi.TableNotFound:
            return None
        return None if hint is None else hint[1]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("counts-finished-commits", catalog=CountingCatalog)
