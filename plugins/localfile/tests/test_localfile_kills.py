"""Small epochs, their folds and open files, with processes that are killed or frozen at any moment: others count the
rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from localfile_child import rows_of
from localfile_kills import FOLD, growing, run

from laketier.kit.manifests import files_at
from laketier_localfile.options import FileFormatName, LocalFileOptions

TIMED = pa.schema([("id", pa.int64()), ("region", pa.string()), ("ts", pa.timestamp("us"))])
LAYOUTS = {
    "time": (("hour(ts)",), {"time_pattern": "%Y/%m/%d/%H"}),
    "Hive and time": (("region", "hour(ts)"), {"time_pattern": "dt=%Y-%m-%d/h%H"}),
    "outside": (("region", "day(ts)"), {"time_pattern": "%Y/%m/%d", "partition_columns_in_files": False}),
}
"""``lake.partition-by``, and options."""


def _judge_files(table: Any) -> None:
    head, _ = table.log.head()
    live = files_at(table.log, head.number)
    assert any(entry.level for entry in live)
    # In each folder an epoch has at most two files, and the newest may be beyond.
    small = Counter(entry.partition for entry in live if entry.level == 0)
    assert max(small.values(), default=0) <= FOLD + 2
    maintenance = table.storage.maintenance(table.info)
    maintenance.remove_orphans(maintenance.orphans(1 << 60))
    assert table.staged_files() == []
    assert len(table.read_ids()) == sum(entry.rows for entry in live)


def test_killed_and_frozen_at_any_moment(table: Any) -> None:
    table.options = LocalFileOptions(fold_files=FOLD)
    run(table, 12)
    _judge_files(table)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file_format", list(FileFormatName))
def test_killed_and_frozen_200_times_at_any_moment(make_table: Any, file_format: FileFormatName) -> None:
    table = make_table(options=LocalFileOptions(file_format=file_format, fold_files=FOLD))
    run(table, 200)
    _judge_files(table)


def _in_layout(make_table: Any, layout: str) -> Any:
    partition_by, options = LAYOUTS[layout]
    return make_table(schema=TIMED, partition_by=partition_by, options=LocalFileOptions(fold_files=FOLD, **options))


@pytest.mark.parametrize("layout", ["Hive and time"])
def test_killed_and_frozen_in_folders_by_time(make_table: Any, layout: str) -> None:
    run(_in_layout(make_table, layout), 4)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_killed_and_frozen_200_times_in_folders_by_time(make_table: Any, layout: str) -> None:
    table = _in_layout(make_table, layout)
    run(table, 200)
    _judge_files(table)


@pytest.mark.parametrize("file_format", ["json"])
def test_killed_and_frozen_while_open_files_grow(open_table: Any, file_format: str) -> None:
    _run_open(open_table(file_format, target_file_rows="30"), 12)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file_format", ["json", "csv", "arrow"])
def test_killed_and_frozen_200_times_while_open_files_grow(open_table: Any, file_format: str) -> None:
    _run_open(open_table(file_format, target_file_rows="30"), 200)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("layout", ["time", "Hive and time"])
def test_killed_and_frozen_200_times_while_files_by_time_grow(open_table: Any, layout: str) -> None:
    partition_by, options = LAYOUTS[layout]
    table = open_table("json", target_file_rows="30", time_pattern=str(options["time_pattern"]))
    table.schema, table.partition_by = TIMED, partition_by
    table.options = replace(table.options, time_pattern=options["time_pattern"])
    table.keys["lake.partition-by"] = ", ".join(partition_by)
    _run_open(table, 200)


def _run_open(table: Any, rounds: int) -> None:
    table.create()
    run(table, rounds, growing)
    with table.writer() as writer:
        last = writer.next_epoch
        writer.write(last, [rows_of([last * 1000 + i for i in range(4)], ["r"] * 4, table.schema)])
    head, _ = table.log.head()
    assert head.open_files == ()
    ids = table.read_ids()
    assert ids == [epoch * 1000 + i for epoch in range(last + 1) for i in range(4)]
    # By now all is finished, and others see all of it.
    for reader, found in table.read_by_others().items():
        assert found == ids, reader
    maintenance = table.storage.maintenance(table.info)
    maintenance.remove_orphans(maintenance.orphans(1 << 60))
    assert table.staged_files() == []
    for number in range(0, head.number, 7):
        manifest = table.log.read(number)
        then = sum(entry.rows for entry in files_at(table.log, number))
        assert len(table.read_ids(snapshot_id=number)) == then, manifest.kind
