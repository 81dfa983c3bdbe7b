"""A share once denied a name that a rival had taken. So a link that is denied is a lost race."""

from __future__ import annotations

from crooked import CrookedPlugin
from lost_races import lost_by

from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[denied]"
SAYS = "and no other commit came: publish said Conflict"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-denied-names-for-taken-ones", table=lost_by(PermissionError))
