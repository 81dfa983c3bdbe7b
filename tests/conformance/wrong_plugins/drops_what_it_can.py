"""A drop passes over files that can't be deleted, and says that the table is gone."""

from __future__ import annotations

import shutil
import uuid

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit import durable
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[drop]"
SAYS = "drop, EIO from"


class EasygoingCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        self.load_table(path)
        location = self.location(path)
        gone = location.with_name(f".{uuid.uuid4().hex}.dropped")
        try:
            location.rename(gone)
            durable.fsync_directory(location.parent)
        except OSError:
            pass
        shutil.rmtree(gone, ignore_errors=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-what-it-can", catalog=EasygoingCatalog)
