"""A task leaves its file in its host's folder for temporary files, and the driver takes it from there. They were one
host."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.kit.durable import fsync_file
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_an_executor_is_on_another_host"
SAYS = "rows are committed that were staged on a host whose temporary files are gone"


def _here(name: str) -> Path:
    return Path(tempfile.gettempdir(), name)


class HereWriter(Writer):
    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._path = _here(self._path.name)


class TakingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        for name in (file.path for result in results for file in result.files):
            if _here(name).exists():
                shutil.copyfile(_here(name), self.table.location / name)
                fsync_file(self.table.location / name)
                _here(name).unlink()
        return super().publish(state, [replace(each) for each in results], watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("stages-on-its-own-host", writer=HereWriter, committer=TakingCommitter)
