"""The steps of a round, and of a catalog, one by one: in which order, with what, and what each error means."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileSession

from laketier.spi import (
    AddColumn,
    BucketSpec,
    CommitError,
    CommitterInitContext,
    ConfigError,
    Conflict,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleTable,
    LakeSplit,
    Leaf,
    NotBegun,
    Op,
    OutsideTable,
    PartitionField,
    Passthrough,
    RenameColumn,
    ScanRequest,
    SetProperty,
    SnapshotNotFound,
    StagedFile,
    StagedFileLost,
    StorageError,
    TableDescriptor,
    TableError,
    TableNotFound,
    TablePath,
    Transform,
    UnstorableRows,
    UnsupportedType,
    WriteMode,
    WriteResult,
    WriterInitContext,
)
from laketier_lance import catalog as catalog_module
from laketier_lance import committer as committer_module
from laketier_lance import properties as properties_module
from laketier_lance import source as source_module
from laketier_lance import store_drops
from laketier_lance import writer as writer_module
from laketier_lance.catalog import LanceCatalog, _alterations, _may_be_ours, _missing
from laketier_lance.committer import LanceCommitter
from laketier_lance.fragments import FragmentRun
from laketier_lance.names import attempt_of
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin
from laketier_lance.staged_fragments import check_files
from laketier_lance.table import COMMIT_ID, EPOCH, PIPELINE, ROWS
from laketier_lance.writer import FRAGMENT, delete_files, described

NUMBERS = pa.schema([pa.field("n", pa.int64(), nullable=False)])
ATTEMPT = "0123456789abcdef" * 2
IN_A_STORE = "s3://b/t.lance"
PLAIN = LanceOptions().storage_options()
STORED = {**PLAIN, "a": "b"}


def numbers(count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(count), pa.int64())}, schema=NUMBERS)


# -- the writer ------------------------------------------------------------------------------------------------------


def test_files_are_as_long_as_they_may_be(make_table: Callable[..., Any]) -> None:
    for options in ({"max_bytes_per_file": 80}, {"max_rows_per_file": 10}):
        for buffered in (5, 100):
            table = make_table(NUMBERS, **options, buffer_rows=buffered)
            assert [file.rows for file in table.stage(numbers(35)).files] == [10, 10, 10, 5]
    table = make_table(NUMBERS, max_bytes_per_file=80, max_rows_per_file=4)
    assert [file.rows for file in table.stage(numbers(9)).files] == [4, 4, 1]
    table = make_table(NUMBERS, max_bytes_per_file=1)
    assert [file.rows for file in table.stage(numbers(3)).files] == [1, 1, 1], "a row is written, however large"


def test_small_batches_are_collected(make_table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = writer_module.LanceWriter._encode

    def spy(self: Any, batch: pa.RecordBatch) -> None:
        encoded.append(batch.num_rows)
        encode(self, batch)

    monkeypatch.setattr(writer_module.LanceWriter, "_encode", spy)
    make_table(NUMBERS, buffer_rows=10).stage(*[numbers(1)] * 25)
    assert encoded == [10, 10, 5]
    encoded.clear()
    for limit, expected in ((80, [10, 10, 5]), (81, [11, 11, 3])):
        monkeypatch.setattr(writer_module, "_BUFFER_BYTES", limit)
        make_table(NUMBERS).stage(*[numbers(1)] * 25)
        assert encoded == expected
        encoded.clear()


def test_lance_is_told_how_to_write(make_table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(NUMBERS, data_cache_bytes=12345, max_rows_per_file=2)
    asked: list[Any] = []
    session = lance.file.LanceFileSession

    class Spy:
        def __init__(self, *given: Any) -> None:
            asked.append(given)
            self._real = session(*given)

        def open_writer(self, path: str, **given: Any) -> Any:
            asked.append((path, given))
            return self._real.open_writer(path, **given)

    monkeypatch.setattr(lance.file, "LanceFileSession", Spy)
    staged = table.stage(numbers(3))
    told = {"schema": NUMBERS, "data_cache_bytes": 12345, "version": "2.2"}
    assert asked == [
        (table.location, PLAIN),
        (f"data/{staged.attempt}-00000.lance", told),
        (f"data/{staged.attempt}-00001.lance", told),
    ]
    asked.clear()
    stored = replace(table.factory.target, options=LanceOptions(storage=Passthrough({"a": "b"})))
    writer = writer_module.LanceWriter(stored, ATTEMPT)
    writer.write(numbers(1))
    writer.complete()
    assert asked[0] == (table.location, STORED)


def test_a_staged_file_is_on_the_device_before_it_is_told(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, Path]] = []
    monkeypatch.setattr(writer_module, "fsync_file", lambda path: told.append(("file", path)))
    monkeypatch.setattr(writer_module, "fsync_directory", lambda path: told.append(("folder", path)))
    staged = table.stage(table.rows(1))
    folder = Path(table.location)
    assert told == [("file", folder / staged.files[0].path), ("folder", folder / "data"), ("folder", folder)]


class _File:
    """A file of Lance's that fails, or tells no size."""

    size_bytes: int | None = None

    def __init__(self, **fails: Exception) -> None:
        self._fails = fails

    def write_batch(self, _: Any) -> None:
        if "write" in self._fails:
            raise self._fails["write"]

    def close(self) -> None:
        if "close" in self._fails:
            raise self._fails["close"]


