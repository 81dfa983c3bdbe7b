"""A link that takes too long was overtaken, says the author, and begins anew."""

from __future__ import annotations

from crooked import CrookedPlugin
from lost_races import lost_by

from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[time-out]"
SAYS = "and no other commit came: publish said Conflict"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-slow-links-for-lost-races", table=lost_by(TimeoutError))
