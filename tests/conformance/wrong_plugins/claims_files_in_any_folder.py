"""A file is one of its own by its name, in whatever folder somebody has put it: it is said to be an attempt's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta.layout import attempt_of
from laketier_delta.maintenance import DeltaMaintenance
from laketier_delta.plugin import DeltaPlugin

CAUGHT_BY = "test_orphans.py::test_what_a_user_moved_is_of_no_attempt"
SAYS = "files in a folder of a user that are listed as staged by an attempt"


def _attempt_in(path: str, _: Sequence[str]) -> str | None:
    return attempt_of(path.rpartition("/")[2], ())


class Maintenance(DeltaMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        with patch("laketier_delta.maintenance.attempt_of", _attempt_in):
            return super().orphans(modified_before)


class Plugin(DeltaPlugin):
    def __init__(self) -> None:
        self.identifier = "claims-files-in-any-folder"  # type: ignore[misc]

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        place = storage._warehouse
        object.__setattr__(storage, "maintenance", lambda table: Maintenance(place.table(table.path), storage._options))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
