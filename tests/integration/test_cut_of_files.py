"""How files are cut and named, the same for each format whose files laketier writes."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import laketier
from laketier.kit.file_names import PREFIX, SUFFIX, FileNames, NameSettings, spelled
from laketier.registry import configure, open_lake
from laketier.spi import CommitterInitContext, ConfigError, LaketierError, WriterInitContext, new_attempt_id
from laketier.tables import prepare_table

FORMATS = ["localfile", "delta", "iceberg"]
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def options(tmp_path: Path, format: str, **more: Any) -> dict[str, str]:
    keys = {f"lake.{format}.{key.replace('_', '-')}": str(value) for key, value in more.items()}
    return {
        "lake.format": format, "lake.warehouse": str(tmp_path), "lake.table": "db.t", "lake.pipeline": "p", **keys,
    }  # fmt: skip


def hours(*found: int) -> pa.RecordBatch:
    times = [datetime(2026, 11, 24, tzinfo=UTC) + timedelta(hours=hour) for hour in found]
    return pa.record_batch([pa.array(found, pa.int64()), pa.array(times, SCHEMA.field("at").type)], schema=SCHEMA)


@pytest.mark.parametrize("format", FORMATS)
def test_files_end_by_event_time(tmp_path: Path, format: str) -> None:
    keys = options(tmp_path, format, event_time_column="at", target_file_event_seconds=7200)
    with laketier.open_writer(keys, SCHEMA) as writer:
        done = writer.write(0, [hours(0), hours(1), hours(2), hours(3), hours(4)])
    assert (done.files, done.rows) == (3, 5)
    found = duckdb.sql(f"SELECT id FROM read_parquet('{tmp_path}/db/t/**/*.parquet') ORDER BY id").fetchall()
    assert [row[0] for row in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("format", FORMATS)
def test_event_time_of_no_column_is_refused_before_anything_is_written(tmp_path: Path, format: str) -> None:
    keys = options(tmp_path, format, event_time_column="id", target_file_event_seconds=7200)
    with laketier.open_writer(keys, SCHEMA) as writer, pytest.raises(ConfigError, match="of type int64"):
        writer.write(0, [hours(0)])
    assert not list(tmp_path.rglob("*.parquet"))


def test_lance_cuts_its_files_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="target-file-event-seconds"):
        laketier.open_writer(options(tmp_path, "lance", target_file_event_seconds=7200), SCHEMA)


# -- names -------------------------------------------------------------------------------------------------------------

SPELLED = {
    "attempt": r"[0-9a-f]{32}",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "uuidv7": r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "ulid": r"[0-7][0-9A-Z]{25}",
}


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.rglob("*.parquet") if "checkpoint" not in path.name)


@pytest.mark.parametrize("format", FORMATS)
def test_names_are_as_asked_and_may_change_at_any_time(tmp_path: Path, format: str) -> None:
    for epoch, (spelling, pattern) in enumerate(SPELLED.items()):
        chosen = {"file_names": spelling, "file_prefix": f"pre{epoch}.", "file_suffix": "_eu-1"}
        before = names(tmp_path)
        with laketier.open_writer(options(tmp_path, format, **chosen), SCHEMA) as writer:
            writer.write(epoch, [hours(epoch)])
        (new,) = set(names(tmp_path)) - set(before)
        assert re.fullmatch(rf"pre{epoch}\.[a-z0-9-]*{pattern}-[0-9]+_eu-1\.parquet", new), new
    found = duckdb.sql(f"SELECT id FROM read_parquet('{tmp_path}/db/t/**/*.parquet') ORDER BY id").fetchall()
    assert [row[0] for row in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("spelling", ["uuid", "ulid"])
def test_orphans_are_told_from_live_files_by_their_names(tmp_path: Path, format: str, spelling: str) -> None:
    keys = options(tmp_path, format, file_names=spelling, file_prefix="x2", file_suffix=".b")
    with laketier.open_writer(keys, SCHEMA) as writer:
        writer.write(0, [hours(0)])
        writer.write(1, [hours(1)])
    lake = open_lake(configure(keys))
    table = lake.storage.catalog().load_table(lake.config.table)
    attempt = new_attempt_id()
    with lake.storage.tiering_factory(table).create_writer(WriterInitContext(attempt)) as staging:
        staging.write(hours(2))
        staged = staging.complete()
    maintenance = lake.storage.maintenance(table)
    orphans = maintenance.orphans(time.time_ns() // 1_000_000 + 60_000)
    data = [each for each in orphans if ".parquet" in each.path]  # Delta lists records of old watermarks, too
    assert [Path(each.path).name for each in data] == [Path(staged.files[0].path).name]
    assert [each.attempt for each in data] == [attempt]
    committer = lake.storage.tiering_factory(table).create_committer(CommitterInitContext(new_attempt_id()))
    committer.publish(committer.open(), [staged], None)
    left = maintenance.orphans(time.time_ns() // 1_000_000 + 60_000)
    assert not any(".parquet" in each.path for each in left)


@pytest.mark.parametrize("format", FORMATS)
def test_a_taken_name_is_refused_and_its_file_stays(tmp_path: Path, format: str) -> None:
    """Names are unguessable; here one attempt is given to two writers."""
    keys = options(tmp_path, format, file_names="ulid", file_prefix="same")
    lake = open_lake(configure(keys))
    table = prepare_table(lake, SCHEMA)
    factory = lake.storage.tiering_factory(table)
    context = WriterInitContext(new_attempt_id())
    with factory.create_writer(context) as first:
        first.write(hours(1))
        staged = first.complete()
    [path] = tmp_path.rglob(Path(staged.files[0].path).name)
    before = path.read_bytes()
    second = factory.create_writer(context)
    second.write(hours(2, 3))
    with pytest.raises((FileExistsError, LaketierError)):
        second.complete()
    assert path.read_bytes() == before


@pytest.mark.parametrize("format", ["delta", "iceberg"])
@pytest.mark.parametrize(
    "chosen",
    [
        {"file_names": "serial"},
        {"file_prefix": "_hidden"},
        {"file_prefix": "../x"},
        {"file_prefix": "7"},
        {"file_prefix": "a" * 65},
        {"file_suffix": "-b7"},
        {"file_suffix": "1"},
        {"file_suffix": "a/b"},
        {"file_suffix": "é"},
        {"file_prefix": f"a{'0' * 32}"},
    ],
)
def test_names_that_could_be_taken_for_others_are_refused(tmp_path: Path, format: str, chosen: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=rf"lake\.{format}\.file-"):
        laketier.open_writer(options(tmp_path, format, **chosen), SCHEMA).write(0, [hours(0)])
    assert names(tmp_path) == []


@given(
    st.builds(new_attempt_id, st.integers(0, 1 << 47)) | st.from_regex(r"\A[0-9a-f]{32}\Z"),
    st.sampled_from([each for each in FileNames if each is not FileNames.SERIAL]),
    st.from_regex(rf"\A{PREFIX}\Z"),
    st.from_regex(rf"\A{SUFFIX}\Z"),
    st.none() | st.integers(0, 99),
    st.integers(0, 10**6),
)
def test_attempt_and_bucket_are_found_in_each_name(
    attempt: str, spelling: FileNames, prefix: str, suffix: str, bucket: int | None, number: int
) -> None:
    from laketier_delta.layout import attempt_of, bucket_of, core_of, cores_in, file_path, fingerprint_of, stem_of
    from laketier_iceberg.writer import attempt_of as attempt_of_iceberg

    chosen = NameSettings(spelling, prefix, suffix)
    try:
        chosen.check_names("delta")
    except ConfigError:
        assume(False)
    path = file_path(["k"], ["a/b c"], stem_of("0" * 16, attempt, number, spelling), bucket, names=chosen)
    assert attempt_of(path, ["k"]) == attempt
    assert (bucket_of(path), fingerprint_of(path)) == (-1 if bucket is None else bucket, "0" * 16)
    entry = f'{{"add":{{"path":"{quote(path)}","size":1}}}}'
    assert cores_in(b"\x15a" + entry.encode()) == {core_of(path.rpartition("/")[2])}
    iceberg = f"s3://b/t/data/{prefix}{number:05}-{spelled(attempt, spelling)}-{number:05}{suffix}.parquet"
    assert attempt_of_iceberg(iceberg) == attempt


def test_names_of_other_engines_are_none_of_ours() -> None:
    from laketier_iceberg.writer import attempt_of

    number = "0192a7c0-1111-4222-8333-444455556666"
    for name in (f"00000-12345-{number}-00001", f"00000-0-{number}-0-00001", f"part-00000-{number}-c000.snappy"):
        assert attempt_of(f"file:///t/data/{name}.parquet") is None
