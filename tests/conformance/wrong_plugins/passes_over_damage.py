"""A data file that can't be read is passed over with a line in the log, so that one bad file stops nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_a_file_of_the_newest_commit_is_damaged[cut]"
SAYS = "the table has to be whole or to refuse"


class LenientSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            yield from super().read(split, schema)
        except spi.CorruptTable:
            logging.getLogger(__name__).warning("skipping %s", split.payload.path)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("passes-over-damage", source=LenientSource)
