"""A table is dropped by one rename, and nobody syncs the folder that lost its name."""

from __future__ import annotations

import shutil
import uuid

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[drop]"
SAYS = "drop, a power cut after unlinkat"


class ForgetfulCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        self.load_table(path)
        gone = self.location(path).with_name(f".{uuid.uuid4().hex}.dropped")
        self.location(path).rename(gone)
        shutil.rmtree(gone)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-without-a-sync", catalog=ForgetfulCatalog)
