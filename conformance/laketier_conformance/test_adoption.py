"""Tables of files that lie there: all of them or no table, and nobody's file is moved, written or deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    CorruptTable,
    Feature,
    IncompatibleData,
    IncompatibleTable,
    LaketierError,
    Leaf,
    Op,
    OutsideTable,
    RolledBack,
    ScanRequest,
    TableNotFound,
    WatermarkLost,
    WriteMode,
)
from laketier.tiering import RoundOutcome
from laketier_conformance import apart
from laketier_conformance.children import Child
from laketier_conformance.expect import NotShown, expect, goes_well, refused
from laketier_conformance.lake import Lake, ids_of, name_of, token
from laketier_conformance.lying import LyingFiles
from laketier_conformance.outside import LONG_AGO, files_below

pytestmark = pytest.mark.needs(Feature.ADOPTION)

NOTES = "notes.txt"
FIRST, SECOND, THIRD, LATER, LATEST = range(10, 15)
"""The ids of files are those of epochs which no test comes to."""
THEIRS = ids_of(FIRST) + ids_of(SECOND)


def _lying(lake: Lake) -> LyingFiles:
    """Two files of rows, in a folder."""
    lying = LyingFiles.of(lake)
    lying.put("a.parquet", ids_of(FIRST))
    lying.put("b.parquet", ids_of(SECOND))
    return lying


def test_files_become_a_table(lake: Lake) -> None:
    """Its rows are theirs, and they stay as they are. What is none of them is told by its name."""
    lying = _lying(lake)
    apart.write(lying.folder / NOTES, b"to be kept")
    before, size = lying.everything(), sum(path.stat().st_size for path in lying.folder.glob("*.parquet"))
    seen: list[tuple[int, int]] = []
    made = lying.adopt(on_progress=lambda done, of: seen.append((done, of)))
    lying.keeps(before, "a table was made of them")
    found = (made.made, made.files, made.rows, made.bytes, [*made.left_out])
    expect(found, (True, 2, 10, size, [NOTES]), "what is told of the table: made, files, rows, bytes, left out")
    expect(lying.table.info.table_uuid, made.table.table_uuid, "the table's identity, as it is told and as it is found")
    assert lying.name in lying.tables(), f"a table of files is listed: {lying.name} in {lying.tables()}"
    expect(lying.table.ids, THEIRS, "rows of a table of files")
    names = lying.table.read(columns=("id", "name")).to_pylist()
    expect({row["id"]: row["name"] for row in names}, {i: name_of(i) for i in THEIRS}, "names of rows")
    assert seen, "the progress of an adoption is told"
    assert seen == sorted(seen), f"progress goes on, and not back: found {seen}"
    done, of_all = seen[-1]
    expect(done, of_all, "the files of the last progress that is told")


def test_again_is_the_same_table(lake: Lake) -> None:
    """Who was killed before the answer asks again. Rounds may have come meanwhile."""
    lying = _lying(lake)
    first = lying.adopt()
    again = lying.adopt()
    expect((again.made, again.table.table_uuid), (False, first.table.table_uuid), "what is told of a table of before")
    lying.table.append(0)
    last = lying.adopt()
    expect((last.made, last.table.table_uuid), (False, first.table.table_uuid), "the same, after a round")
    expect(lying.table.ids, sorted(THEIRS + ids_of(0)), "rows after a table was made three times")


@pytest.mark.needs(Feature.PARTITIONING)
def test_another_one_is_asked_for(lake: Lake) -> None:
    """The table that is there is not the one that was asked for, and nobody would find out."""
    lying = LyingFiles.of(lake)
    lying.put("day=1/a.parquet", ids_of(FIRST))
    lying.adopt()
    lying.refuses(IncompatibleTable, "a table without partitions is asked for with them", partitions=True)
    lying.refuses(IncompatibleTable, "a table is asked for with another type", types={"id": pa.string()})
    expect(lying.adopt(types={"id": pa.int64()}).made, False, "whether a table was made by who asked for its own types")
    expect(lying.table.ids, ids_of(FIRST), "rows of a table that was asked for in other ways")


def test_rounds_go_on_in_it(lake: Lake) -> None:
    lying = _lying(lake)
    lying.adopt()
    expect(lying.table.watermark(), None, "the watermark of a pipeline in a table that was just made of files")
    expect(lying.table.append(0).outcome, RoundOutcome.PUBLISHED, "the outcome of the first round")
    expect(lying.table.append(0).outcome, RoundOutcome.ALREADY_THERE, "the outcome of its replay")
    expect(lying.table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the next round")
    rows = sorted(ids_of(0) + ids_of(1) + THEIRS)
    expect(lying.table.ids, rows, "rows of a table of files, and of its rounds")
    at_least = rows[len(rows) // 2]
    found = lying.table.read(columns=("id",), filters=(Leaf("id", Op.GE, at_least),))["id"].to_pylist()
    expect(sorted(found), [i for i in rows if i >= at_least], f"rows from {at_least} on, by a filter")


@pytest.mark.needs(Feature.OVERWRITE)
def test_an_overwrite_takes_their_rows_away(lake: Lake) -> None:
    """Files of two folders may have one name, and the snapshot of before needs both."""
    lying = LyingFiles.of(lake)
    lying.put("day=2026-01-01/a.parquet", ids_of(FIRST))
    lying.put("day=2026-01-02/a.parquet", ids_of(SECOND))
    lying.adopt(partitions=True, types={"day": pa.date32()})
    before = lying.table.source.plan(ScanRequest()).snapshot_id
    lying.table.round(token(0), [ids_of(5)], WriteMode.OVERWRITE)
    expect(lying.table.ids, ids_of(5), "rows after a table of files was overwritten")
    if lake.declares(Feature.TIME_TRAVEL):
        with goes_well("the snapshot before an overwrite is read, whose files have one name in two folders"):
            found = lying.table.read(columns=("id",), snapshot_id=before)["id"].to_pylist()
        expect(sorted(found), THEIRS, "rows of the snapshot before an overwrite")


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_a_collection_takes_nothing_of_others(lake: Lake) -> None:
    """Old files of others lay there before, and came later, of the very kind that the table is made of. None of them
    is an orphan: somebody put it there, and may want it back."""
    lying = _lying(lake)
    apart.write(lying.folder / NOTES, b"to be kept")
    lying.adopt()
    lying.put("later.parquet", ids_of(LATER))
    lying.put("below/later.parquet", ids_of(LATEST))
    for path in files_below(lying.folder):
        os.utime(path, (LONG_AGO, LONG_AGO))
    before = lying.everything()
    lying.table.append(0)
    lying.table.staged(ids_of(1))
    lake.let_age()
    collect_orphans(lake.storage, lying.table.info, grace=timedelta(0))
    theirs = {path: state for path, state in before.items() if Path(path).suffix in (".parquet", ".txt")}
    lying.keeps(theirs, "orphans were collected")
    expect(lying.table.ids, sorted(THEIRS + ids_of(0)), "rows after orphans were collected")


def test_no_folder(lake: Lake) -> None:
    lying = LyingFiles.of(lake)
    lying.folder.rmdir()
    with refused(TableNotFound, "a table is made of a folder that is not there"):
        lying.adopt()
    assert not lying.folder.exists(), "no folder is made for a table of files that are not there"
    expect(lying.name in lying.tables(), False, "whether the table is listed")


def test_a_folder_without_rows(lake: Lake) -> None:
    """There is nothing that tells the columns."""
    lying = LyingFiles.of(lake)
    errors = (IncompatibleData, IncompatibleTable, TableNotFound)
    lying.refuses(errors, "a table is made of an empty folder")
    apart.write(lying.folder / NOTES, b"no rows")
    lying.refuses(errors, "a table is made of a folder without data files")


def test_a_table_is_not_made_of_a_table(lake: Lake) -> None:
    """Some of its files may not count any more, and its pipelines would begin anew."""
    lying = LyingFiles.of(lake)
    lying.folder.rmdir()
    table = lake.create(name=lying.name)
    table.append(0)
    with refused(IncompatibleTable, "a table is made of the files of one that laketier made"):
        lying.adopt()
    expect(table.append(0).outcome, RoundOutcome.ALREADY_THERE, "the outcome of a replay in that table")
    expect(table.ids, ids_of(0), "rows of that table")


@pytest.mark.parametrize(
    "mark",
    [
        "_delta_log/00000000000000000000.json",
        "metadata/v1.metadata.json",
        "_versions/1.manifest",
        ".hoodie/hoodie.properties",
    ],
    ids=["delta", "iceberg", "lance", "hudi"],
)
def test_a_table_of_others_is_not_taken_for_files(lake: Lake, mark: str) -> None:
    """Which of its files count only its own metadata tells."""
    lying = _lying(lake)
    (lying.folder / mark).parent.mkdir()
    apart.write(lying.folder / mark, b"{}")
    lying.refuses((IncompatibleTable, CorruptTable), f"a table is made of a folder with {mark}")


def test_files_that_disagree(lake: Lake) -> None:
    """Nobody guesses which type was meant. A user may say it."""
    lying = _lying(lake)
    lying.put_table("odd.parquet", pa.table({"id": ["6"], "name": ["six"], "value": [1.5]}))
    lying.refuses(IncompatibleData, "a table is made of files that have a column as integers and as text")
    made = lying.adopt(types={"id": pa.string()})
    expect(made.rows, 11, "rows of files whose types the user chose")
    expect(lying.table.info.schema.field("id").type, pa.string(), "the type that was chosen")
    found = lying.table.read(columns=("id",))["id"].to_pylist()
    expect(sorted(found), sorted([*map(str, THEIRS), "6"]), "its values")


def test_a_column_that_some_files_lack(lake: Lake) -> None:
    """Its rows of them are nulls, and no other file is left out for it."""
    lying = _lying(lake)
    lying.put_table("more.parquet", pa.table({"id": pa.array([7], pa.int64()), "more": ["here"]}))
    lying.adopt()
    found = {row["id"]: row["more"] for row in lying.table.read(columns=("id", "more")).to_pylist()}
    expect(found, {**dict.fromkeys(THEIRS), 7: "here"}, "values of a column that one file has")


@pytest.mark.parametrize(
    "text", [b"", b"no file of Parquet", b"PAR1" + bytes(40) + b"PAR1"], ids=["empty", "other", "torn"]
)
def test_a_file_that_is_none(lake: Lake, text: bytes) -> None:
    """Its rows would be missing without a word."""
    lying = _lying(lake)
    apart.write(lying.folder / "broken.parquet", text)
    lying.refuses((IncompatibleData, CorruptTable), "a table is made of files of which one can't be read")


@pytest.mark.parametrize("name", ["with blank", "50%25", "a#b?c", "ünïcode", "k=v", "-"])
def test_odd_names(lake: Lake, name: str) -> None:
    """Of a file and of its folder: nobody escapes what somebody else called so."""
    lying = LyingFiles.of(lake)
    lying.put(f"{name}.parquet", ids_of(FIRST))
    lying.put(f"{name}/{name}.parquet", ids_of(SECOND))
    lying.adopt()
    lying.table.append(0)
    expect(lying.table.ids, sorted(THEIRS + ids_of(0)), f"rows of files and a folder {name!r}")


@pytest.mark.needs(Feature.PARTITIONING)
def test_folders_are_partitions(lake: Lake) -> None:
    """The value of a folder is that of its rows, also where it is none."""
    lying = LyingFiles.of(lake)
    lying.put("day=2026-01-01/a.parquet", ids_of(0))
    lying.put("day=2026-01-02/a.parquet", ids_of(1))
    lying.put("day=__HIVE_DEFAULT_PARTITION__/a.parquet", ids_of(2))
    lying.adopt(partitions=True, types={"day": pa.date32()})
    info = lying.table.info
    expect([field.column for field in info.descriptor.partition_by], ["day"], "the partition columns")
    rows = lying.table.read(columns=("id", "day")).to_pylist()
    days = {0: date(2026, 1, 1), 1: date(2026, 1, 2), 2: None}
    expect({row["id"]: row["day"] for row in rows}, {i: days[n] for n in days for i in ids_of(n)}, "days of rows")
    found = lying.table.read(columns=("id",), filters=(Leaf("day", Op.EQ, days[1]),))["id"].to_pylist()
    expect(sorted(found), ids_of(1), "rows of a day, by a filter")
    spelled = LyingFiles.of(lake, "spelled")
    codes = {0: ("007", "007"), 1: ("50%2525", "50%25"), 2: ("a%2Fb", "a/b")}
    for number, (folder, _) in codes.items():
        spelled.put(f"code={folder}/a.parquet", ids_of(number))
    spelled.adopt(partitions=True, types={"code": pa.string()})
    rows = spelled.table.read(columns=("id", "code")).to_pylist()
    of_rows = {i: code for number, (_, code) in codes.items() for i in ids_of(number)}
    expect({row["id"]: row["code"] for row in rows}, of_rows, "texts of rows, by the names of their folders")


@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_link_to_others(lake: Lake, of: str, tmp_path: Path) -> None:
    """Whoever may write to the folder does not choose what else is read, or taken for the table's."""
    lying = _lying(lake)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    secret = lying.put("secret.parquet", ids_of(9)).rename(elsewhere / "secret.parquet")
    (lying.folder / ("c.parquet" if of == "file" else "c")).symlink_to(secret if of == "file" else elsewhere)
    lying.refuses(OutsideTable, f"a table is made of a folder with a link to somebody else's {of}")


