"""A commit whose name could not be synced is refused, as it may be gone after a power cut. But it is there now."""

from __future__ import annotations

import os
import uuid

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit import durable
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[error]"
SAYS = "and no other commit came: publish said StagedFileLost"


class StrictLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        path, document = self.path(manifest.number), manifest.encode()
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.write_bytes(document)
        durable.fsync_file(temporary)
        try:
            os.link(temporary, path)
        except FileExistsError as error:
            raise spi.Conflict("another writer published it", where=str(path)) from error
        finally:
            temporary.unlink()
        try:
            durable.fsync_directory(path.parent)
        except OSError as error:
            raise spi.StagedFileLost("the commit is not durable", where=str(path)) from error
        return Manifest.decode(document, path, self.layout)


class StrictTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return StrictLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("refuses-what-it-could-not-sync", table=StrictTable)
