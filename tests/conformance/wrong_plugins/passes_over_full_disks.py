"""A batch for which there is no room is logged, and the task goes on."""

from __future__ import annotations

import errno
import logging

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_effect_of_a_round_fails"
SAYS = "ENOSPC from step"


class LoggingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        try:
            super().write(batch)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            logging.getLogger(__name__).warning("no room for %d rows", len(batch))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("passes-over-full-disks", writer=LoggingWriter)