@pytest.mark.every(3)
@pytest.mark.parametrize("at", ["write", "close", "open"])
@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (OSError("LanceError(IO): no space"), StorageError, "could not be written.* Mend what"),
        (RuntimeError("LanceError(IO): no space"), StorageError, "could not be written.* Mend what"),
        (ValueError("an odd array"), TableError, "could not be written"),
        (OSError("it does not encode struct validity"), UnstorableRows, "a struct is null"),
        (KeyError("a mistake of ours"), KeyError, "mistake"),
    ],
)
def test_what_went_wrong_with_a_file_is_told(
    table: Any, monkeypatch: pytest.MonkeyPatch, at: str, error: Exception, kind: type[Exception], told: str
) -> None:
    def opens(_: Any) -> Any:
        if at == "open":
            raise error
        return _File(**{at: error})

    monkeypatch.setattr(writer_module.LanceWriter, "_open_file", opens)
    writer = table.factory.create_writer(WriterInitContext(ATTEMPT))
    writer._names.append("x")
    writer.write(table.rows(1))
    with pytest.raises(kind, match=told) as failure:
        writer.complete()
    assert type(failure.value) is kind


def test_a_file_without_a_size_is_an_error(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module.LanceWriter, "_open_file", lambda _: _File())
    writer = table.factory.create_writer(WriterInitContext(ATTEMPT))
    writer._names.append("x.lance")
    writer.write(table.rows(1))
    with pytest.raises(TableError, match="without telling its size"):
        writer.complete()


@pytest.mark.parametrize(
    ("path", "attempt"),
    [
        (f"data/{ATTEMPT}-00000.lance", ATTEMPT),
        (f"data/{ATTEMPT}-123456.lance", ATTEMPT),
        (f"data/{ATTEMPT}-0000.lance", None),
        (f"data/{ATTEMPT[1:]}-00000.lance", None),
        (f"data/{ATTEMPT.upper()}-00000.lance", None),
        (f"data/{ATTEMPT}-00000.lance\n", None),
        (f"data/x/{ATTEMPT}-00000.lance", None),
        (f"{ATTEMPT}-00000.lance", None),
        (f"data/{ATTEMPT}-00000.parquet", None),
        (f"data/{ATTEMPT}-0000x.lance", None),
    ],
)
def test_the_attempt_of_a_file(path: str, attempt: str | None) -> None:
    assert attempt_of(path) == attempt


def test_a_fragment_is_described_by_its_file() -> None:
    found = described("a.lance", 7, 99, (0, 2, 5), "2.1")
    (file,) = found["files"]
    assert (found["id"], found["physical_rows"]) == (0, 7)
    told = ("a.lance", [0, 2, 5], [0, 1, 2], 2, 1, 99)
    names = ("path", "fields", "column_indices", "file_major_version", "file_minor_version", "file_size_bytes")
    assert tuple(file[name] for name in names) == told


class _Deletes:
    """A session of a store that deletes some files."""

    def __init__(self, **answers: Exception) -> None:
        self.answers, self.asked, self.made = answers, [], []

    def __call__(self, *given: Any) -> _Deletes:
        self.made.append(given)
        return self

    def delete_file(self, path: str) -> None:
        self.asked.append(path)
        if path in self.answers:
            raise self.answers[path]


def test_files_of_a_store_are_deleted_one_by_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = _Deletes(
        gone=OSError("Object Not Found"), kept=OSError("access denied"), odd=RuntimeError("x"), bad=ValueError("x")
    )
    monkeypatch.setattr("lance.file.LanceFileSession", store)
    options = LanceOptions(storage=Passthrough({"a": "b"}))
    assert delete_files(IN_A_STORE, options, []) == set()
    assert store.made == []
    paths = ["one", "gone", "kept", "odd", "bad", "../two", "/three", "four"]
    assert delete_files(IN_A_STORE, options, paths) == {"one", "gone", "four"}
    assert store.asked == ["one", "gone", "kept", "odd", "bad", "four"]
    assert store.made == [(IN_A_STORE, STORED)]
    assert caplog.text.count("could not be deleted") == 5
    assert "access denied" in caplog.text
    store.answers["one"] = KeyError("a mistake of ours")
    with pytest.raises(KeyError):
        delete_files(IN_A_STORE, LanceOptions(), ["one"])
    assert store.made[-1] == (IN_A_STORE, PLAIN)


