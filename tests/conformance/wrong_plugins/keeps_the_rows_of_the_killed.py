"""Rows of a round that was killed before its watermark are removed by the next round that writes rows, and there is no
failpoint between the two. A round without rows takes the number under which they are."""

from __future__ import annotations

from keeps_dead_rows_where_it_has_no_files import SparingPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_round_is_killed"
SAYS = "and another pipeline's epoch without rows came before the replay"


class KilledPlugin(SparingPlugin):
    identifier = "keeps-the-rows-of-the-killed"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return KilledPlugin()
