"""Of what the library says of a damaged file, the words that the author has seen are told as damage."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_bits.py::test_a_bit_of_a_file_has_another_value"
SAYS = "no error of laketier's, but"
SEEN = ("Not an Arrow file", "File is too small", "footer")


class WordsSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = self.table.location / split.payload.path
        try:
            with pa.OSFile(str(path)) as file:
                reader = pa.ipc.open_file(file)
                for batch in map(reader.get_batch, range(reader.num_record_batches)):
                    yield kit.conform(batch.select([n for n in schema.names if n in batch.schema.names]), schema)
        except (pa.ArrowException, OSError) as error:
            if any(words in str(error) for words in SEEN):
                raise spi.CorruptTable("a data file is damaged", where=str(path), why=str(error)) from error
            raise


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("knows-damage-by-its-words", source=WordsSource)
