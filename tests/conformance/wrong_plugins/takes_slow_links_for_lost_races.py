"""A link that takes too long was overtaken, says the author, and begins anew."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit import durable
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[time-out]"
SAYS = "ETIMEDOUT from step"


class SlowLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        try:
            durable.create_exclusively(path, data)
        except TimeoutError as error:
            raise FileExistsError(f"another one has {path}") from error


class SlowTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return SlowLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-slow-links-for-lost-races", table=SlowTable)
