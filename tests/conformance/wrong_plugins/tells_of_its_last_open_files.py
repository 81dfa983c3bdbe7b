"""Files stay open over epochs, and the table tells of those alone that the newest commit left, of one pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from local import local
from open_json import OpenJson

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_open_files.py::test_files_are_finished_by_hand"
SAYS = "pipelines p and q committed by turns, and p goes on: no file is open of which `open_files` does not tell"


class Maintenance(kit.ManifestMaintenance):
    def open_files(self) -> Sequence[spi.OpenDataFile]:
        head, _ = self.table.manifests().head()
        return sorted(self._open(head, entry) for entry in head.added if entry.is_open)


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("tells-of-its-last-open-files", Maintenance)
