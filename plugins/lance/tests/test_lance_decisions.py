"""What the plugin decides by names, numbers and errors alone, one by one."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    And,
    ConfigError,
    Conflict,
    CorruptTable,
    Leaf,
    Not,
    Op,
    Or,
    OutsideTable,
    PluginBroken,
    SnapshotNotFound,
    StorageError,
    TableError,
    TableNotFound,
    TablePath,
    UnsupportedType,
)
from laketier.spi.schema import FIELD_ID
from laketier_lance import clock, durable, private, tracked, versions
from laketier_lance.dataset import (
    LANCE_ERRORS,
    create_dataset,
    open_dataset,
    read_transaction,
    reason,
    recent_transactions,
    refuse_dropped,
)
from laketier_lance.filters import to_sql
from laketier_lance.fragments import Fragment, FragmentRun, fragments_of, grouped
from laketier_lance.history import _integer
from laketier_lance.lance_schema import column_field_ids, field_ids, with_field_ids, without_field_ids
from laketier_lance.latest import latest_version, manifest_bytes, manifest_identity
from laketier_lance.location import local_folder, local_path, normalise, refuse_links, table_location
from laketier_lance.options import LanceOptions
from laketier_lance.private import with_metadata
from laketier_lance.types import check_types
from laketier_lance.versions import branches_of, manifests_of, refuse_unlisted, versions_of

MIB = 1024**2


# -- the clock of a store --------------------------------------------------------------------------------------------


class Store:
    """A session of Lance's with a store, of which ``fails`` says which method raises what."""

    def __init__(self, **fails: Exception) -> None:
        self.fails, self.asked = fails, []

    def __call__(self, *given: Any) -> Store:
        self.asked.append(given)
        return self

    def upload_file(self, here: str, there: str) -> None:
        assert Path(here).read_bytes() == b""
        self._do("upload", there)

    def delete_file(self, there: str) -> None:
        self._do("delete", there)

    def _do(self, name: str, what: str) -> None:
        self.asked.append((name, what))
        if name in self.fails:
            raise self.fails[name]


def _listed(*microseconds: int) -> Any:
    found = pa.table({"last_modified": pa.array(microseconds, pa.timestamp("us"))})
    return SimpleNamespace(all_files=lambda: SimpleNamespace(read_all=lambda: found))