def test_files_of_a_disk_are_deleted_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for name in ("t/one", "t/two", "outside"):
        (tmp_path / name).touch()
    assert delete_files(str(tmp_path / "t"), LanceOptions(), ["one", "gone", "../outside"]) == {"one", "gone"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["outside", "t", "two"]
    assert delete_files(str(tmp_path / "t"), LanceOptions(), []) == set()


# -- the committer ---------------------------------------------------------------------------------------------------


def committer(table: Any, commit_id: str = "c1", mode: WriteMode = WriteMode.APPEND) -> LanceCommitter:
    return table.factory.create_committer(CommitterInitContext(commit_id=commit_id, mode=mode))


def test_a_state_of_another_format_is_a_mistake(table: Any) -> None:
    with pytest.raises(TypeError, match="not a state of this committer"):
        committer(table).publish(SimpleNamespace(dataset=table.open()), [], None)  # type: ignore[arg-type]


def test_a_version_tells_of_its_round(table: Any) -> None:
    table.round(0, pipeline="q").commit([table.stage(table.rows(1, 2)), table.stage(table.rows(3))])
    told = table.open().read_transaction(2).transaction_properties
    assert (told[PIPELINE], told[EPOCH], told[ROWS]) == ("q", "0", "3")
    assert told[COMMIT_ID]
    ours = committer(table, "mine")
    ours.publish(ours.open(), [table.stage(table.rows(4))], None)
    assert table.open().read_transaction(3).transaction_properties == {COMMIT_ID: "mine", ROWS: "1"}


def test_a_result_tells_what_was_published(table: Any) -> None:
    ours, staged = committer(table), [table.stage(table.rows(1, 2)), table.stage(table.rows(3))]
    found = ours.publish(ours.open(), staged, None)
    sizes = sum(file.bytes for result in staged for file in result.files)
    assert (found.snapshot_id, found.rows, found.files, found.bytes) == (2, 3, 2, sizes)


def test_who_opens_and_who_publishes_makes_durable(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(committer_module, "make_durable", lambda *given: told.append(given))
    ours = committer(table)
    state = ours.open()
    assert told == [(table.location, 1)]
    ours.publish(state, [], None)
    assert told == [(table.location, 1), (table.location, 2)]


def test_landed_is_looked_for_since_the_first_attempt(table: Any) -> None:
    """What is older can't be of this round, and may have been cleaned up."""
    ours = committer(table, "mine")
    assert ours.open().attempted_at is None
    for number in (1, 2):
        state = ours.open()
        table.append(number - 1, number)
        with pytest.raises(Conflict):
            ours.publish(state, [], None)
        assert ours.open().attempted_at == 1
    other = committer(table, "other")
    other.publish(other.open(), [], None)
    other.publish(other.open(), [], None)
    assert other.open().attempted_at == 3
    assert other.open().landed("other")


def test_a_round_without_files_does_not_make_a_dropped_table_anew(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = committer_module.refuse_dropped
    monkeypatch.setattr(committer_module, "refuse_dropped", lambda *given: asked.append(given) or real(*given))
    ours = committer(table)
    ours.publish(ours.open(), [table.stage(table.rows(1))], None)
    assert asked == []
    state = ours.open()
    table.storage.catalog().drop_table(table.path)
    with pytest.raises(Conflict, match="dropped meanwhile"):
        ours.publish(state, [], None)
    assert len(asked) == 1
    assert not Path(table.location).exists()


@pytest.mark.parametrize("error", [OSError("x"), ValueError("x"), RuntimeError("x"), KeyError("x")])
def test_a_commit_that_lance_refuses_has_an_unknown_outcome(
    table: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    ours = committer(table)
    state = ours.open()
    monkeypatch.setattr(lance.LanceDataset, "commit", fails)
    with pytest.raises(KeyError if isinstance(error, KeyError) else CommitError) as failure:
        ours.publish(state, [], None)
    assert not isinstance(failure.value, Conflict)


def test_lance_is_told_how_to_commit(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def spy(dataset: Any, transaction: Any, **given: Any) -> Any:
        asked.append((transaction.read_version, type(transaction.operation).__name__, given))
        return SimpleNamespace(version=9)

    monkeypatch.setattr(committer_module, "make_durable", lambda *_: None)
    for mode, options in (
        (WriteMode.APPEND, LanceOptions()),
        (WriteMode.OVERWRITE, LanceOptions(storage=Passthrough({"a": "b"}))),
    ):
        ours = LanceCommitter(table.location, options, CommitterInitContext(commit_id="c", mode=mode))
        state = ours.open()
        with monkeypatch.context() as patch:
            patch.setattr(lance.LanceDataset, "commit", spy)
            assert ours.publish(state, [], None).snapshot_id == 9
    assert asked == [
        (1, "Merge", {"storage_options": PLAIN, "max_retries": 0}),
        (1, "Overwrite", {"storage_options": STORED, "max_retries": 0}),
    ]


def test_a_file_of_another_file_format_is_refused(table: Any) -> None:
    staged = table.stage(table.rows(1))
    fragment = json.loads(staged.files[0].payload[FRAGMENT])
    fragment["files"][0]["file_minor_version"] = 1
    other = replace(staged, files=(replace(staged.files[0], payload={FRAGMENT: json.dumps(fragment)}),))
    ours = committer(table)
    with pytest.raises(NotBegun, match=r"in format 2\.1, and the table has .* in format 2\.2"):
        ours.publish(ours.open(), [other], None)


def test_a_fragment_of_a_file_with_another_name_is_refused(table: Any) -> None:
    """What is told of the fragment is true: but no writer of laketier gives such a name."""
    ours = committer(table)
    state = ours.open()
    for path in ("other/x.lance", "data/x.parquet", "data/a b.lance", "data/x/y.lance"):
        name = path.rpartition("/")[2]
        columns = table.factory.target.columns
        payload = {FRAGMENT: json.dumps(described(name, 1, 5, columns, "2.2"))}
        staged = replace(table.stage(), files=(StagedFile(path, 1, 5, payload=payload),))
        with pytest.raises(OutsideTable, match="is not the one of that file"):
            ours.publish(state, [staged], None)


class _Reads:
    """A session of a store that reads the ends of files."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), []
        self.lock = threading.Lock()

    def __call__(self, *given: Any) -> _Reads:
        self.asked.append(given)
        return self

    def read_range(self, *given: Any) -> bytes:
        with self.lock:
            self.asked.append(given)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return bytes(answer)


def _staged(*names: str) -> WriteResult:
    attempt = names[0].split("-")[0] if names else ATTEMPT
    files = tuple(StagedFile(f"data/{name}.lance", 1, 100 + at) for at, name in enumerate(names))
    return WriteResult(attempt=attempt, files=files, table_uuid="u", schema_fingerprint="f", spec_id=0)


def _check_in_a_store(results: list[WriteResult]) -> None:
    check_files(results, IN_A_STORE, LanceOptions(storage=Passthrough({"a": "b"})))


def test_each_staged_file_in_a_store_ends_with_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    store = _Reads(b"LANC")
    monkeypatch.setattr("lance.file.LanceFileSession", store)
    _check_in_a_store([_staged(f"{ATTEMPT}-00000", f"{ATTEMPT}-00001"), _staged()])
    assert store.asked[0] == (IN_A_STORE, STORED)
    assert sorted(store.asked[1:]) == [(f"data/{ATTEMPT}-00000.lance", 96, 4), (f"data/{ATTEMPT}-00001.lance", 97, 4)]
    store.asked.clear()
    check_files([_staged(f"{ATTEMPT}-00000")], IN_A_STORE, LanceOptions())
    assert store.asked[0] == (IN_A_STORE, PLAIN)
    with pytest.raises(OutsideTable, match="no writer of this format"):
        _check_in_a_store([_staged("x")])
    with pytest.raises(StagedFileLost, match="handed over twice"):
        _check_in_a_store([_staged(f"{ATTEMPT}-00000")] * 2)


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (b"XXXX", StagedFileLost, "does not end after the 100 bytes"),
        (b"LAN", StagedFileLost, "does not end after the 100 bytes"),
        (OSError("Object NOT FOUND"), StagedFileLost, "is gone"),
        (OSError("Invalid Range"), StagedFileLost, "does not end after the 100 bytes"),
        (ValueError("range end too large"), StagedFileLost, "does not end after the 100 bytes"),
        (RuntimeError("timed out"), CommitError, "could not be read"),
        (KeyError("a mistake of ours"), KeyError, "mistake"),
    ],
)
def test_a_staged_file_in_a_store_that_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, answer: Any, kind: type[Exception], told: str
) -> None:
    monkeypatch.setattr("lance.file.LanceFileSession", _Reads(answer))
    with pytest.raises(kind, match=told) as failure:
        _check_in_a_store([_staged(f"{ATTEMPT}-00000")])
    assert type(failure.value) is kind


# -- the catalog -----------------------------------------------------------------------------------------------------


def test_names_of_folders_that_may_be_tables() -> None:
    assert [_may_be_ours(name) for name in ("t.lance", "db", "lost+found", ".hidden", "a b")] == [
        True,
        True,
        *[False] * 3,
    ]


def test_tables_are_listed_in_order_and_as_they_are_now(table: Any) -> None:
    catalog = table.storage.catalog()
    for name in ("z.a", "b.z", "b.a", "a.z"):
        catalog.create_table(TablePath(*name.split(".")), TableDescriptor(NUMBERS))
    folder = table.warehouse
    (folder / "b" / "plain.lance").mkdir()
    (folder / "b" / "empty.lance" / "_versions").mkdir(parents=True)
    (folder / "b" / "folder").mkdir()
    (folder / "b" / "a.lance.bak").mkdir()
    (folder / "file").touch()
    assert [str(path) for path in catalog.list_tables()] == ["a.z", "b.a", "b.z", "db.t", "z.a"]
    assert [str(path) for path in catalog.list_tables("b")] == ["b.a", "b.z"]
    assert catalog.list_tables("none") == []
    catalog.drop_table(TablePath("b", "a"))
    assert [str(path) for path in catalog.list_tables("b")] == ["b.z"]


class _Lists:
    """A session of a store that lists."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, []

    def __call__(self, *given: Any) -> _Lists:
        self.asked.append(given)
        return self

    def list_with_delimiter(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        place = self.asked[-1][0]
        return SimpleNamespace(common_prefixes=[f"{each}/" for each in self.answer.get(place, ())])

    def list(self, folder: str) -> list[str]:
        assert folder == "_versions"
        return [f"_versions/{each}" for each in self.answer.get(self.asked[-1][0], ())]


def test_tables_of_a_store_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {
        "s3://b": ["lake/db", "lake/x y"],
        "s3://b/db": ["lake/db/t.lance", "lake/db/plain", "lake/db/none.lance", "lake/db/odd name.lance"],
        "s3://b/db/t.lance": ["1.manifest"],
        "s3://b/db/none.lance": ["1.txn"],
        "s3://b/x y": ["t.lance"],
        "s3://b/x y/t.lance": ["1.manifest"],
        "s3://b/db/odd name.lance": ["1.manifest"],
    }
    store = _Lists(places)
    monkeypatch.setattr("lance.file.LanceFileSession", store)
    assert LanceCatalog("s3://b", LanceOptions()).list_tables() == [TablePath("db", "t")]
    assert store.asked[0] == ("s3://b", PLAIN)
    assert LanceCatalog("s3://b", LanceOptions(storage=Passthrough({"a": "b"}))).list_tables("none") == []
    assert store.asked[-1] == ("s3://b/none", STORED)


@pytest.mark.parametrize(
    ("error", "kind"), [(OSError("x"), TableError), (RuntimeError("x"), TableError), (KeyError("x"), KeyError)]
)
def test_a_store_that_does_not_list(monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception]) -> None:
    monkeypatch.setattr("lance.file.LanceFileSession", _Lists(error))
    with pytest.raises(kind):
        LanceCatalog("s3://b", LanceOptions()).list_tables()


def test_a_table_is_durable_before_it_is_told(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(catalog_module, "make_folders", lambda *given: told.append(("folders", *given)))
    monkeypatch.setattr(catalog_module, "make_durable", lambda *given: told.append(("durable", *given)))
    catalog, location = table.storage.catalog(), f"{table.warehouse}/db/new.lance"
    for _ in range(2):
        catalog.create_table(TablePath("db", "new"), TableDescriptor(NUMBERS))
    assert told == [("folders", location), ("durable", location, 1), ("durable", location, 1)]
    told.clear()
    table.append(0, 1)
    (file,) = table.open().get_fragments()[0].metadata.files
    catalog.alter_table(table.path, [])
    assert told == [("durable", table.location, 2, [f"data/{file.path}"])]
    told.clear()
    catalog.alter_table(table.path, [AddColumn(pa.field("more", pa.int32()))])
    assert told == [("durable", table.location, 3, [f"data/{file.path}"])]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError("LanceError(Schema): an odd type"), UnsupportedType),
        (ValueError("LanceError(IO): no space"), TableError),
        (KeyError("a mistake of ours"), KeyError),
    ],
)
def test_a_table_that_lance_can_not_make(
    table: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception]
) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(catalog_module, "create_dataset", fails)
    catalog = table.storage.catalog()
    with pytest.raises(kind) as failure:
        catalog.create_table(TablePath("db", "new"), TableDescriptor(NUMBERS))
    assert type(failure.value) is kind
    if kind is not KeyError:
        catalog._create(table.location, NUMBERS)  # somebody else was faster


def test_changes_are_tried_again_and_not_for_ever(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    add = catalog_module._add_columns

    def fails(*given: Any) -> None:
        asked.append(given)
        if len(asked) < refused:
            raise OSError("another commit came first")
        add(*given)

    monkeypatch.setattr(catalog_module, "_add_columns", fails)
    refused = 10
    info = table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("a", pa.int32()))])
    assert info.schema.names == ["id", "name", "a"]
    assert len(asked) == 10
    asked.clear()
    refused = 100
    with pytest.raises(TableError, match="the columns could not be changed"):
        table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("b", pa.int32()))])
    assert len(asked) == 10


