"""A share once denied a name that a rival had taken. So a link that is denied is a lost race."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[denied]"
SAYS = "EACCES from step"


class DeniedLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        try:
            durable.create_exclusively(path, data)
        except PermissionError as error:
            raise FileExistsError(f"another one has {path}") from error


class DeniedTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return DeniedLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-denied-names-for-taken-ones", table=DeniedTable)