@pytest.fixture
def in_a_store(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(**fails: Exception) -> Store:
        store = Store(**fails)
        monkeypatch.setattr("lance.file.LanceFileSession", store)
        monkeypatch.setattr(clock, "open_dataset", lambda *_: _listed(5_000_999, 7_654_321, 1))
        return store

    return put


def test_the_time_of_a_store_is_that_of_its_newest_file(in_a_store: Any) -> None:
    store = in_a_store()
    assert clock.storage_time("s3://b/t.lance", LanceOptions()) == 7654
    assert store.asked == [
        ("s3://b/t.lance", LanceOptions().storage_options()),
        ("upload", "_laketier/clock"),
        ("delete", "_laketier/clock"),
    ]
    assert clock.storage_time("s3://b/t.lance", LanceOptions()) == 7654
    assert len(store.asked) == 6, "it is asked each time"


@pytest.mark.parametrize("error", [OSError("x"), ValueError("x"), RuntimeError("x")])
def test_a_store_that_does_not_tell_the_time(in_a_store: Any, error: Exception) -> None:
    in_a_store(delete=error)
    assert clock.storage_time("s3://b/t.lance", LanceOptions()) == 7654, "another process was faster"
    in_a_store(upload=error)
    with pytest.raises(StorageError, match="could not be asked for the time"):
        clock.storage_time("s3://b/t.lance", LanceOptions())
    for where in ("upload", "delete"):
        in_a_store(**{where: KeyError("a mistake of ours")})
        with pytest.raises(KeyError):
            clock.storage_time("s3://b/t.lance", LanceOptions())


def test_the_time_of_a_disk_is_now(table: Any) -> None:
    now = datetime.now(UTC).timestamp() * 1000
    assert abs(clock.storage_time(table.location, LanceOptions()) - now) < 60_000
    assert not Path(table.location, "_laketier").exists()


# -- the files that versions refer to --------------------------------------------------------------------------------


def _tracked(*sizes: int) -> Any:
    batches = [pa.record_batch({"path": [f"{at}/{each}" for each in range(size)]}) for at, size in enumerate(sizes)]
    return SimpleNamespace(tracked_files=lambda: iter(batches))


@pytest.mark.parametrize(
    ("sizes", "rows", "chunks"),
    [
        ((), 4, [0]),
        ((3,), 4, [3]),
        ((4,), 4, [4, 0]),
        ((1, 1, 1, 1, 1), 2, [2, 2, 1]),
        ((2, 2, 2, 2, 2, 1), 4, [4, 4, 3]),
        ((5, 1, 1, 1, 1), 4, [5, 4, 0]),
    ],
)
def test_paths_come_in_portions(sizes: tuple[int, ...], rows: int, chunks: list[int]) -> None:
    found = list(tracked._paths(_tracked(*sizes), rows))
    assert [len(each) for each in found] == chunks
    assert all(each.type == pa.string() for each in found)
    assert [path for each in found for path in each.to_pylist()] == [
        f"{at}/{each}" for at, size in enumerate(sizes) for each in range(size)
    ]


def test_portions_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(tracked, "_paths", lambda _, rows: asked.append(rows) or iter(()))
    monkeypatch.setattr(tracked, "manifests_of", lambda *_: set())
    for count in (1, 70_000):
        assert tracked.tracked(None, pa.array(["a"] * count)) == set()  # type: ignore[arg-type]
    assert asked == [65_536, 70_000]


def test_files_are_needed_on_any_branch_under_any_name(table: Any) -> None:
    table.append(0, 1)
    table.append(1, 2)
    first, second = (f"data/{file.path}" for f in table.open().get_fragments() for file in f.metadata.files)
    branch = table.open().create_branch("b", 2)
    lance.write_dataset(pa.Table.from_batches([table.rows(50)]), branch, mode="append")
    on_branch = table.open().checkout_version(("b", None))
    third = [file.path for f in on_branch.get_fragments() for file in f.metadata.files][-1]
    asked = [first, second, f"data/{third}", "data/nobody.lance"]
    assert tracked.needed(table.open(), asked) == set(asked[:3])
    assert tracked.needed(table.open(), []) == set()


# -- what pylance keeps private --------------------------------------------------------------------------------------


class _Schema:
    """A schema of Lance's that pickles itself in some way."""

    def __init__(self, real: Any, reduced: Any, arrow: Any = None) -> None:
        self._real, self._reduced, self._arrow = real, reduced, arrow

    def __reduce__(self) -> Any:
        if isinstance(self._reduced, Exception):
            raise self._reduced
        return self._reduced

    def to_pyarrow(self) -> Any:
        return self._real.to_pyarrow() if self._arrow is None else self._arrow

    def fields(self) -> Any:
        return self._real.fields()


@pytest.mark.parametrize("error", [AttributeError("a"), TypeError("t"), ValueError("v"), KeyError("k")])
def test_a_schema_that_can_not_be_pickled_fails_closed(table: Any, error: Exception) -> None:
    with pytest.raises(PluginBroken, match=type(error).__name__):
        with_metadata(_Schema(table.open().lance_schema, error), {})
    with pytest.raises(ZeroDivisionError):
        with_metadata(_Schema(table.open().lance_schema, ZeroDivisionError()), {})


def test_a_schema_without_metadata_gets_some() -> None:
    bare = lance.schema.LanceSchema.from_pyarrow(pa.schema([("id", pa.int64())]))
    assert with_metadata(bare, {b"a": b"b"}).to_pyarrow().metadata == {b"a": b"b"}
    assert not with_metadata(bare, {}).to_pyarrow().metadata


def test_a_schema_whose_ids_change_fails_closed(table: Any) -> None:
    table.append(0, 1)
    table.open().drop_columns(["name"])
    table.open().add_columns(pa.schema([pa.field("name", pa.string())]))
    real = table.open().lance_schema
    rebuild, (text, *_) = real.__reduce__()
    others = lance.schema.LanceSchema.from_pyarrow(real.to_pyarrow().remove_metadata()).__reduce__()[1][1:]
    with pytest.raises(PluginBroken, match="did not survive"):
        with_metadata(_Schema(real, (rebuild, (text, *others))), {})


def test_a_schema_that_pylance_keeps_in_another_way_fails_closed(table: Any) -> None:
    real = table.open().lance_schema
    rebuild, (text, *fields) = real.__reduce__()
    same = with_metadata(_Schema(real, (rebuild, (text, *fields))), {b"a": b"b"})
    assert same.to_pyarrow().metadata == {b"a": b"b"}
    renamed = lance.schema.LanceSchema.from_pyarrow(pa.schema([("id", pa.int64()), ("other", pa.string())]))
    for reduced in (
        (lambda *given: rebuild(*given), (text, *fields)),
        (rebuild, ("{}", *fields)),
        (rebuild, (text, *fields[:1])),
        (rebuild, (text, *renamed.__reduce__()[1][1:])),
        (rebuild, ("[]", *fields)),
        (rebuild, ()),
        (rebuild,),
    ):
        with pytest.raises(PluginBroken, match=r"Nothing was committed"):
            with_metadata(_Schema(real, reduced), {b"a": b"b"})


def test_a_schema_that_loses_metadata_of_columns_fails_closed(table: Any) -> None:
    real = table.open().lance_schema
    marked = pa.schema([each.with_metadata({"a": "b"}) for each in real.to_pyarrow()], real.to_pyarrow().metadata)
    with pytest.raises(PluginBroken, match="did not survive"):
        with_metadata(_Schema(real, real.__reduce__(), marked), {})


def test_a_schema_that_loses_metadata_fails_closed(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = table.open().lance_schema
    for lost in ({}, {"a": list(b"c")}, {"a": list(b"b"), "more": []}):
        told = json.dumps(lost)
        monkeypatch.setattr(private, "json", SimpleNamespace(loads=json.loads, dumps=lambda _, told=told: told))
        with pytest.raises(PluginBroken, match="did not survive"):
            with_metadata(real, {b"a": b"b"})


# -- fragments -------------------------------------------------------------------------------------------------------


def _fragment(number: int, rows: int, *sizes: int | None) -> Any:
    files = [SimpleNamespace(file_size_bytes=size, _path=f"{number}-{at}") for at, size in enumerate(sizes)]
    return SimpleNamespace(fragment_id=number, metadata=SimpleNamespace(files=files, num_rows=rows, physical_rows=rows))


def test_fragments_with_rows_and_their_sizes() -> None:
    found = fragments_of([_fragment(3, 2, 10, 5), _fragment(4, 0, 7), _fragment(1, 1, None, 2), _fragment(0, 1)])
    assert found == [Fragment(3, 2, 15, "3-1"), Fragment(1, 1, 2, "1-1"), Fragment(0, 1, 0, "")]


def test_lance_writes_no_number_where_a_fragment_has_no_rows() -> None:
    """So a file is asked where there is none."""

    def unreadable() -> int:
        raise OSError("Not found: x")

    for count, rows in ((lambda: 0, []), (lambda: 3, [Fragment(1, 3, 5, "1-0")])):
        unnumbered = _fragment(1, 2, 5)
        unnumbered.metadata.physical_rows, unnumbered.count_rows = None, count
        assert fragments_of([unnumbered]) == rows
    unnumbered.count_rows = unreadable
    with pytest.raises(CorruptTable, match="fragment 1 has no number of rows"):
        fragments_of([unnumbered])


def _sizes(groups: list[list[Fragment]]) -> list[int]:
    return [len(group) for group in groups]


def test_fragments_are_read_together_once_they_are_many() -> None:
    few = [Fragment(number, 1, 1) for number in range(16)]
    assert grouped(few, 1000) == [[each] for each in few]
    many = [Fragment(number, 1, 1) for number in range(17)]
    assert grouped(many, 1000) == [many]
    assert _sizes(grouped(many, 5)) == [5, 5, 5, 2]
    assert _sizes(grouped(many, 1)) == [1] * 17
    assert _sizes(grouped([Fragment(number, 9, 1) for number in range(17)], 5)) == [1] * 17, "none is empty"
    wide = [Fragment(number, 1, 32 * MIB) for number in range(17)]
    assert _sizes(grouped(wide, 1000)) == [4, 4, 4, 4, 1], "up to 128 MiB"
    assert _sizes(grouped([Fragment(number, 1, 32 * MIB + 1) for number in range(17)], 1000)) == [3] * 5 + [2]
    both = [Fragment(number, 2, 128 * MIB if number == 3 else 1) for number in range(17)]
    assert _sizes(grouped(both, 8)) == [3, 1, 4, 4, 4, 1]


@pytest.mark.parametrize(
    ("rows", "size", "batch"),
    [
        (0, 0, 65_536),
        (10, 0, 65_536),
        (1, 512, 65_536),
        (1, 1024, 32_768),
        (1000, 1024 * 1000, 32_768),
        (1, 32 * 1024, 1024),
        (1, 32 * MIB, 1024),
        (4, 4 * 4096, 8192),
    ],
)
def test_batches_are_smaller_the_wider_rows_are(rows: int, size: int, batch: int) -> None:
    run = FragmentRun.of([Fragment(7, rows, size, "x"), Fragment(8, 0, 0, "y")], 5, "a = 1", {"a": None})
    assert run == FragmentRun(5, (7, 8), batch, "a = 1", {"a": None}, "y")
    assert FragmentRun.of([Fragment(7, rows, size)], 5) == FragmentRun(5, (7,), batch, "", {})


# -- opening datasets ------------------------------------------------------------------------------------------------


OPENED: Any = SimpleNamespace(schema=None, base_paths=dict)


def _raising(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[Any]:
    """Let ``lance.dataset`` answer so, one after the other."""
    asked: list[Any] = []

    def answer(location: str, **given: Any) -> Any:
        asked.append((location, given))
        found = answers[min(len(asked), len(answers)) - 1]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(lance, "dataset", answer)
    return asked


def test_a_dataset_is_opened_with_what_the_store_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _raising(monkeypatch, OPENED)
    assert open_dataset("/t", {}) is OPENED
    assert open_dataset("/t", {"a": "b"}, 3) is OPENED
    assert asked == [
        ("/t", {"version": None, "storage_options": {}}),
        ("/t", {"version": 3, "storage_options": {"a": "b"}}),
    ]


GONE = [ValueError("Dataset at path t was not found"), OSError("Not found: t/_versions"), RuntimeError("Not found: x")]


@pytest.mark.parametrize("gone", GONE, ids=str)
def test_what_is_not_there_is_told_as_such(monkeypatch: pytest.MonkeyPatch, gone: Exception) -> None:
    _raising(monkeypatch, gone)
    with pytest.raises(TableNotFound):
        open_dataset("/t", {})
    with pytest.raises(TableNotFound):
        open_dataset("/t", {}, 3)
    with pytest.raises(Conflict, match="dropped meanwhile"):
        refuse_dropped("/t", {})
    for error in (gone, OverflowError("too large")):
        _raising(monkeypatch, error, OPENED)
        with pytest.raises(SnapshotNotFound, match="version 3 does not exist"):
            open_dataset("/t", {}, 3)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("x"), CorruptTable),
        (OSError("x"), TableError),
        (RuntimeError("x"), TableError),
        (KeyError(), KeyError),
    ],
)
def test_what_can_not_be_opened_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception]
) -> None:
    _raising(monkeypatch, error)
    for ask in (lambda: open_dataset("/t", {}), lambda: open_dataset("/t", {}, 3), lambda: refuse_dropped("/t", {})):
        with pytest.raises(kind) as failure:
            ask()
        assert type(failure.value) is kind