def test_a_change_that_breaks_is_no_refusal(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(catalog_module, "_add_columns", fails)
    with pytest.raises(KeyError):
        table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("a", pa.int32()))])


def test_columns_and_properties_are_changed_one_after_the_other(table: Any) -> None:
    catalog = table.storage.catalog()
    with pytest.raises(ConfigError, match="in one step"):
        catalog.alter_table(table.path, [SetProperty("a", "b", None), AddColumn(pa.field("a", pa.int32()))])
    assert dict(catalog.alter_table(table.path, [SetProperty("a", "b", None)]).descriptor.properties) == {"a": "b"}


def test_what_is_altered_in_one_step() -> None:
    before = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.int8())])
    after = pa.schema([("x", pa.int32()), ("b", pa.string()), ("y", pa.int16())])
    assert _alterations(before, after) == [
        {"path": "a", "name": "x"},
        {"path": "c", "name": "y", "data_type": pa.int16()},
    ]
    assert _alterations(before, before) == []
    with pytest.raises(ValueError, match="shorter"):
        _alterations(before, pa.schema([("a", pa.int32())]))


def test_columns_that_are_missing() -> None:
    info = SimpleNamespace(
        schema=pa.schema([("id", pa.int64()), pa.field("req", pa.int8(), nullable=False)]), location="/t"
    )

    def missing(*fields: pa.Field) -> list[str]:
        return [each.name for each in _missing(info, [AddColumn(field) for field in fields])]  # type: ignore[arg-type]

    assert missing(pa.field("a", pa.int8()), pa.field("id", pa.int64()), pa.field("a", pa.int8())) == ["a"]
    assert missing() == []
    for wrong, told in (
        (pa.field("id", pa.int32()), "column 'id' exists as int64, and 'id' as int32"),
        (pa.field("ID", pa.int64()), "column 'id' exists as int64, and 'ID' as int64"),
        (pa.field("req", pa.int8()), "column 'req' exists as int8 not null"),
        (pa.field("b", pa.int8(), nullable=False), "is not nullable"),
    ):
        with pytest.raises(IncompatibleTable, match=told):
            missing(wrong)
    with pytest.raises(IncompatibleTable, match="column 'a' exists as int8"):
        missing(pa.field("a", pa.int8()), pa.field("a", pa.int16()))


