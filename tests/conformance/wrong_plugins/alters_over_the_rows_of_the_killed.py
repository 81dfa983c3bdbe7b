"""A change of the columns leaves the rows there that a round had put under the next version before it was killed, and
there is no failpoint between the two."""

from __future__ import annotations

from alters_over_dead_rows import SparingPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_round_is_killed"
SAYS = "and a new column came before the replay"


class KilledPlugin(SparingPlugin):
    identifier = "alters-over-the-rows-of-the-killed"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return KilledPlugin()