def _transacting(error: Any) -> Any:
    def fails(*_: Any) -> Any:
        if isinstance(error, Exception):
            raise error
        return error

    return SimpleNamespace(read_transaction=fails, get_transactions=fails, uri="/t")


def test_a_transaction_that_is_gone_is_none() -> None:
    assert read_transaction(_transacting("it"), 3) == "it"
    assert read_transaction(_transacting(OSError("Not found: x.txn")), 3) is None
    for error, kind in ((ValueError("x"), CorruptTable), (OSError("x"), TableError), (KeyError("x"), KeyError)):
        with pytest.raises(kind):
            read_transaction(_transacting(error), 3)
    with pytest.raises(TypeError, match="another"):
        read_transaction(_transacting(TypeError("another")), 3)
    made = read_transaction(_transacting(TypeError("no class RewrittenIndex")), 3)
    assert made is not None
    assert (made.read_version, made.uuid, type(made.operation).__name__) == (2, "version 3", "Rewrite")


def test_recent_transactions_are_read_together_or_not_at_all() -> None:
    assert recent_transactions(_transacting(("a", "b")), 2) == ["a", "b"]
    for error in (OSError("x"), ValueError("x"), RuntimeError("x"), TypeError("x")):
        assert recent_transactions(_transacting(error), 2) == []
    for count in (0, -1):
        assert recent_transactions(_transacting(KeyError("not to be asked")), count) == []
    with pytest.raises(KeyError):
        recent_transactions(_transacting(KeyError("x")), 1)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_dataset_is_made_in_each_file_format(tmp_path: Path, version: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2))], {"a": "b"})
    create_dataset(str(tmp_path / "t.lance"), schema, version, {})
    made = lance.dataset(tmp_path / "t.lance")
    assert (made.data_storage_version, made.count_rows(), made.schema.metadata) == (version, 0, {b"a": b"b"})
    assert made.get_fragments() == []
    lance.write_dataset(pa.table({"id": [1], "v": [[1.0, 2.0]]}, schema=schema), made, mode="append")
    assert lance.dataset(tmp_path / "t.lance").to_table().to_pylist() == [{"id": 1, "v": [1.0, 2.0]}]
    with pytest.raises(LANCE_ERRORS):
        create_dataset(str(tmp_path / "t.lance"), schema, version, {})
    assert lance.dataset(tmp_path / "t.lance").count_rows() == 1


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_a_dataset_is_made_by_strict_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    asked: list[Any] = []
    commit, session = lance.LanceDataset.commit, lance.file.LanceFileSession

    def spy(location: str, transaction: Any, **given: Any) -> Any:
        fragments = [(each.id, each.physical_rows) for each in transaction.operation.fragments]
        asked.append((transaction.read_version, fragments, given))
        return commit(location, transaction, **{**given, "storage_options": None})

    monkeypatch.setattr(lance.LanceDataset, "commit", spy)
    monkeypatch.setattr(lance.file, "LanceFileSession", lambda *given: asked.append(given) or session(given[0]))
    for at, storage in enumerate(({}, {"a": "b"})):
        place = str(tmp_path / f"{at}.lance")
        create_dataset(place, pa.schema([("id", pa.int64())]), version, storage)
        told = {"storage_options": storage, "max_retries": 0}
        last = [] if version == "2.2" else [(1, [], told)]
        empty = [] if version == "2.2" else [(0, 0)]
        first = [] if version == "2.2" else [(place, storage)]
        assert asked == [*first, (0, empty, told), *last]
        asked.clear()
    beaten = iter([None, None])

    def conflict(*given: Any, **more: Any) -> Any:
        if next(beaten, "no more") is None and version == "2.0" and len(given) and given[1].read_version == 1:
            raise lance.commit.CommitConflictError("another commit came first")
        return commit(*given, **more)

    monkeypatch.setattr(lance.LanceDataset, "commit", conflict)
    create_dataset(str(tmp_path / "beaten.lance"), pa.schema([("id", pa.int64())]), version, {})