def test_a_drop_of_what_others_dropped(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = table.storage.catalog()

    def gone(*_: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(catalog_module.LocalFolder, "remove_folder", gone)
    with pytest.raises(TableNotFound, match="any more"):
        catalog.drop_table(table.path)
    monkeypatch.undo()
    catalog.drop_table(table.path)
    with pytest.raises(TableNotFound):
        catalog.drop_table(table.path)


def test_a_table_inside_of_another_is_not_dropped_with_it(table: Any) -> None:
    """A branch is one, too, and goes with the table."""
    table.append(0, 1)
    table.open().create_branch("b", 2)
    inside = Path(table.location, "theirs", "x.lance", "_versions")
    inside.mkdir(parents=True)
    with pytest.raises(IncompatibleTable, match="another table is inside"):
        table.storage.catalog().drop_table(table.path)
    assert inside.is_dir()
    inside.rmdir()
    table.storage.catalog().drop_table(table.path)
    assert not Path(table.location).exists()


def test_a_drop_in_a_store_has_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for name in ("end_drop", "refuse_missing", "drop_in_store"):
        monkeypatch.setattr(catalog_module, name, lambda *given: asked.append(given))
    LanceCatalog("s3://b", LanceOptions(storage=Passthrough({"a": "b"}))).drop_table(TablePath("db", "t"))
    LanceCatalog("s3://b", LanceOptions()).drop_table(TablePath("db", "t"))
    place = "s3://b/db/t.lance"
    assert asked == [(place, STORED)] * 3 + [(place, PLAIN)] * 3


@pytest.mark.parametrize(("error", "kind"), [(OSError("x"), TableError), (KeyError("x"), KeyError)])
def test_a_store_that_fails_beside_a_drop(monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type) -> None:
    def fails(*_: Any) -> None:
        raise error

    for name in ("upload_file", "delete_file", "contains"):
        monkeypatch.setattr(LanceFileSession, name, fails)
    for ask in (store_drops.drop_in_store, store_drops.end_drop):
        with pytest.raises(kind):
            ask("memory://b/db/t.lance", {})


def test_what_lance_has_not_is_refused_by_its_feature(table: Any) -> None:
    catalog = table.storage.catalog()
    for more, feature in (
        ({"partition_by": (PartitionField("n", Transform.IDENTITY),)}, "partitioning"),
        ({"partition_by": (PartitionField("n", Transform.DAY),)}, "transform"),
        ({"buckets": BucketSpec(4, ("n",))}, "bucketing"),
    ):
        with pytest.raises(FeatureNotSupported, match=feature):
            catalog.create_table(TablePath("db", "new"), TableDescriptor(NUMBERS, **more))
    assert catalog.list_tables() == [table.path]


def test_a_version_of_a_table_has_a_name_of_its_own(table: Any) -> None:
    catalog = table.storage.catalog()
    first = catalog.table_version(table.path)
    assert first is not None
    assert catalog.table_version(table.path, first) == first
    table.append(0, 1)
    second = catalog.table_version(table.path)
    assert second not in (None, first)
    assert catalog.table_version(table.path, first) == second
    assert catalog.table_version(TablePath("db", "none")) is None


def test_how_large_a_handle_is(table: Any) -> None:
    catalog = table.storage.catalog()
    info = catalog.load_table(table.path)
    size = min(Path(table.location, "_versions").glob("*.manifest")).stat().st_size
    assert catalog.handle_bytes(info) == 10 * size + int(info.handle.session().size_bytes()) > 10 * size
    assert catalog.handle_bytes(info.with_handle(None)) is None
    assert catalog.handle_bytes(replace(info, location="s3://b/t.lance").with_handle(info.handle)) is None


# -- properties ------------------------------------------------------------------------------------------------------


def test_properties_are_set_beside_others(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance.commit import CommitConflictError

    real, asked, told = properties_module._commit, [], []
    monkeypatch.setattr(properties_module, "make_durable", lambda *given: told.append(given))

    def beaten(*given: Any) -> tuple[int, str]:
        asked.append(given)
        if len(asked) < times:
            raise CommitConflictError("another commit came first")
        return real(*given)

    monkeypatch.setattr(properties_module, "_commit", beaten)
    catalog, times = table.storage.catalog(), 100
    catalog.alter_table(table.path, [SetProperty("a", "1", None), SetProperty("b", "2", None)])
    assert dict(catalog.load_table(table.path).descriptor.properties) == {"a": "1", "b": "2"}
    assert (len(asked), told) == (100, [(table.location, 2)])
    catalog.alter_table(table.path, [SetProperty("a", "1", None)])
    assert (len(asked), told[1:]) == (100, [(table.location, 2)]), "nothing is to be done, but to make it durable"
    asked.clear()
    times = 1000
    with pytest.raises(Conflict, match="came first each time"):
        catalog.alter_table(table.path, [SetProperty("a", "2", "1")])
    assert len(asked) == 100
    for error, kind in ((OSError("x"), TableError), (KeyError("x"), KeyError)):

        def fails(*_: Any, error: Exception = error) -> int:
            raise error

        monkeypatch.setattr(properties_module, "_commit", fails)
        with pytest.raises(kind):
            catalog.alter_table(table.path, [SetProperty("a", "2", "1")])


def test_properties_are_committed_as_lance_is_told(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(0, 1)
    asked: list[Any] = []

    def spy(_: Any, transaction: Any, **given: Any) -> Any:
        asked.append((transaction.read_version, transaction.operation, given))
        return SimpleNamespace(version=9)

    monkeypatch.setattr(lance.LanceDataset, "commit", spy)
    for options, told in ((LanceOptions(), PLAIN), (LanceOptions(storage=Passthrough({"a": "b"})), STORED)):
        assert properties_module._commit(table.open(), table.info, {"p": "q"}, options)[0] == 9
        version, operation, given = asked.pop()
        assert (version, given) == (2, {"storage_options": told, "max_retries": 0})
        assert (type(operation).__name__, operation.preserves_nullability, len(operation.fragments)) == (
            "Merge",
            True,
            1,
        )
        metadata = operation.schema.to_pyarrow().metadata
        assert metadata[b"laketier.table-uuid"].decode() == table.info.table_uuid
        assert json.loads(metadata[b"laketier.descriptor"])["properties"] == {"p": "q"}


def test_properties_keep_rows_columns_and_watermarks(table: Any) -> None:
    table.append(0, 1)
    before = dict(table.open().schema.metadata)
    table.storage.catalog().alter_table(table.path, [SetProperty("a", "1", None)])
    after = dict(table.open().schema.metadata)
    assert {key for key in after if after[key] != before.get(key)} == {b"laketier.descriptor"}
    table.reload()
    table.append(1, 2)
    assert table.ids() == [1, 2]
    assert dict(table.info.descriptor.properties) == {"a": "1"}


@pytest.mark.parametrize("key", [("id",), ("name", "id"), ()])
def test_a_key_comes_back_as_long_as_its_columns_are_there(table: Any, key: tuple[str, ...]) -> None:
    path, columns = (
        TablePath("db", "keyed"),
        pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string(), nullable=False)]),
    )
    catalog = table.storage.catalog()
    catalog.create_table(path, TableDescriptor(columns, primary_key=key, comment="é", properties={"ü": "ß"}))
    info = catalog.load_table(path)
    assert (info.descriptor.primary_key, info.descriptor.comment, dict(info.descriptor.properties)) == (
        key,
        "é",
        {"ü": "ß"},
    )
    lance.dataset(info.location).alter_columns({"path": "id", "name": "number"})
    assert catalog.load_table(path).descriptor.primary_key == ()


# -- a history -------------------------------------------------------------------------------------------------------


def test_a_history_is_of_all_that_can_be_read(table: Any) -> None:
    table.append(0, 1)
    history = table.storage.history(table.info)
    assert [
        (each.snapshot_id, each.operation, each.rows, each.pipeline, each.epoch) for each in history.snapshots(9)
    ] == [
        (2, "merge", 1, "p", 0),
        (1, "overwrite", None, None, None),
    ]
    table.append(1, 2, mode=WriteMode.OVERWRITE)
    assert [(each.snapshot_id, each.operation) for each in history.snapshots(2)] == [(3, "overwrite"), (2, "merge")]
    assert history.snapshots(0) == []
    table.open().tags.create("kept", 2)
    table.append(2, 3)
    table.append(3, 4)
    table.open().cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert [each.snapshot_id for each in history.snapshots(9)] == [5, 2]
    assert history.snapshots(9)[1].committed_at < history.snapshots(9)[0].committed_at


def test_what_pylance_has_no_class_for_is_unknown(table: Any) -> None:
    for epoch in range(2):
        table.append(epoch, epoch)
    table.foreign("index")
    table.open().optimize.compact_files(defer_index_remap=True)
    told = [each.operation for each in table.storage.history(table.info).snapshots(9)]
    assert told == ["rewrite", "unknown", "createindex", "merge", "merge", "overwrite"]


def test_a_version_without_a_transaction_is_in_the_history(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laketier_lance.history.read_transaction", lambda *_: None)
    (only,) = table.storage.history(table.info).snapshots(9)
    assert (only.operation, only.rows, only.pipeline) == ("unknown", None, None)


# -- a storage -------------------------------------------------------------------------------------------------------


def test_a_state_is_of_the_dataset_that_was_opened_or_of_a_fresh_one(table: Any) -> None:
    loaded = table.storage.catalog().load_table(table.path)
    table.append(0, 1)
    assert table.storage.state(loaded).snapshot_id == 1
    assert table.storage.state(loaded.with_handle(None)).snapshot_id == 2
    table.append(1, 2)
    assert table.storage.state(loaded.with_handle(None)).snapshot_id == 3
    assert table.storage.state(loaded).attempted_at is None


def test_what_a_storage_makes_of_a_table(table: Any) -> None:
    search, maintenance = table.storage.searcher(table.info), table.storage.maintenance(table.info)
    assert (search.location, search.name, search.options) == (table.location, "db.t", table.options)
    assert (maintenance._location, maintenance._options) == (table.location, table.options)
    for made in (
        table.storage.source(table.info),
        table.storage.history(table.info),
        table.storage.changes(table.info),
    ):
        assert (made.table, made.table.handle, made.options) == (table.info, None, table.options)
    assert table.factory.target.table.handle is None


def test_pipelines_are_those_that_have_a_watermark(table: Any) -> None:
    table.open().update_schema_metadata({"other": "x"})
    for pipeline in ("a", "b.c"):
        table.append(0, 1, pipeline=pipeline)
    assert sorted(table.storage.state(table.storage.catalog().load_table(table.path)).pipelines()) == ["a", "b.c"]


def test_columns_that_lance_would_change_are_refused_before_tasks_stage(tmp_path: Path, table: Any) -> None:
    lance.write_dataset(pa.table({"a": pa.array(["x"]).dictionary_encode()}), f"{table.warehouse}/db/odd.lance")
    info = table.storage.catalog().load_table(TablePath("db", "odd"))
    with pytest.raises(UnsupportedType, match="dictionary"):
        table.storage.tiering_factory(info)
    renamed = table.storage.catalog().alter_table(table.path, [RenameColumn("name", "title")])
    assert table.storage.tiering_factory(renamed).target.columns == (0, 1)


def test_folders_that_can_not_be_listed(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any) -> list[str]:
        raise PermissionError("no")

    monkeypatch.setattr(catalog_module, "names_in", fails)
    with pytest.raises(StorageError, match="tables were listed"):
        table.storage.catalog().list_tables()


# -- a reader ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (OSError("Object Not Found: x"), CorruptTable, "a data file of version 7 is missing"),
        (OSError("odd"), TableError, "could not read the dataset"),
        (ValueError("odd"), CorruptTable, "can't be read"),
        (KeyError("ours"), KeyError, "ours"),
    ],
)
def test_rows_that_could_not_be_read(
    table: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception], told: str
) -> None:
    asked: list[Any] = []

    def fails() -> Any:
        raise error
        yield

    class Dataset:
        version = 7

        def get_fragment(self, number: int) -> Any:
            return None if number == 9 else f"f{number}"

        def scanner(self, **given: Any) -> Any:
            asked.append(given)
            return SimpleNamespace(to_batches=fails)

    monkeypatch.setattr(source_module, "open_dataset", lambda *given: asked.append(given) or Dataset())
    source, schema = table.storage.source(table.info), pa.schema([("id", pa.int64())])
    run = FragmentRun(7, (0, 2), 5, "a = 1")
    with pytest.raises(kind, match=told):
        list(source.read(LakeSplit(index=0, limit=3, payload=run), schema))
    told_lance = {"columns": ["id"], "filter": "a = 1", "limit": 3, "batch_size": 5, "fragments": ["f0", "f2"]}
    assert asked == [
        (table.location, PLAIN, 7),
        told_lance | {"scan_in_order": True, "with_row_id": False, "blob_handling": "all_binary"},
    ]
    renamed = FragmentRun(7, (0,), 5, "", {"id": None})
    with pytest.raises(kind):
        list(source.read(LakeSplit(index=0, payload=renamed), schema))
    assert asked[-1]["columns"] == []
    assert (asked[-1]["filter"], asked[-1]["limit"], asked[-1]["with_row_id"]) == (None, None, True)
    with pytest.raises(CorruptTable, match="version 7 has no fragment 9"):
        list(source.read(LakeSplit(index=0, payload=FragmentRun(7, (9,), 5)), schema))


