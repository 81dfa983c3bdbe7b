"""A version that is none of its own ends in an error of Python, and so does each read of a cached table."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_versions.py::test_a_version_that_was_never_told_is_none"
SAYS = "found IndexError"


class NumberingCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        now = super().table_version(path)
        return now if known is None or int(known.split("/")[1]) >= 0 else None


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("fails-on-odd-versions", catalog=NumberingCatalog)