def test_messages_of_lance_lose_the_lines_of_its_code() -> None:
    told = "LanceError(IO): it failed, location: /home/u/.cargo/lance/src/io.rs:12:3, /rustc/ab/core.rs:7:1.,"
    assert reason(OSError(told)) == "LanceError(IO): it failed"
    assert reason(OSError(" at /home/user/t.lance. ")) == "at /home/user/t.lance"


# -- places ----------------------------------------------------------------------------------------------------------


def test_where_tables_are(tmp_path: Path) -> None:
    assert table_location("s3://b/lake", TablePath("db", "t")) == "s3://b/lake/db/t.lance"
    assert normalise("s3://b/lake//") == "s3://b/lake"
    assert normalise(str(tmp_path / "a" / "..") + "/") == str(tmp_path)
    for odd in ("s3://b/\x00", f"{tmp_path}/a\nb", f"{tmp_path}/\x7f", f"{tmp_path}/\x1f"):
        with pytest.raises(ConfigError, match="control characters"):
            normalise(odd)
    assert local_path("/lake/t.lance") == Path("/lake/t.lance")
    assert local_path("s3://b/t.lance") is None
    assert local_folder("s3://b/t.lance") is None
    (tmp_path / "t.lance").mkdir()
    (tmp_path / "t.lance" / "file").write_bytes(b"abc")
    folder = local_folder(str(tmp_path / "t.lance"))
    assert folder is not None
    assert [(file.path, file.bytes) for file in folder.files("", recursive=False)] == [("file", 3)]


