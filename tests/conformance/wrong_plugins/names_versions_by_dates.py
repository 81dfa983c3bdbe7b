"""A version is the date of its folder of manifests, which each commit changes. Two may have one date."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_versions.py::test_dates_of_files_name_no_state"
SAYS = "its files and folders have the dates of before, and its version has the name that it had before"


class DatedCatalog(kit.ManifestCatalog):
    def table_version(self, path: spi.TablePath, known: str | None = None) -> str | None:
        now = super().table_version(path)
        folder = self.warehouse / path.database / path.table / "_feather_manifests"
        return now and f"{now[:32]}/{folder.stat().st_mtime_ns}"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-versions-by-dates", catalog=DatedCatalog)
