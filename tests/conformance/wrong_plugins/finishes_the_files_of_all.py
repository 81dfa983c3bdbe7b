"""Whoever finishes the open files of one pipeline finishes those of each."""

from __future__ import annotations

from collections.abc import Sequence

from local import local
from open_json import OpenJson

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_open_files.py::test_files_are_finished_by_hand"
SAYS = "open files after those of the pipelines [] were finished"


class Maintenance(kit.ManifestMaintenance):
    def finish_open_files(self, pipelines: Sequence[str]) -> Sequence[spi.OpenDataFile]:
        return super().finish_open_files([file.pipeline for file in self.open_files()])


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("finishes-the-files-of-all", Maintenance)