@pytest.mark.parametrize("name", ["data", "_versions", "_transactions", "_deletions", "_indices", "_refs", "tree"])
def test_each_folder_of_a_dataset_may_be_a_link_to_anothers(tmp_path: Path, name: str) -> None:
    refuse_links(str(tmp_path))
    (tmp_path / "elsewhere").symlink_to(tmp_path)
    refuse_links(str(tmp_path))
    (tmp_path / name).symlink_to(tmp_path)
    with pytest.raises(OutsideTable):
        refuse_links(str(tmp_path))
    refuse_links("s3://b/t.lance")


# -- what is on the device -------------------------------------------------------------------------------------------


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    told: list[tuple[str, Path]] = []
    for name in ("fsync_file", "fsync_directory", "fsync_published", "make_directories"):
        monkeypatch.setattr(durable, name, lambda path, name=name: told.append((name, Path(path))))
    return told


def test_a_version_is_on_the_device_with_its_files(tmp_path: Path, synced: list[tuple[str, Path]]) -> None:
    (tmp_path / "_versions").mkdir()
    newest, older = durable.manifest_names(3)
    assert (newest, older) == (f"{2**64 - 4}.manifest", "3.manifest")
    for number, name in enumerate((newest, older)):
        (tmp_path / "_versions" / name).touch()
        durable.make_durable(str(tmp_path), 3, ["data/a", "data/b"])
        manifests = [tmp_path / "_versions" / each for each in (newest, older)[: number + 1]]
        assert synced == [
            ("fsync_file", tmp_path / "data" / "a"),
            ("fsync_file", tmp_path / "data" / "b"),
            ("fsync_directory", tmp_path / "data"),
            ("fsync_directory", tmp_path),
            *(("fsync_published", each) for each in manifests),
            ("fsync_directory", tmp_path / "_versions"),
        ]
        synced.clear()
    durable.make_durable("s3://b/t.lance", 3, ["data/a"])
    durable.make_folders("s3://b/t.lance")
    assert synced == []
    durable.make_folders(str(tmp_path))
    assert synced == [("make_directories", tmp_path / "_versions")]


def test_a_version_is_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / "_versions"
    folder.mkdir()
    (tmp_path / "_transactions").mkdir()
    transactions = [f"_transactions/{name}.txn" for name in ("2-ours", "2-theirs", "3-ours")]
    names = [*durable.manifest_names(3), *durable.manifest_names(2), "latest_version_hint.json"]
    for gone in ((0, 4), (1,), ()):
        for name in names:
            (folder / name).touch()
        for at in gone:
            (folder / names[at]).unlink()
        for name in transactions:
            (tmp_path / name).touch()
        durable.remove_version(str(tmp_path), 3, "ours")
        assert not (tmp_path / transactions[0]).exists()
        assert all((tmp_path / name).exists() for name in transactions[1:])
        assert sorted(path.name for path in folder.iterdir()) == sorted(names[2:4])
    durable.remove_version("s3://b/t.lance", 3, "ours")
    assert durable.local_versions(str(tmp_path)) == folder
    assert durable.local_versions("s3://b/t.lance") is None


# -- the newest version, by names alone ------------------------------------------------------------------------------


def _manifests(folder: Path, *names: str) -> str:
    (folder / "_versions").mkdir(exist_ok=True)
    for name in names:
        (folder / "_versions" / name).write_text(name)
    return str(folder)


def test_the_newest_version_is_told_by_names(tmp_path: Path) -> None:
    assert latest_version(str(tmp_path), None) is None
    assert latest_version("s3://b/t.lance", None) is None
    location = _manifests(tmp_path, "d7.manifest", "x.manifest", "9.manifest.tmp")
    assert latest_version(location, None) is None
    _manifests(tmp_path, "9.manifest", "10.manifest")
    found = latest_version(location, None)
    assert found is not None
    assert found.startswith("10:10.manifest:")
    assert latest_version(location, found) == found
    new = durable.manifest_names(11)[0]
    _manifests(tmp_path, new)
    later = latest_version(location, found)
    assert later is not None
    assert later.startswith(f"11:{new}:")
    assert latest_version(location, later) == later == latest_version(location, None)
    for known in ("", "11", f"11:{new}:", f"x{later}", f"{later} ", later.replace("11:", "10:", 1)):
        assert latest_version(location, known) == later
    _manifests(tmp_path, "12.manifest")
    assert str(latest_version(location, later)).startswith("12:12.manifest:")


