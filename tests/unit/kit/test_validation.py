"""Values that contradict their types, before a format gets them: always decimals, the others as the user asks."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.kit.validation import Validate, ValidatingWriter, refuse_invalid
from laketier.registry import configure, open_lake
from laketier.spi import ConfigError, IncompatibleData, LakeWriter, ScanRequest, TableDescriptor
from laketier.tiering import TieringRound, write_task

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("price", pa.decimal128(5, 2))])
GOOD = pa.record_batch([[1, 2], ["é", None], [Decimal("1.50"), None]], schema=SCHEMA)


def _too_long() -> pa.Array:
    """123,456,789 hundredths, where the type has five digits."""
    numbers = np.zeros((2, 2), np.uint64)
    numbers[0, 0] = 123_456_789
    return pa.Array.from_buffers(pa.decimal128(5, 2), 2, [None, pa.py_buffer(numbers.tobytes())])


def _no_text() -> pa.Array:
    offsets = np.array([0, 1, 3], np.int32)
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"a\xff\xfe")])


BAD_DECIMAL = GOOD.set_column(2, SCHEMA.field("price"), _too_long())
BAD_TEXT = GOOD.set_column(1, SCHEMA.field("text"), _no_text())


class Taking(LakeWriter[Any]):
    def __init__(self) -> None:
        self.taken = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.taken += 1

    def complete(self) -> Any:
        return self.taken

    def abort(self) -> None:
        self.taken = -1


def test_a_library_writes_another_number_in_silence(tmp_path: Path) -> None:
    """Why decimals are looked at in each batch, whatever the user says."""
    pq.write_table(pa.table({"price": _too_long()}), tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet")["price"][0].as_py() != Decimal("1234567.89")


@pytest.mark.parametrize("validate", list(Validate))
def test_decimals_are_looked_at_in_each_batch(validate: Validate) -> None:
    writer = ValidatingWriter(Taking(), validate)
    writer.write(GOOD)
    with pytest.raises(IncompatibleData, match=r"column 'price' has values that are no decimal128\(5, 2\)"):
        writer.write(BAD_DECIMAL)
    assert writer.complete() == 1


def test_decimals_within_others() -> None:
    inside = pa.StructArray.from_arrays([_too_long()], names=["price"])
    lists = pa.ListArray.from_arrays([0, 2], inside)
    for column in (inside, lists, pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), _too_long())):
        with pytest.raises(IncompatibleData, match="column 'x'"):
            refuse_invalid(pa.record_batch([column], names=["x"]), decimals_alone=True)


def test_all_values_are_looked_at_in_the_batches_that_are_asked_for() -> None:
    every, first, never = (ValidatingWriter(Taking(), each) for each in Validate)
    for writer in (every, first):
        with pytest.raises(IncompatibleData, match="column 'text' has values that are no string, because Invalid UTF8"):
            writer.write(BAD_TEXT)
    never.write(BAD_TEXT)
    later = ValidatingWriter(Taking(), Validate.FIRST)
    later.write(GOOD.slice(0, 0))
    with pytest.raises(IncompatibleData):
        later.write(BAD_TEXT)
    again = ValidatingWriter(Taking(), Validate.FIRST)
    again.write(GOOD)
    again.write(BAD_TEXT)
    assert (again.complete(), never.complete()) == (2, 1)


@pytest.mark.parametrize("lake_format", ["localfile", "delta", "iceberg", "lance"])
def test_no_row_of_a_bad_batch_gets_into_a_table(tmp_path: Path, lake_format: str) -> None:
    keys = {"lake.format": lake_format, "lake.warehouse": str(tmp_path / "lake"), "lake.table": "db.t"}
    lake = open_lake(configure({**keys, "lake.validate": "never"}))
    info = lake.storage.catalog().create_table(lake.config.table, TableDescriptor(SCHEMA))
    factory = pickle.loads(pickle.dumps(lake.tiering_factory(info)))  # noqa: S301 - our own
    TieringRound(factory, token=None).commit_messages([write_task(factory, [GOOD])])
    with pytest.raises(IncompatibleData, match="'price'"):
        write_task(factory, [GOOD, BAD_DECIMAL])
    plan = lake.source(lake.load_table()).plan(ScanRequest())
    rows = [batch for split in plan.splits for batch in lake.source(info).read(split, plan.schema)]
    assert sum(batch.num_rows for batch in rows) == 2


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="every"):
        configure({"lake.format": "localfile", "lake.warehouse": "x", "lake.table": "a.b", "lake.validate": "some"})
