"""A task with a table's property writes its rows as a draft first, and leaves that behind."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Writer
from propertied import ROWS, PropertiedHarness

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_settings.py::test_rows_are_the_same_under_each_property"
SAYS = "orphans after two rounds that went well under acme.rows-per-file = '1'"


class Harness(PropertiedHarness):
    pass


class DraftingWriter(Writer):
    def complete(self) -> spi.WriteResult:
        done = super().complete()
        if ROWS in self._table.descriptor.properties:
            (Path(self._table.location) / f"{spi.new_attempt_id()}.feather").write_bytes(b"a draft")
        return done


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("leaves-drafts-under-a-property", FEATURES, writer=DraftingWriter)