def test_a_mistake_is_not_taken_for_an_absence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any) -> Any:
        raise KeyError("ours")

    monkeypatch.setattr("laketier_lance.latest.os.listdir", fails)
    with pytest.raises(KeyError):
        latest_version(str(tmp_path), None)


def test_a_version_that_was_made_anew_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = _manifests(tmp_path, "1.manifest")
    known = latest_version(location, None)
    (tmp_path / "_versions" / "1.manifest").write_text("another")
    assert latest_version(location, known) != known
    assert manifest_identity(location, 1) == str(latest_version(location, None)).rpartition(":")[2]
    assert manifest_identity(location, 2) is None
    assert manifest_identity("s3://b/t.lance", 1) is None
    assert manifest_bytes(location, 1) == len("another")
    assert manifest_bytes(location, 2) is None
    assert manifest_bytes("s3://b/t.lance", 1) is None
    with monkeypatch.context() as patch:
        patch.setattr("laketier_lance.latest.os.stat", lambda *_: pytest.fail("a store has no files here"))
        assert manifest_bytes("s3://b/t.lance", 1) is None
    _manifests(tmp_path, durable.manifest_names(2)[0])
    assert manifest_bytes(location, 2) == len(durable.manifest_names(2)[0])
    assert manifest_identity(location, 2) is not None


# -- versions and branches -------------------------------------------------------------------------------------------


