"""Whoever looks for its defects looks at the time of its first commit, and a new table has none."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_capabilities.py::test_a_sound_table_has_no_findings"
SAYS = "a table that has no rows yet is looked through for defects: expected no error, found IndexError"


class Strict(kit.ManifestMaintenance):
    def findings(self) -> Sequence[spi.TableFinding]:
        head, _ = self.table.manifests().current()
        times = [head.at] if head.watermarks else []
        return [] if times[-1] >= 0 else [spi.TableFinding("a time before 1970", "a wrong clock", "")]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("looks-for-defects-in-the-first-commit", maintenance=Strict)