def test_splits_name_their_fragments_where_they_are_read_whole(make_table: Callable[..., Any]) -> None:
    table = make_table(split_rows=2, max_rows_per_file=1)
    table.append(0, *range(20))
    source = table.storage.source(table.info)

    def splits(**request: Any) -> list[Any]:
        return [(split.rows, split.limit, split.files) for split in source.plan(ScanRequest(**request)).splits]

    pairs = [(str(at), str(at + 1)) for at in range(0, 20, 2)]
    assert splits() == [(2, None, pair) for pair in pairs]
    assert splits(limit=3) == [(2, 2, pairs[0]), (1, 1, ())]
    assert splits(limit=4) == [(2, 2, pairs[0]), (2, 2, pairs[1])]
    assert splits(limit=0) == []
    over = Leaf("id", Op.GE, 0)
    assert splits(filters=(over,)) == [(None, None, ())] * 10
    assert splits(filters=(over,), limit=0) == [(None, 0, ())] * 10
    left = Leaf("id", Op.IN, ())
    assert splits(filters=(left,), limit=3) == [(2, None, pair) for pair in pairs]
    size = sum(file.file_size_bytes for f in table.open().get_fragments() for file in f.metadata.files)
    assert sum(split.bytes or 0 for split in source.plan(ScanRequest()).splits) == size


