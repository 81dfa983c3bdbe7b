"""The deleted rows of a table are kept in one file beside it. Who deletes some writes that file, and what was in it is
forgotten."""

from __future__ import annotations

from crooked import CrookedPlugin
from leaving import KeepingHarness, LeavingSource

from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_rows_that_others_deleted_stay_gone"
SAYS = "rows that are left of a table from which others deleted some, after deletion 2"


class Harness(KeepingHarness):
    adds = False


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-the-last-deletion", source=LeavingSource)
