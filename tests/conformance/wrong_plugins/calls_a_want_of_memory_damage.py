"""Whatever a library says while a table is opened is told as damage, and so is that there was no memory for it."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_bits.py::test_there_is_no_memory_for_a_document"
SAYS = "of a library that decodes finds no memory: expected an error that tells of no table, found CorruptTable"


class SuspiciousTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        try:
            return super().manifests()
        except spi.LaketierError:
            raise
        except Exception as error:
            raise spi.CorruptTable("the table can't be read", where=str(self.place), why=repr(error)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("calls-a-want-of-memory-damage", table=SuspiciousTable)
