"""Names that users choose: whatever is around it, the file is found where it was staged, and no name is given twice."""

from __future__ import annotations

import re
import signal
import uuid
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit.file_names import FileNames, spelled
from laketier.kit.manifests import FileEntry, files_at
from laketier.spi import ConfigError, LakeStorageConfig, WriteMode, attempt_began_at, new_attempt_id
from laketier_localfile.layout import attempt_of, attempt_of_staged, base_name, final_path, staged_path
from laketier_localfile.naming import Naming, core_of
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin

words = st.from_regex(r"\A(?:[0-9A-Za-z][0-9A-Za-z.@+_-]{0,20})?\Z")
suffixes = st.from_regex(r"\A(?:[A-Za-z.@+_-][0-9A-Za-z.@+_-]{0,20})?\Z")
ends = st.sampled_from([".parquet", ".json", ".json.gz", ".json.zst", ".csv", ".arrow"])
styles = st.sampled_from(list(FileNames))
attempts = st.one_of(st.builds(new_attempt_id, st.integers(0, 1 << 47)), st.from_regex(r"\A[0-9a-f]{32}\Z"))


def ids(*epochs: int) -> list[int]:
    return [epoch * 1000 + i for epoch in epochs for i in range(4)]


@given(words, suffixes, st.booleans(), styles, attempts, st.none() | st.integers(0, 10**6), ends, st.integers(0, 10**6))
def test_what_is_added_to_a_name_can_be_taken_off_again(
    prefix: str, suffix: str, serial: bool, style: FileNames, attempt: str, bucket: int | None, end: str, number: int
) -> None:
    base = base_name(number, bucket, attempt, number, end, style)
    staged = staged_path(base)
    assert attempt_of_staged(staged) == attempt
    entry = FileEntry(final_path(staged, ["r=part-00000-x"]), 1, 1, 0)
    [named] = Naming(prefix, suffix, serial).applied(number, [entry])
    assert core_of(named.path.rpartition("/")[2]) == base
    assert staged_path(named.path) == staged
    assert attempt_of(named.path) == attempt
    assert named.path.endswith(suffix + end)
    assert named.path.startswith(f"r=part-00000-x/{prefix}")


@given(st.lists(attempts, min_size=2, max_size=2, unique=True), styles)
def test_two_attempts_never_have_one_spelling(two: list[str], style: FileNames) -> None:
    first, second = (spelled(attempt, style) for attempt in two)
    assert first != second


