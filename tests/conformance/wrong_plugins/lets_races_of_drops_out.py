"""Of two that drop a table, one finds its folder gone, and says so in words of the operating system."""

from __future__ import annotations

import os
import shutil
import uuid

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_a_rival_asks_for_the_same[drop]"
SAYS = "and it ended with {'failed': \"FileNotFoundError"


class PlainCatalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        folder = self.load_table(path).location
        gone = f"{folder}-{uuid.uuid4().hex}"
        os.rename(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lets-races-of-drops-out", catalog=PlainCatalog)
