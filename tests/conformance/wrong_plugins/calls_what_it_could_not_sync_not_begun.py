"""A commit that can't be synced is no commit, it is thought: so its name and the sync of its folder stand under "before
the effect". But the name is there, and so are its rows."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit import durable
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[error]"
SAYS = "publish said that nothing of it landed, for certain, and ["


class HastyLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        with kit.before_effect(str(path)):
            temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
            temporary.write_bytes(data)
            durable.fsync_file(temporary)
            try:
                os.link(temporary, path)
            except FileExistsError as error:
                raise spi.Conflict("another writer published it", where=str(path)) from error
            finally:
                temporary.unlink()
            durable.fsync_directory(path.parent)


class HastyTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return HastyLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("calls-what-it-could-not-sync-not-begun", table=HastyTable)