@pytest.mark.parametrize("change", ["gone", "more", "other"])
def test_files_that_change_meanwhile(lake: Lake, change: str) -> None:
    """It is refused, or the table has the rows that lie there now: never a part, or rows that nobody has."""
    lying = _lying(lake)
    changed: list[bool] = []

    def progress(_: int, __: int) -> None:
        if changed:
            return
        changed.append(True)
        if change == "gone":
            (lying.folder / "b.parquet").unlink()
        else:
            lying.put("b.parquet" if change == "other" else "c.parquet", ids_of(THIRD, rows=7))

    there = {"gone": (FIRST,), "more": (FIRST, SECOND, THIRD), "other": (FIRST, THIRD)}[change]
    try:
        lying.adopt(on_progress=progress)
    except IncompatibleTable:
        assert lying.name not in lying.tables(), "a table whose files changed meanwhile is refused, and there is none"
        lying.adopt()
    if changed:
        rows = sorted(i for n in there for i in ids_of(n, rows=7 if n == THIRD else 5))
        expect(lying.table.ids, rows, f"rows of a table one of whose files was {change} while they were looked at")


def test_processes_side_by_side(lake: Lake, children: Callable[[int], list[Child]]) -> None:
    """There is one table. One process made it, and the others found it."""
    lying = _lying(lake)
    asked = children(3)
    for each in asked:
        each.begin(lake, "adopt", table=lying.name, wait=True)
    assert all(each.answer() == {"ready": True} for each in asked), "each process is ready to make the table"
    for each in asked:
        each.go()
    answers = [each.answer() for each in asked]
    expect(len({answer.get("uuid") for answer in answers}), 1, f"tables of one folder, by the answers {answers}")
    expect(
        sum(answer.get("made", 0) for answer in answers), 1, f"processes that made the table, by the answers {answers}"
    )
    expect(lying.table.ids, THEIRS, "rows of a table that processes made side by side")


