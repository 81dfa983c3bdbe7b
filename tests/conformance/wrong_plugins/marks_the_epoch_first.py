"""It says that it upserts, and stores the watermark before the rows: a crash between the two loses them."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_kills.py::test_killed_at_each_failpoint_of_the_format"
SAYS = "the watermark is there before the rows of epoch"


class EarlyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        super().publish(state, [], watermark)
        kit.failpoint("publish.between_watermark_and_data")
        return super().publish(self.open(), results, None)


class Upserting(CrookedPlugin):
    delivery = spi.DeliveryLevel.IDEMPOTENT_UPSERT


@hookimpl
def laketier_format() -> CrookedPlugin:
    return Upserting("marks-the-epoch-first", committer=EarlyCommitter)
