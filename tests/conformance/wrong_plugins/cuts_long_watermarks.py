"""The watermark is kept in a column of 65,535 bytes, and the database cuts what is longer, as MySQL's TEXT may."""

from __future__ import annotations

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[long]"
SAYS = (
    "characters is published, and the table is opened for it: it is stored whole: expected no error, found CorruptTable"
)


class CutState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        found = super().watermark(pipeline)
        return None if found is None else spi.Watermark.from_json(found.to_json().encode()[:65_535])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("cuts-long-watermarks", **told(CutState))
