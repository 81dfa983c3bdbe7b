"""Files that a process left open stay open when another one goes on with its pipeline."""

from __future__ import annotations

from collections.abc import Collection

from open_json import OpenJson, committing

from laketier import kit, spi
from laketier.kit.manifests.open_files import Finished
from laketier.registry import hookimpl

CAUGHT_BY = "test_open_files.py::test_another_process_goes_on[frozen]"
SAYS = "files that a process left open, after the next one of its pipeline committed"


class Committer(kit.ManifestCommitter):
    def _finish(self, state: kit.ManifestState, pipeline: str, named: Collection[str]) -> Finished:
        return Finished()


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return committing("leaves-the-files-of-the-dead", Committer)
