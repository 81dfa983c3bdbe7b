"""Tables with a primary key: files leave in the commit that puts others in their place, and other readers agree."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from laketier.spi import (
    CommitError,
    CorruptTable,
    IncompatibleTable,
    NotBegun,
    ScanRequest,
    TableDescriptor,
    TablePath,
    Token,
    WriteMode,
    host_time,
)
from laketier.spi.clocks import shifted
from laketier.spi.table import PartitionField
from laketier.tiering import RoundOutcome, TieringRound

ROWS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=False), ("v", pa.string())]
)
KEYED = TableDescriptor(ROWS, (PartitionField("p"),), primary_key=("id", "p"))
ODD = "a b/c%20d=é'+&"
PATH = TablePath("db", "t")


def rows(*values: tuple[int, str, str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(ROWS.names, value, strict=True)) for value in values], schema=ROWS)


def epoch(lake, number, batch, replaced=()):
    factory = lake.factory()
    tiering = TieringRound(factory, token=Token("p", "run", number), mode=WriteMode.UPSERT)
    tiering.begin()
    result = replace(lake.stage(pa.Table.from_batches([batch]), factory), replaced=tuple(replaced))
    return tiering.commit([result])


def splits(lake):
    return lake.storage.source(lake.table).plan(ScanRequest()).splits


def test_the_primary_key_is_the_tables(lake):
    catalog = lake.storage.catalog()
    made = catalog.create_table(PATH, KEYED)
    assert made.descriptor.primary_key == ("id", "p")
    assert lake.table.descriptor == made.descriptor
    assert catalog.create_table(PATH, KEYED).descriptor.primary_key == ("id", "p")
    with pytest.raises(IncompatibleTable, match="another primary key"):
        catalog.create_table(PATH, replace(KEYED, primary_key=("p", "id")))


def test_a_damaged_primary_key_is_told(lake):
    lake.create()
    DeltaTable(lake.uri).alter.set_table_properties({"laketier.primary-key": "id"}, raise_if_not_exists=False)
    with pytest.raises(CorruptTable, match=r"laketier\.primary-key can't be read"):
        lake.storage.catalog().load_table(PATH)


def test_files_leave_in_the_commit_that_puts_others_in_their_place(lake):
    """Also where the file's path needs quoting, in folders and in the log."""
    lake.storage.catalog().create_table(PATH, KEYED)
    epoch(lake, 0, rows((1, ODD, "a"), (2, "x", "b")))
    [old] = [split for split in splits(lake) if dict(split.partition)["p"] == ODD]
    assert epoch(lake, 1, rows((1, ODD, "A")), old.files).outcome is RoundOutcome.PUBLISHED
    assert epoch(lake, 1, rows((1, ODD, "A")), old.files).outcome is RoundOutcome.ALREADY_THERE
    expected = [(1, "A"), (2, "b")]
    entry = (Path(lake.uri) / "_delta_log" / f"{2:020}.json").read_text()
    kinds = [next(iter(json.loads(line))) for line in entry.splitlines()]
    assert sorted(set(kinds)) == ["add", "commitInfo", "remove", "txn"]
    table = DeltaTable(lake.uri)
    assert sorted(zip(*table.to_pyarrow_table(columns=["id", "v"]).to_pydict().values(), strict=True)) == expected
    assert sorted(pl.read_delta(lake.uri).select("id", "v").rows()) == expected
    found = duckdb.from_arrow(table.to_pyarrow_table()).order("id").project("id, v").fetchall()
    assert found == expected
    assert sorted(zip(*lake.read().select(["id", "v"]).to_pydict().values(), strict=True)) == expected
    assert DeltaTable(lake.uri, version=1).to_pyarrow_table().num_rows == 2
    table.create_checkpoint()
    assert sorted(DeltaTable(lake.uri).to_pyarrow_table()["v"].to_pylist()) == ["A", "b"], "the tombstone fits its file"


def test_a_file_that_is_not_in_the_table_is_refused(lake):
    lake.storage.catalog().create_table(PATH, KEYED)
    epoch(lake, 0, rows((1, "x", "a")))
    with pytest.raises(NotBegun) as refused:
        epoch(lake, 1, rows((1, "x", "b")), ["p=x/none.parquet"])
    assert isinstance(refused.value.__cause__, CommitError)
    assert lake.read().num_rows == 1
    [split] = splits(lake)
    with pytest.raises(NotBegun, match="replaced twice"):
        epoch(lake, 1, rows((1, "x", "b")), [*split.files, *split.files])


def test_a_table_that_only_takes_appends_is_refused(lake):
    lake.create(**{"delta.appendOnly": "true"})
    with pytest.raises(IncompatibleTable, match="appendOnly"):
        lake.committer(WriteMode.UPSERT).open()


def test_a_split_that_a_limit_cut_names_no_files(lake):
    lake.storage.catalog().create_table(PATH, KEYED)
    epoch(lake, 0, rows((1, "x", "a"), (2, "x", "b")))
    source = lake.storage.source(lake.table)
    [cut] = source.plan(ScanRequest(limit=1)).splits
    assert cut.files == ()
    [whole] = source.plan(ScanRequest()).splits
    assert whole.files == (whole.payload.path,)


@pytest.mark.parametrize("days", [-10, 10])
def test_a_tombstone_is_not_older_than_its_commit(lake, days):
    """VACUUM counts its days from the tombstone's time, and a reader may be at the version before. Of the clocks of the
    host and of the storage the later one counts."""
    lake.storage.catalog().create_table(PATH, KEYED)
    epoch(lake, 0, rows((1, "a", "x")))
    [split] = splits(lake)
    before = host_time()
    with shifted(days * 86_400_000):
        epoch(lake, 1, rows((1, "a", "y")), split.files)
    entry = Path(lake.uri, "_delta_log", f"{2:020}.json").read_text().splitlines()
    [removed] = [json.loads(line)["remove"] for line in entry if "remove" in json.loads(line)]
    assert removed["deletionTimestamp"] >= before - 1_000 + max(days, 0) * 86_400_000
