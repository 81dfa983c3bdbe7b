from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from laketier.kit import FailpointError
from laketier.kit.failpoints import VARIABLE
from laketier.spi import IncompatibleData, WriterInitContext, new_attempt_id, pack, unpack
from laketier.tiering import write_task
from laketier_lance.writer import FRAGMENT


def batch(table, start, rows):
    ids = pa.array(range(start, start + rows), pa.int64())
    return pa.record_batch([ids, ids.cast(pa.string())], schema=table.schema)


def test_staging_reads_no_table_metadata(table):
    # Not even when there is none: lance.fragment.write_fragments would read it, or make a new dataset.
    shutil.move(f"{table.location}/_versions", table.warehouse / "aside")
    staged = table.stage(table.rows(1, 2))
    shutil.move(table.warehouse / "aside", f"{table.location}/_versions")
    table.round(0).commit([staged])
    assert table.ids() == [1, 2]


def test_the_factory_crosses_to_an_executor_as_plain_data(table):
    factory = pickle.loads(pickle.dumps(table.factory))  # noqa: S301 - as Spark does
    writer = factory.create_writer(WriterInitContext("a" * 32))
    writer.write(table.rows(1))
    staged = unpack(factory.write_result_serializer, pack(factory.write_result_serializer, writer.complete()))
    assert [file.path for file in staged.files] == [f"data/{'a' * 32}-00000.lance"]
    table.round(0).commit([staged])
    assert table.ids() == [1]


def test_many_small_batches_become_one_file(table):
    staged = table.stage(*[batch(table, i * 10, 10) for i in range(500)])
    assert [file.rows for file in staged.files] == [5000]
    file = staged.files[0]
    assert file.bytes == (Path(table.location) / file.path).stat().st_size
    table.round(0).commit([staged])
    assert table.ids() == list(range(5000))


def test_files_are_cut_by_rows_whatever_the_batches(make_table):
    table = make_table(max_rows_per_file=1000, buffer_rows=300)
    staged = table.stage(batch(table, 0, 2500), batch(table, 2500, 10), batch(table, 2510, 700))
    assert [file.rows for file in staged.files] == [1000, 1000, 1000, 210]
    assert staged.rows == 3210
    table.round(0).commit([staged])
    assert table.ids() == list(range(3210))
    assert [f.count_rows() for f in table.open().get_fragments()] == [1000, 1000, 1000, 210]


def test_files_are_cut_by_bytes(make_table):
    table = make_table(pa.schema([("v", pa.list_(pa.float32(), 256))]), max_bytes_per_file=100_000)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(256 * 1000, dtype="float32")), 256)
    staged = table.stage(pa.record_batch([vectors], schema=table.schema))
    assert staged.rows == 1000
    assert all(90 <= file.rows <= 98 for file in staged.files[:-1])


def test_no_rows_make_no_file(table):
    assert table.stage().files == ()
    assert table.stage(table.rows()).files == ()
    assert table.data_files() == []


def test_columns_are_matched_by_name_and_missing_ones_are_null(table):
    table.append(0, 1)
    swapped = pa.record_batch({"name": ["x"], "id": pa.array([2], pa.int8())})
    bare = pa.record_batch({"id": [3]})
    table.round(1).commit([table.stage(swapped, bare)])
    assert table.open().to_table().to_pylist() == [
        {"id": 1, "name": "n1"},
        {"id": 2, "name": "x"},
        {"id": 3, "name": None},
    ]


def test_rows_that_do_not_fit_are_refused(table):
    for bad in ({"id": [1], "extra": [1]}, {"id": ["1"]}, {"name": ["x"]}, {"id": pa.array([None], pa.int64())}):
        with pytest.raises(IncompatibleData):
            table.stage(pa.record_batch(bad))


def test_aborting_removes_closed_and_open_files(make_table):
    table = make_table(max_rows_per_file=100, buffer_rows=50)
    writer = table.factory.create_writer(WriterInitContext(new_attempt_id()))
    writer.write(batch(table, 0, 250))
    assert len(table.data_files()) == 3  # two closed, one under way
    writer.abort()
    assert table.data_files() == []
    writer.abort()


def test_a_failing_task_leaves_nothing_behind(make_table, monkeypatch):
    table = make_table(max_rows_per_file=100, buffer_rows=50)
    monkeypatch.setenv(VARIABLE, "write.mid_file=error@3")
    with pytest.raises(FailpointError):
        write_task(table.factory, [batch(table, 0, 1000)])
    assert table.data_files() == []


def test_two_attempts_of_one_task_never_share_a_name(table):
    one, other = table.stage(table.rows(1)), table.stage(table.rows(1))
    assert not {file.path for file in one.files} & {file.path for file in other.files}
    table.round(0).commit([other])
    table.round(1).abort([one], commit_was_called=False)
    assert table.ids() == [1]
    assert len(table.data_files()) == 1


def test_fragments_name_the_field_ids_of_the_schema_they_were_staged_for(table):
    table.append(0, 1)
    table.open().drop_columns(["name"])
    table.open().add_columns(pa.schema([pa.field("name", pa.string())]))
    table.reload()
    staged = table.stage(table.rows(1))
    assert json.loads(staged.files[0].payload[FRAGMENT])["files"][0]["fields"] == [0, 2]


MEMORY = """
import resource, sys
import numpy as np, pyarrow as pa
from laketier.spi import LakeStorageConfig, TableDescriptor, TablePath, WriterInitContext
from laketier_lance.plugin import LancePlugin, LanceOptions
storage = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], LanceOptions()))
schema = pa.schema([(f"c{i}", pa.float64()) for i in range(8)])
table = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(schema))
writer = storage.tiering_factory(table).create_writer(WriterInitContext("a"))
random = np.random.default_rng(1)
values = [pa.array(random.random(20_000)) for _ in range(8)]
batch = pa.record_batch(values, schema=schema)
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
for _ in range(80): writer.write(batch)
half = peak()
for _ in range(160): writer.write(batch)
writer.complete()
print(half, peak())
"""


def test_memory_does_not_grow_with_the_rows(tmp_path):
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=True)
    half, whole = map(int, done.stdout.split())
    assert whole - half < 100  # MB, while 200 MB more were written
