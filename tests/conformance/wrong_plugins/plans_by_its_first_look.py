"""A source keeps the table that it saw first: a reader that asks it again finds no rows that came since."""

from __future__ import annotations

from typing import Any

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl
from laketier.spi import ScanRequest

CAUGHT_BY = "test_source.py::test_an_empty_table"
SAYS = "rows that came since a source was made, planned by it: expected [0, 1, 2, 3, 4], found []"


class KeepingSource(Source):
    def _snapshot(self, request: ScanRequest) -> ManifestSnapshot:
        if (request.snapshot_id, request.as_of, request.state) != (None, None, None):
            return super()._snapshot(request)
        if "_first" not in self.__dict__:
            object.__setattr__(self, "_first", super()._snapshot(request))
        found: ManifestSnapshot = self.__dict__["_first"]
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_first"}


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("plans-by-its-first-look", source=KeepingSource)
