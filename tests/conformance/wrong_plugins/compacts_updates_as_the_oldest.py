"""Who updates rows lists their ids as deleted, and appends them. What is put together counts as the oldest of it, so
the rows are gone. Who deletes rows writes files anew, which shows none of this."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from lasting import LastingHarness
from sequenced import SequencedSource, UpdatingByIdsHarness

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_updates.py::test_rows_that_others_updated_stay_so"
SAYS = "a table of which others updated rows, after a compaction: expected 20 entries, found 17"


class Harness(UpdatingByIdsHarness):
    oldest = True
    _rewrite = LastingHarness._rewrite

    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        gone = pa.array(ids, pa.int64())
        self._rewrite(storage, table, lambda rows: rows.filter(pc.invert(pc.is_in(rows["id"], gone))))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("compacts-updates-as-the-oldest", source=SequencedSource)
