"""It looks for values of partitions that an earlier release of it stored without their zone, and takes each that does
not end with one for such a value: those of a null, too."""

from __future__ import annotations

from collections.abc import Sequence

from richer import richer

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_filters_on_partitions[instant]"
SAYS = "the findings of a table with partitions of timestamp"


class ZonedMaintenance(kit.ManifestMaintenance):
    def findings(self) -> Sequence[spi.TableFinding]:
        state = self.table.open()
        live = files_at(state.manifests, state.head.number)
        texts = [text for entry in live for _, text in entry.partition]
        old = [text for text in texts if not str(text).endswith("Z")]
        fix = "Write its rows to another table."
        return (
            [spi.TableFinding(f"{len(old)} values name no zone", "an earlier release wrote them", fix)] if old else []
        )


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("takes-values-of-partitions-for-old-ones", maintenance=ZonedMaintenance)
