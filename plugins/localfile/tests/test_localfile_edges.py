"""What seldom happens to a table, its files and its folder, and is told or left alone."""

from __future__ import annotations

import errno
import io
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as pa_ipc
import pytest

from laketier.kit import LocalFolder
from laketier.spi import (
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    PartitionField,
    ScanRequest,
    SetProperty,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    Transform,
    UnsupportedType,
    WriterInitContext,
    new_attempt_id,
)
from laketier_localfile import lying_on_disk, settle
from laketier_localfile.file_formats.arrow_ipc import _refuse_other_footer
from laketier_localfile.inferred import INFERRED
from laketier_localfile.lying_on_disk import DiskPlace
from laketier_localfile.names import FILE_FORMAT
from laketier_localfile.naming import Naming
from laketier_localfile.outside import OUTSIDE, check_outside
from laketier_localfile.partitioning import check_partitioning
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.stretch import Stretch
from laketier_localfile.table import refuse_several_devices

SCHEMA = pa.schema([("id", pa.int64())])


def test_another_file_of_the_same_size_is_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its first piece, or in its last."""
    monkeypatch.setattr(settle, "_CHUNK", 4)
    folder = LocalFolder(tmp_path)
    for number, theirs in enumerate(("Rows of 1", "rows of 2")):
        (tmp_path / f"staged-{number}").write_text("rows of 1")
        (tmp_path / f"final-{number}").write_text(theirs)
        with pytest.raises(CorruptTable, match="another file has the name of a published data file"):
            settle._link(folder, f"staged-{number}", f"final-{number}")
        assert (tmp_path / f"final-{number}").read_text() == theirs
        (tmp_path / f"final-{number}").write_text("rows of 1")
        assert settle._link(folder, f"staged-{number}", f"final-{number}") is True


def test_a_file_that_became_shorter_is_no_shorter_stretch(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    with pa.OSFile(str(path)) as file:
        whole = Stretch(2, 8).bytes_of(file)
        assert whole.seekable()
        assert whole.read() == b"234567"
        os.truncate(path, 5)
        whole.seek(0)
        with pytest.raises(OSError, match="became shorter than 8 bytes"):
            whole.read()


def test_a_table_that_was_dropped_is_on_no_device(tmp_path: Path) -> None:
    refuse_several_devices(tmp_path)
    with pytest.raises(TableNotFound, match="the table was dropped meanwhile"):
        refuse_several_devices(tmp_path / "gone")


def test_a_name_that_no_attempt_made_stays_as_it_is() -> None:
    """Of a file that lay there before it was adopted."""
    assert Naming("ours-", "", serial=True)._final("day=1/theirs.parquet", 3, 0) == "day=1/theirs.parquet"


@pytest.mark.parametrize("value", ["true", "", "maybe"])
def test_columns_are_outside_or_nothing_is_said(value: str) -> None:
    with pytest.raises(ConfigError, match=f"is {value!r}"):
        check_outside(TableDescriptor(SCHEMA, properties={OUTSIDE: value}))
    check_outside(TableDescriptor(SCHEMA))


def test_a_format_of_every_table_is_no_property(make_table: Callable[..., Any]) -> None:
    """As in tables of older versions; another one is."""
    catalog = make_table().storage.catalog()
    for number, (name, told) in enumerate((("parquet", {}), ("json", {FILE_FORMAT: "json"}))):
        path = TablePath("db", f"t{number}")
        made = catalog.create_table(path, TableDescriptor(SCHEMA, properties={FILE_FORMAT: name}))
        assert dict(made.descriptor.properties) == dict(catalog.load_table(path).descriptor.properties) == told


def test_only_parquet_in_a_store_is_opened_by_a_line() -> None:
    def told(**properties: str) -> list[str]:
        table = TableInfo(TablePath("db", "t"), TableDescriptor(SCHEMA, properties=properties), "u", "s3://b/db/t")
        return sorted(LocalFilePlugin().open_with(table))

    assert "Polars" in told() == told(**{FILE_FORMAT: "parquet"})
    assert told(**{FILE_FORMAT: "json"}) == []


def test_what_is_no_file_is_left_out_of_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    found = DiskPlace(tmp_path).files()
    assert list(found.files) == ["b.parquet"]
    assert found.left_out == {"a.parquet": "its name is that of no data file"}


def test_a_file_on_another_file_system(tmp_path: Path) -> None:
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    lying = DiskPlace(tmp_path).files()
    with pytest.raises(IncompatibleTable, match=r"'b.parquet' is on another file system than the folder"):
        lying_on_disk._walk(type(lying)({}, {}), tmp_path, "", os.stat(tmp_path).st_dev + 1)
    (tmp_path / "b.parquet").rename(tmp_path / "_b.parquet")
    lying_on_disk._walk(type(lying)({}, {}), tmp_path, "", os.stat(tmp_path).st_dev + 1)


@pytest.mark.parametrize("told", ["nothing", "another column"])
def test_an_arrow_file_whose_footer_tells_of_something_else(make_table: Callable[..., Any], told: str) -> None:
    """The stream before it is whole, and readers of files go by the footer."""
    table, lies = make_table(), TablePath("db", "lies")
    path = table.location.with_name("lies") / "a.arrow"
    path.parent.mkdir()
    other = pa.schema([("ID", pa.int64())])
    for name, schema in (("a", SCHEMA), ("b", other)):
        with pa_ipc.new_file(str(path.with_name(f"{name}.arrow")), schema) as file:
            file.write_batch(pa.record_batch([pa.array([1, 2])], schema=schema))
    ours, theirs = path.read_bytes(), path.with_name("b.arrow").read_bytes()
    path.with_name("b.arrow").unlink()

    def footer(data: bytes) -> int:
        return len(data) - 10 - int.from_bytes(data[-10:-6], "little", signed=True)

    ends = theirs[footer(theirs) :]
    if told == "nothing":
        ends = b"\xff" * (len(ends) - 10) + ends[-10:]
    path.write_bytes(ours[: footer(ours)] + ends)
    why = "its footer is damaged" if told == "nothing" else "its footer tells of other columns than it has"
    with pytest.raises(IncompatibleData, match=why):
        table.storage.adoption().adopt(lies)
    path.write_bytes(ours)
    assert table.storage.adoption().adopt(lies).rows == 2


def test_a_document_that_is_cut_is_told_by_the_decoder(make_table: Callable[..., Any]) -> None:
    """One of several lines is told as that; where it ends in the middle nobody knows what it is."""
    table, lies = make_table(), TablePath("db", "lies")
    path = table.location.with_name("lies") / "a.json"
    path.parent.mkdir()
    path.write_text('{"id":\n1}\n')
    with pytest.raises(IncompatibleData, match="several lines each"):
        table.storage.adoption().adopt(lies)
    path.write_text('{"id":\n')
    with pytest.raises(IncompatibleData) as cut:
        table.storage.adoption().adopt(lies)
    assert "several lines each" not in str(cut.value)


def test_a_file_that_is_missing_where_the_manifests_are_lost_too(make_table: Callable[..., Any]) -> None:
    """Nobody knows then whether its snapshot has expired."""
    table = make_table()
    table.round(0)
    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest())
    (split,) = plan.splits
    for file in table.plain_files():
        file.unlink()
    (table.location / "_laketier_manifests").rename(table.location / "_lost")
    with pytest.raises(CorruptTable, match="a data file of the snapshot is missing"):
        list(source.read(split, plan.schema))


def test_nobody_changes_what_is_read_by_inference(make_table: Callable[..., Any]) -> None:
    table = make_table()
    table.round(0)
    lenient = table.with_options(require_metadata=False)
    (table.location / "_laketier_manifests").rename(table.location / "_lost")
    change = [SetProperty("a", "b", None)]
    with pytest.raises(CorruptTable):
        lenient.storage.catalog().alter_table(table.path, change)
    inferred = lenient.info
    assert inferred.table_uuid == INFERRED
    (table.location / "_lost").rename(table.location / "_laketier_manifests")
    with pytest.raises(CorruptTable, match="only its rows can be read"):
        lenient.storage.source(replace(inferred, snapshot_id=None)).plan(ScanRequest())
    with pytest.raises(FeatureNotSupported):
        lenient.storage.catalog().alter_table(table.path, change)


def test_files_that_stay_open_are_given_up_where_the_table_is_gone(
    open_table: Any, caplog: pytest.LogCaptureFixture
) -> None:
    table = open_table("json")
    writer = table.writer()
    writer.write(0, [pa.RecordBatch.from_pylist(table.ids(0), schema=table.schema)])
    left = writer._slot.take()
    info, options = table.info, left._options
    assert left.goes_on(info, options, WriterInitContext(new_attempt_id())) is True
    elsewhere = table.location.with_name("elsewhere")
    table.location.rename(elsewhere)
    with caplog.at_level(logging.INFO):
        assert left.goes_on(info, options, WriterInitContext(new_attempt_id())) is False
    assert "the files left open are given up" in caplog.text
    elsewhere.rename(table.location)
    assert left.goes_on(info, options, WriterInitContext(new_attempt_id())) is False, "what was given up stays so"
    assert table.read_ids() == [row["id"] for row in table.ids(0)]


def test_an_adoption_that_is_stopped_makes_no_table(make_table: Callable[..., Any]) -> None:
    """Also while it looks at the files: a table of those that it had looked at would lack the others."""
    table, lies = make_table(), TablePath("db", "lies")
    folder = table.location.with_name("lies")
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.json").write_text('{"id":1}\n')
    seen = []

    def stop(done: int, of: int) -> None:
        seen.append((done, of))
        raise KeyboardInterrupt

    adoption = table.storage.adoption()
    with pytest.raises(KeyboardInterrupt):
        adoption.adopt(lies, on_progress=stop)
    assert len(seen) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["0.json", "1.json", "2.json"]
    assert adoption.adopt(lies, on_progress=lambda done, of: seen.append((done, of))).rows == 3
    assert seen[-1] == (3, 3)


def test_files_that_are_given_up_are_closed(open_table: Any) -> None:
    """A process that loses many tables has their descriptors again, while somebody still has the writer."""
    table = open_table("json")
    writer = table.writer()
    writer.write(0, [pa.RecordBatch.from_pylist(table.ids(0), schema=table.schema)])
    left = writer._slot.take()
    (path,) = map(str, table.staged_files())
    assert path in _open_files()
    left.close()
    assert path not in _open_files()
    left.close()


def _open_files() -> set[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return found


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.large_string()])
def test_types_that_are_truncated(kind: pa.DataType) -> None:
    table = TableDescriptor(pa.schema([("v", kind)]), (PartitionField("v", Transform.TRUNCATE, 2),))
    check_partitioning(table)


@pytest.mark.parametrize("kind", [pa.uint8(), pa.float64(), pa.bool_(), pa.date32(), pa.binary()])
def test_types_that_are_not_truncated(kind: pa.DataType) -> None:
    table = TableDescriptor(pa.schema([("v", kind)]), (PartitionField("v", Transform.TRUNCATE, 2),))
    with pytest.raises(UnsupportedType, match="a signed integer or a string"):
        check_partitioning(table)


class _Broken(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, "the disk is broken")


def test_a_disk_that_fails_is_no_damaged_footer() -> None:
    with pytest.raises(OSError, match="the disk is broken") as raised:
        _refuse_other_footer(pa.PythonFile(_Broken(b"x" * 99), "r"), SCHEMA)
    assert raised.value.errno == errno.EIO
