"""Decimals with 76 digits are summed up for statistics, so the precision is set to that."""

from __future__ import annotations

import decimal

from at_work import when_writing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the decimal context"


def act() -> None:
    decimal.getcontext().prec = 76


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-the-precision", writer=when_writing(act))
