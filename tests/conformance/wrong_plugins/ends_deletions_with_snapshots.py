"""Who ends old snapshots ends the deletions that are as old, although the rows are in files that are older still."""

from __future__ import annotations

import json
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable
from leaving import DELETED, deletions
from sequenced import CompactingHarness, SequencedSource

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_lives.py::test_deletions_outlive_what_is_cleaned_up"
SAYS = "the rows of a table after snapshots ended that came before others deleted rows: expected"


class Harness(CompactingHarness):
    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        own = FeatherTable(Path(table.location))
        newest = own.open().head.number
        left = {each: at for each, at in deletions(own).items() if at >= newest}
        (Path(table.location) / DELETED).write_text(json.dumps(left), encoding="utf-8")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("ends-deletions-with-snapshots", source=SequencedSource)