def test_no_table_is_rebuilt_that_is_whole(lake: Lake) -> None:
    """Its files are not all rows: some ended, some are not published yet."""
    lying = _lying(lake)
    lying.adopt()
    lying.table.append(0)
    with refused(IncompatibleTable, "the metadata of a whole table is made again"):
        lake.storage.adoption().rebuild(lying.path)
    expect(lying.table.append(0).outcome, RoundOutcome.ALREADY_THERE, "the outcome of a replay after that")
    expect(lying.table.ids, sorted(THEIRS + ids_of(0)), "rows after that")


def test_nothing_is_rebuilt_of_nothing(lake: Lake) -> None:
    lying = LyingFiles.of(lake)
    lying.folder.rmdir()
    with refused(TableNotFound, "the metadata of a table that never was is made again"):
        lake.storage.adoption().rebuild(lying.path)
    assert not lying.folder.exists(), "no folder is made for a table that never was"


def test_a_table_is_rebuilt_of_its_files(lake: Lake) -> None:
    """All but its files of rows is gone. Its rows are there once, and no pipeline of before begins anew: its watermark
    is lost, and it would write again what is there."""
    lying = LyingFiles.of(lake)
    lying.folder.rmdir()
    table = lake.create(name=lying.name)
    for epoch in range(3):
        table.append(epoch)
    table.append(0, THEIRS, pipeline="began")
    files = {file for split in table.source.plan(ScanRequest()).splits for file in split.files}
    if not files:
        raise NotShown(Feature.ADOPTION, "which files hold the rows is not told: the splits of its scans name none")
    for path in files_below(lying.folder):
        if str(path.relative_to(lying.folder)) not in files:
            path.unlink()
    for path in lying.folder.iterdir():
        if path.is_dir() and not files_below(path):
            shutil.rmtree(path)
    with refused(LaketierError, "a round goes on in a table whose metadata is gone"):
        table.append(3)
    rebuilt = lake.storage.adoption().rebuild(lying.path)
    rows = sorted([*(i for epoch in range(3) for i in ids_of(epoch)), *THEIRS])
    expect((rebuilt.files, rebuilt.rows), (len(files), len(rows)), "files and rows of a table that was rebuilt")
    expect(lying.table.ids, rows, "rows of a table that was rebuilt of its files")
    for epoch in (2, 3):
        with refused((RolledBack, WatermarkLost), f"a pipeline of before goes on with epoch {epoch}"):
            lying.table.append(epoch)
    with refused((RolledBack, WatermarkLost), "the first epoch of a pipeline of before is published again"):
        lying.table.append(0, THEIRS, pipeline="began")
    expect(lying.table.ids, rows, "rows of a table that was rebuilt, and that pipelines of before wrote to")