def test_versions_that_lance_does_not_list(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(0, 1)
    table.append(1, 2)
    assert versions_of(table.open()) == [1, 2, 3]
    folder = Path(table.location, "_versions")
    names = {path.name for path in folder.glob("*.manifest")}
    assert manifests_of(table.open(), "") == {f"_versions/{name}" for name in names}
    listed = SimpleNamespace(version_refs=lambda: [{"version": 3}, {"version": 1}], uri=table.location)
    with pytest.raises(StorageError, match="did not list all files") as failure:
        versions_of(listed)  # type: ignore[arg-type]
    assert str(failure.value.where).endswith(f"_versions/{durable.manifest_names(2)[0]}")
    assert "nor of 0 others" in str(failure.value.why)
    (folder / durable.manifest_names(2)[0]).rename(folder / "2.manifest")
    with pytest.raises(StorageError, match="did not list all files"):
        versions_of(listed)  # type: ignore[arg-type]
    (folder / "2.manifest").unlink()
    assert versions_of(listed) == [1, 3]  # type: ignore[arg-type]
    _manifests(Path(table.location), "d5.manifest", "7.manifest#1")
    assert versions_of(listed) == [1, 3]  # type: ignore[arg-type]


def test_what_is_gone_meanwhile_is_not_missed() -> None:
    named = SimpleNamespace(uri="/t")
    refuse_unlisted(named, set(), lambda _: pytest.fail("nothing is missing"))  # type: ignore[arg-type]
    refuse_unlisted(named, {"a", "b"}, lambda _: {"c"})  # type: ignore[arg-type]
    with pytest.raises(StorageError, match="/t/a") as failure:
        refuse_unlisted(named, {"b", "a", "c"}, lambda _: {"a", "b"})  # type: ignore[arg-type]
    assert "nor of 1 others" in str(failure.value.why)


def test_branches_that_lance_does_not_list(table: Any) -> None:
    table.append(0, 1)
    assert branches_of(table.open()) == []
    table.open().create_branch("a/b", 2)
    assert branches_of(table.open()) == ["a/b"]
    Path(table.location, "_refs", "branches", "note.txt").touch()
    assert branches_of(table.open()) == ["a/b"]
    unlisted = SimpleNamespace(branches=SimpleNamespace(list=dict), uri=table.location)
    with pytest.raises(StorageError, match="_refs/branches/"):
        branches_of(unlisted)  # type: ignore[arg-type]
    stored = SimpleNamespace(branches=SimpleNamespace(list=lambda: {"a": 1}), uri="s3://b/t.lance")
    assert branches_of(stored) == ["a"]  # type: ignore[arg-type]


def test_a_folder_of_versions_that_can_not_be_listed_is_an_error(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any) -> list[str]:
        raise PermissionError("no")

    monkeypatch.setattr(versions, "names_in", fails)
    with pytest.raises(StorageError, match="listing the files of a dataset"):
        versions_of(table.open())


# -- filters ---------------------------------------------------------------------------------------------------------

COLUMNS = pa.schema(
    [
        ("i", pa.int8()),
        ("l", pa.int64()),
        ("u", pa.uint64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("ms", "Europe/Berlin")),
        ("ns", pa.timestamp("ns")),
        ("sec", pa.timestamp("s")),
        ("dec", pa.decimal128(5, 2)),
        ("f", pa.float64()),
        ("d64", pa.date64()),
    ]
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678901)


@pytest.mark.parametrize(
    ("predicate", "sql"),
    [
        (Leaf("i", Op.EQ, 1), "`i` = 1"),
        (Leaf("i", Op.NE, 1), "`i` != 1"),
        (Leaf("i", Op.LT, -128), "`i` < -128"),
        (Leaf("i", Op.LE, 127), "`i` <= 127"),
        (Leaf("i", Op.GT, 1), "`i` > 1"),
        (Leaf("i", Op.GE, 1), "`i` >= 1"),
        (Leaf("l", Op.EQ, -(2**63) + 1), f"`l` = {-(2**63) + 1}"),
        (Leaf("l", Op.EQ, 2**63 - 1), f"`l` = {2**63 - 1}"),
        (Leaf("u", Op.EQ, 0), "`u` = 0"),
        (Leaf("u", Op.EQ, 2**63 - 1), f"`u` = {2**63 - 1}"),
        (Leaf("s", Op.IS_NULL), "`s` IS NULL"),
        (Leaf("f", Op.NOT_NULL), "`f` IS NOT NULL"),
        (Leaf("s", Op.EQ, "it's"), "`s` = 'it''s'"),
        (Leaf("s", Op.IN, ("a", None)), "`s` IN ('a', NULL)"),
        (Leaf("i", Op.IN, (None,)), "`i` IN (NULL)"),
        (Leaf("i", Op.IN, (1, 300)), None),
        (Leaf("i", Op.IN, ()), None),
        (Leaf("s", Op.STARTS_WITH, "a%"), "starts_with(`s`, 'a%')"),
        (Leaf("i", Op.STARTS_WITH, 1), None),
        (Leaf("s", Op.STARTS_WITH, b"a"), None),
        (Leaf("b", Op.EQ, True), "`b` = true"),
        (Leaf("b", Op.EQ, False), "`b` = false"),
        (Leaf("d", Op.EQ, date(2026, 1, 2)), "`d` = date '2026-01-02'"),
        (Leaf("d64", Op.EQ, date(2026, 1, 2)), None),
        (Leaf("t", Op.EQ, AT), "`t` = arrow_cast('2026-01-02 03:04:05.678901', 'Timestamp(Microsecond, None)')"),
        (
            Leaf("z", Op.EQ, datetime(2026, 1, 2, 4, tzinfo=timezone(timedelta(hours=1)))),
            "`z` = arrow_cast('2026-01-02 03:00:00.000000+00:00', 'Timestamp(Millisecond, Some(\"Europe/Berlin\"))')",
        ),
        (Leaf("z", Op.EQ, AT.replace(tzinfo=UTC)), None),
        (Leaf("ns", Op.EQ, AT), "`ns` = arrow_cast('2026-01-02 03:04:05.678901', 'Timestamp(Nanosecond, None)')"),
        (
            Leaf("ns", Op.EQ, datetime(2260, 12, 31)),
            "`ns` = arrow_cast('2260-12-31 00:00:00.000000', 'Timestamp(Nanosecond, None)')",
        ),
        (
            Leaf("t", Op.EQ, datetime(1, 1, 1)),
            "`t` = arrow_cast('0001-01-01 00:00:00.000000', 'Timestamp(Microsecond, None)')",
        ),
        (Leaf("sec", Op.EQ, AT), None),
        (
            Leaf("sec", Op.EQ, AT.replace(microsecond=0)),
            "`sec` = arrow_cast('2026-01-02 03:04:05.000000', 'Timestamp(Second, None)')",
        ),
        (Leaf("dec", Op.EQ, Decimal("1.5")), "`dec` = arrow_cast('1.5', 'Decimal128(5, 2)')"),
        (Leaf("dec", Op.EQ, Decimal("-1E+2")), "`dec` = arrow_cast('-100', 'Decimal128(5, 2)')"),
        (Leaf("dec", Op.EQ, Decimal("Infinity")), None),
        (Leaf("dec", Op.EQ, Decimal(1000)), None),
        (Not(Leaf("i", Op.EQ, 1)), "NOT (`i` = 1)"),
        (Not(Leaf("f", Op.EQ, 1.0)), None),
        (And((Leaf("i", Op.EQ, 1), Leaf("b", Op.EQ, True))), "(`i` = 1) AND (`b` = true)"),
        (Or((Leaf("i", Op.EQ, 1), Leaf("b", Op.EQ, True))), "(`i` = 1) OR (`b` = true)"),
        (And((Leaf("i", Op.EQ, 1), Leaf("f", Op.EQ, 1.0))), None),
        (Or((Leaf("f", Op.EQ, 1.0), Leaf("i", Op.EQ, 1))), None),
        (And(()), None),
        (Or((Leaf("i", Op.EQ, 1),)), "(`i` = 1)"),
        (Leaf("nope", Op.NOT_NULL), None),
    ],
    ids=str,
)
def test_what_lance_is_asked(predicate: Any, sql: str | None) -> None:
    assert to_sql(predicate, COLUMNS) == sql


def test_a_value_that_arrow_fails_on_otherwise_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(pa, "scalar", fails)
    with pytest.raises(ZeroDivisionError):
        to_sql(Leaf("dec", Op.EQ, Decimal("1.5")), COLUMNS)


# -- schemas ---------------------------------------------------------------------------------------------------------


def _with_id(number: int, name: str, kind: pa.DataType, **more: str) -> pa.Field:
    return pa.field(name, kind, metadata={FIELD_ID: str(number).encode(), **{k.encode(): v for k, v in more.items()}})


def test_columns_of_a_data_file_are_its_leaves_and_more_in_the_old_format() -> None:
    inner = pa.struct([_with_id(2, "x", pa.int8()), _with_id(3, "y", pa.list_(_with_id(4, "item", pa.int8())))])
    schema = pa.schema(
        [
            _with_id(0, "a", pa.int8()),
            _with_id(1, "s", inner),
            _with_id(7, "v", pa.list_(pa.field("item", pa.int8()), 2)),
        ]
    )
    assert column_field_ids(schema, "2.1") == column_field_ids(schema, "2.2") == (0, 2, 4, 7)
    assert column_field_ids(schema, "2.0") == (0, 1, 2, 3, 4, 7)


def test_ids_are_left_out_and_other_metadata_of_columns_stays() -> None:
    inner = pa.struct([_with_id(1, "x", pa.int8(), unit="kg")])
    schema = pa.schema([_with_id(0, "s", inner, a="b"), _with_id(2, "plain", pa.int8())], {"of": "schema"})
    found = without_field_ids(schema)
    assert found.metadata is None
    assert found.field("s").metadata == {b"a": b"b"}
    assert found.field("s").type.field("x").metadata == {b"unit": b"kg"}
    assert found.field("plain").metadata is None


def test_ids_are_beside_other_metadata_of_columns(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("x", pa.list_(pa.int8())), pa.field("m", pa.map_(pa.string(), pa.int8()))])
    schema = pa.schema([pa.field("s", inner, metadata={"a": "b"}), pa.field("l", pa.large_list(pa.int8()))])
    dataset = lance.write_dataset(schema.empty_table(), tmp_path / "t.lance", data_storage_version="2.2")
    found = with_field_ids(dataset.lance_schema)
    numbers = dict(field_ids(dataset.lance_schema))
    every = {number for _, number in field_ids(dataset.lance_schema)}
    assert found.field("s").metadata == {b"a": b"b", FIELD_ID: str(numbers["s"]).encode()}
    inside = found.field("s").type
    assert inside.field("x").metadata == {FIELD_ID: str(numbers["x"]).encode()}
    told = [inside.field("m").type.key_field, inside.field("m").type.item_field, inside.field("x").type.value_field]
    assert all(int(each.metadata[FIELD_ID]) in every for each in [*told, found.field("l").type.value_field])
    assert without_field_ids(found).equals(schema, check_metadata=True)
    ids = column_field_ids(found, "2.2")
    assert len(set(ids)) == len(ids) == 4


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (pa.list_view(pa.int8()), "Cast it to list<int8>."),
        (pa.large_list_view(pa.int8()), "Cast it to list<int8>."),
        (pa.string_view(), "Cast it to string."),
        (pa.binary_view(), "Cast it to binary."),
        (pa.decimal32(5, 2), "Cast it to decimal128(5, 2)."),
        (pa.decimal64(5, 2), "Cast it to decimal128(5, 2)."),
        (pa.month_day_nano_interval(), "Store months, days and nanoseconds in columns of their own."),
        (pa.dense_union([pa.field("a", pa.int8())]), "Make it a struct with a field for each type."),
        (pa.dictionary(pa.int8(), pa.string()), "Cast it to string; Lance encodes repeated values by itself."),
        (pa.run_end_encoded(pa.int32(), pa.int8()), "Cast it to a type that Lance holds; the table of types"),
        (pa.struct([]), "Give the struct a field, or leave the column out."),
        (pa.list_(pa.string(), 2), "Use list<string>."),
        (pa.list_(pa.int8(), 0), "Use list."),
        (pa.map_(pa.string(), pa.int8(), keys_sorted=True), "Declare the map without sorted keys."),
        (pa.json_(), "Cast arrow.json to its storage type."),
    ],
    ids=str,
)
def test_what_to_do_with_a_type_that_lance_does_not_hold(kind: pa.DataType, advice: str) -> None:
    for nested in (kind, pa.list_(kind), pa.struct([("x", kind)])):
        with pytest.raises(UnsupportedType) as failure:
            check_types(pa.schema([("c", nested)]), "2.2")
        assert str(failure.value.fix).startswith(advice)


def test_an_extension_that_only_its_name_tells() -> None:
    for name, is_held in ((b"arrow.uuid", True), (b"other", False)):
        schema = pa.schema([pa.field("c", pa.binary(16), metadata={b"ARROW:extension:name": name})])
        if is_held:
            check_types(schema, "2.2")
        else:
            with pytest.raises(UnsupportedType, match="Cast other to its storage type"):
                check_types(schema, "2.2")
    for version in ("2.0", "2.1"):
        with pytest.raises(UnsupportedType, match=r"data-storage-version = 2\.2"):
            check_types(pa.schema([("c", pa.map_(pa.string(), pa.int8()))]), version)


def test_numbers_in_a_history() -> None:
    assert [_integer(text) for text in ("12", "0", "", "-1", "1.5", "x", None, 5)] == [12, 0, *[None] * 6]
