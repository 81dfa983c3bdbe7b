"""A column that came later is a defect to it, as files from before do not have it."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_sound_table_has_no_findings"
SAYS = "the findings of a table that laketier alone wrote"


class Strict(kit.ManifestMaintenance):
    def findings(self) -> Sequence[spi.TableFinding]:
        head, _ = self.table.manifests().current()
        if not head.metadata_at:
            return ()
        return [spi.TableFinding("files lack a column", "it came after them", "Write them anew.")]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("finds-what-it-wrote-itself", maintenance=Strict)