def test_a_moment_is_found_among_versions(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {1: 10, 4: 20, 5: 20, 9: 30}
    monkeypatch.setattr(source_module, "versions_of", lambda _: list(times))
    monkeypatch.setattr(source_module, "committed_at", lambda *given: times[given[2]])
    source = table.storage.source(table.info)
    found = {moment: source._version_at(None, moment) for moment in (10, 20, 30, 10**15)}
    assert found == {10: 1, 20: 5, 30: 9, 10**15: 9}
    for moment in (11, 19, 29):  # the next version is gone, and may have been there by then
        with pytest.raises(SnapshotNotFound, match=f"not known which version the table had at {moment} ms"):
            source._version_at(None, moment)
    times.update(dict.fromkeys((2, 3), 15))
    times = {version: times[version] for version in sorted(times)}
    assert {moment: source._version_at(None, moment) for moment in (11, 14, 19)} == {11: 1, 14: 1, 19: 3}
    with pytest.raises(SnapshotNotFound, match="no version is as old as 9 ms"):
        source._version_at(None, 9)


def test_the_lines_that_open_a_table() -> None:
    info = SimpleNamespace(location="/lake/it's.lance")
    lines = LancePlugin().open_with(info)  # type: ignore[arg-type]
    assert set(lines) == {"pylance", "DuckDB", "Polars"}
    assert all(repr("/lake/it's.lance") in line for line in lines.values())
    for name, line in lines.items():
        compile(line, name, "exec")