def test_the_spellings_are_what_they_are_called() -> None:
    made = sorted(new_attempt_id(at) for at in range(1 << 46, (1 << 46) + 50))
    assert {uuid.UUID(attempt).version for attempt in made} == {7}
    assert {uuid.UUID(attempt).variant for attempt in made} == {uuid.RFC_4122}
    assert attempt_began_at(made[0]) == 1 << 46
    sevens = [spelled(attempt, FileNames.UUIDV7) for attempt in made]
    assert [uuid.UUID(text).hex for text in sevens] == made
    fours = [spelled(attempt, FileNames.UUID) for attempt in made]
    assert {uuid.UUID(text).version for text in fours} == {4}
    assert len({text[:2] for text in fours}) > 20, "they do not begin alike"
    ulids = [spelled(attempt, FileNames.ULID) for attempt in made]
    assert ulids == sorted(ulids)
    assert all(re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", text) for text in ulids)
    # The example of the ULID specification: its first ten digits are the time, 1469922850259 ms.
    at = spelled(f"{1469922850259:012x}" + "7" + "0" * 3 + "8" + "0" * 15, FileNames.ULID)
    assert at[:10] == "01ARZ3NDEK"


@pytest.mark.parametrize("names", list(FileNames))
def test_rounds_folds_and_readers_under_each_kind_of_name(make_table: Any, names: FileNames) -> None:
    options = LocalFileOptions(file_names=names, file_prefix="orders.", file_suffix="_eu", fold_files=2)
    table = make_table(options=options, partition_by=("region",))
    for epoch in range(4):
        table.round(epoch)
    assert table.read_ids() == ids(0, 1, 2, 3)
    paths = table.plain_files()
    assert all(path.name.startswith("orders.") and path.name.endswith("_eu.parquet") for path in paths)
    found = duckdb.sql(f"SELECT id FROM read_parquet('{table.location}/**/*.parquet') ORDER BY id").fetchall()
    assert [row[0] for row in found] == ids(0, 1, 2, 3)
    staged = table.stage(table.ids(9))
    maintenance = table.storage.maintenance(table.info)
    orphans = maintenance.orphans(1 << 60)
    assert {orphan.attempt for orphan in orphans} == {staged.attempt}
    table.committer().discard([staged])
    assert table.staged_files() == []
    # Whoever goes on with other settings finds all files.
    table.options = LocalFileOptions(fold_files=2)
    table.round(4)
    table.round(5)
    assert table.read_ids() == ids(0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("file_format", list(FileFormatName))
def test_plain_readers_find_files_of_any_name(make_table: Any, file_format: FileFormatName) -> None:
    options = LocalFileOptions(file_format=file_format, file_prefix="9p", file_suffix=".s", file_names=FileNames.ULID)
    table = make_table(options=options)
    table.round(0)
    table.round(1)
    lines = LocalFilePlugin().open_with(table.info)
    for reader in ("DuckDB", "Polars"):
        if reader not in lines:
            continue
        names: dict[str, Any] = {}
        *imports, last = lines[reader].split("; ")
        exec("; ".join(imports), names)  # noqa: S102 - the line that people are told to run
        found = eval(last, names)  # noqa: S307
        rows = found.fetchall() if reader == "DuckDB" else found.rows()
        assert sorted(row[0] for row in rows) == ids(0, 1), reader


def test_serial_numbers_go_on_after_a_restart_and_none_is_given_twice(make_table: Any) -> None:
    table = make_table(options=LocalFileOptions(file_names=FileNames.SERIAL, fold_files=0))
    table.round(0)
    first, second = table.committer(), table.committer()
    states = first.open(), second.open()
    staged = table.stage(table.ids(1)), table.stage(table.ids(2))
    first.publish(states[0], [staged[0]], None)
    with pytest.raises(Exception, match="another writer"):
        second.publish(states[1], [staged[1]], None)
    second.publish(second.open(), [staged[1]], None)
    head, _ = table.log.head()
    serials = [entry.path.partition("-part-")[0] for entry in files_at(table.log, head.number)]
    assert serials == ["00000001-0000", "00000002-0000", "00000003-0000"]


@pytest.mark.parametrize("point", ["publish.after_manifest_before_renames=kill", "publish.mid_renames=kill@1"])
def test_a_crash_before_the_files_have_their_names(make_table: Any, point: str) -> None:
    options = {"file_names": FileNames.SERIAL, "file_prefix": "p-", "file_suffix": "-s"}
    table = make_table(options=LocalFileOptions(**options))
    code, said = table.child(point, 0, **options).join()
    assert code == -signal.SIGKILL, said
    assert table.read_ids() == ids(0)
    # Another process, which names its own files in another way, gives them the names that the commit chose.
    table.options = LocalFileOptions()
    table.committer().open()
    assert sorted(path.name[:16] for path in table.plain_files()) == ["p-00000001-0000-", "p-00000001-0001-"]
    assert table.read_ids() == ids(0)


@pytest.mark.parametrize(
    "options",
    [
        {"file_prefix": "_x"},
        {"file_prefix": ".x"},
        {"file_prefix": "a/b"},
        {"file_prefix": "../x"},
        {"file_suffix": "a b"},
        {"file_suffix": "/../x"},
        {"file_prefix": "x" * 65},
        {"file_suffix": "é"},
        {"file_prefix": "k=v"},
        {"file_prefix": f"part-00000-{'a' * 32}-0000"},
        {"file_suffix": "\n"},
        {"file_suffix": "0"},
    ],
)
def test_what_can_be_no_part_of_a_name_is_refused(tmp_path: Any, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"file-(prefix|suffix)"):
        LocalFilePlugin().create_storage(LakeStorageConfig(str(tmp_path), LocalFileOptions(**options)))


def test_a_name_with_everything_fits_a_file_system(make_table: Any) -> None:
    options = LocalFileOptions(file_prefix="p" * 64, file_suffix="s" * 62, file_names=FileNames.SERIAL)
    table = make_table(options=options)
    table.round(0)
    table.round(1, mode=WriteMode.OVERWRITE)
    assert table.read_ids() == ids(1)
    assert table.read_ids(snapshot_id=1) == ids(0), "superseded files have a longer name yet"


def test_a_forged_result_under_a_final_name_is_refused(make_table: Any) -> None:
    table = make_table(options=LocalFileOptions(file_prefix="p-"))
    staged = table.stage(table.ids(0))
    path = staged.files[0].path
    forged = replace(staged, files=(replace(staged.files[0], path=path.replace("/part-", "/p-part-")),))
    committer = table.committer()
    with pytest.raises(Exception, match=r"gone|not the path|did not stage|no writer"):
        committer.publish(committer.open(), [forged], None)
    assert table.read_ids() == []
