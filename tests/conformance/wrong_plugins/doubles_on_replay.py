"""It says that it upserts, and a replay after a crash between rows and watermark appends the rows again."""

from __future__ import annotations

from commits_in_two_steps import TwoStepCommitter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_kills.py::test_killed_at_each_failpoint_of_the_format"
SAYS = "rows after the replay: expected"


class Upserting(CrookedPlugin):
    delivery = spi.DeliveryLevel.IDEMPOTENT_UPSERT


@hookimpl
def laketier_format() -> CrookedPlugin:
    return Upserting("doubles-on-replay", committer=TwoStepCommitter)
