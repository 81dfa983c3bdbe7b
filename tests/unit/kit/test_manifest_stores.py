"""Tables of manifests on storage of other kinds: where a name can be taken in a table that is gone, where two writers
may take one name, and where a write that failed may still land."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier import kit, spi
from laketier.kit.local_store import LocalStore, LocalWarehouse
from laketier.kit.manifests import kept
from laketier.kit.manifests.document import encode
from laketier.kit.manifests.log import ManifestLog
from text_lake import PATH, SCHEMA, Lake, TextTable, following, put


@dataclass(frozen=True)
class Bucket(LocalStore):
    """A folder that makes no promise of a folder's."""

    may_land_late: ClassVar[bool] = True
    needs_no_folder: ClassVar[bool] = True
    may_take_twice: ClassVar[bool] = True
    distrusted: ClassVar[list[str]] = []

    @property
    def folder(self) -> None:  # type: ignore[override]
        return None

    def create(self, path: str, data: bytes) -> None:
        (self.location / path).parent.mkdir(parents=True, exist_ok=True)
        super().create(path, data)

    def distrust(self) -> None:
        self.distrusted.append(self.root)


@dataclass(frozen=True)
class Buckets(LocalWarehouse):
    """Tables in `Bucket`s."""

    def table(self, database: str, table: str) -> Bucket:
        return Bucket(super().table(database, table).location)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[TextTable]:
    """A table that is in none of the folders of a disk."""
    Bucket.distrusted.clear()
    catalog = kit.ManifestCatalog(TextTable, Buckets(tmp_path / "buckets"), manifests_per_rollup=2)
    catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    yield TextTable(Bucket(tmp_path / "buckets" / "db" / "t"))
    Bucket.distrusted.clear()


def _files(table: TextTable) -> set[str]:
    return {file.path for file in table.store.files("")}


def test_a_table_on_other_storage_is_written_and_read(bucket: TextTable) -> None:
    manifests = bucket.manifests()
    for number in range(1, 4):
        state = bucket.open()
        bucket.finish(manifests, manifests.append(following(state.head)))
        assert (bucket.open().head.number, manifests.head()[1]) == (number, True)
    assert Bucket.distrusted == []
    with pytest.raises(spi.FeatureNotSupported, match="is no folder on a disk"):
        _ = bucket.location


@pytest.mark.parametrize("gone", [["table.json"], ["table.json", "head.json"]])
def test_a_name_in_a_table_that_is_gone_is_given_back(bucket: TextTable, gone: list[str]) -> None:
    """A drop takes ``table.json`` first, and whatever else is there later."""
    manifests = bucket.manifests()
    ours = following(manifests.head()[0])
    for path in _files(bucket):
        if path.rpartition("/")[2] in gone:
            bucket.store.delete(path)
    before = _files(bucket)
    with pytest.raises(spi.Conflict, match="the table was dropped meanwhile"):
        manifests.append(ours)
    assert _files(bucket) == before


def test_a_name_in_the_table_that_followed_is_given_back(bucket: TextTable) -> None:
    """Somebody dropped the table and made another one in its place."""
    manifests = bucket.manifests()
    ours = following(manifests.head()[0])
    catalog = kit.ManifestCatalog(TextTable, Buckets(bucket.store.location.parents[1]))  # type: ignore[attr-defined]
    catalog.drop_table(PATH)
    catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    before = _files(bucket)
    with pytest.raises(spi.Conflict, match="the table was dropped meanwhile"):
        manifests.append(ours)
    assert _files(bucket) == before


def test_a_name_is_kept_where_only_the_head_file_is_gone(bucket: TextTable) -> None:
    manifests = bucket.manifests()
    ours = following(manifests.head()[0])
    bucket.store.delete(f"{manifests.home}/head.json")
    assert manifests.append(ours) == ours
    assert bucket.open().head == ours


def test_a_manifest_whose_name_somebody_took_is_not_noted_in_peace(bucket: TextTable) -> None:
    manifests = bucket.manifests()
    ours = manifests.append(following(manifests.head()[0]))
    bucket.store.replace(manifests.name(1), following(manifests.read(0)).encode())
    with pytest.raises(spi.RolledBack, match=r"(?s)is not the one that was published.*two writers.*laketier doctor"):
        manifests.note_head(ours)
    assert Bucket.distrusted == [bucket.store.root]
    with pytest.raises(spi.RolledBack, match="manifest 1 is not the one"):
        manifests.head()


@pytest.mark.parametrize("error", [spi.StorageError("busy"), OSError("busy")])
def test_a_manifest_that_can_not_be_looked_at_is_not_called_replaced(
    bucket: TextTable, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    manifests = bucket.manifests()
    ours = manifests.append(following(manifests.head()[0]))
    read = Bucket.read

    def fails(store: Bucket, path: str) -> bytes:
        if path == manifests.name(1):
            raise error
        return read(store, path)

    monkeypatch.setattr(Bucket, "read", fails)
    with pytest.raises(type(error), match="busy"):
        manifests.note_head(ours)
    assert Bucket.distrusted == []


def test_a_manifest_that_vanished_is_only_no_loss_in_a_table_that_is_dropped(bucket: TextTable) -> None:
    manifests = bucket.manifests()
    ours = manifests.append(following(manifests.head()[0]))
    bucket.store.delete(manifests.name(1))
    with pytest.raises(spi.RolledBack):
        manifests.note_head(ours)
    bucket.store.delete("_text/table.json")
    manifests.note_head(ours)


def test_a_folder_keeps_its_word_and_is_not_asked(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk no name is taken twice: a manifest that was replaced was so by somebody's hand."""
    manifests = lake.table.manifests()
    ours = manifests.append(following(manifests.head()[0]))
    put(manifests, following(manifests.read(0)))
    asked: list[int] = []
    monkeypatch.setattr(LocalStore, "distrust", lambda _: asked.append(1))
    manifests.note_head(ours)
    with pytest.raises(spi.RolledBack) as told:
        manifests.head()
    assert "doctor" not in str(told.value)
    assert asked == []


def test_a_name_that_was_free_again_is_told_with_what_the_storage_may_have_done(bucket: TextTable) -> None:
    manifests = bucket.manifests()
    theirs = following(following(manifests.head()[0], commit_id="theirs"))
    bucket.store.replace(manifests.name(2), theirs.encode())
    manifests.note_head(theirs)
    with pytest.raises(spi.Conflict, match="or the store lets two writers take one name"):
        manifests.append(following(manifests.read(0)))
    assert Bucket.distrusted == [bucket.store.root]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_what_a_failed_creation_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, late: bool, there: bool
) -> None:
    """Nothing, unless ``table.json`` is there all the same, or may still come."""
    create = LocalStore.create

    def fails(store: LocalStore, path: str, data: bytes) -> None:
        if path.endswith("table.json"):
            if there:
                create(store, path, data)
            raise OSError("no answer")
        create(store, path, data)

    monkeypatch.setattr(LocalStore, "create", fails)
    catalog = kit.ManifestCatalog(TextTable, Buckets(tmp_path) if late else tmp_path)
    with pytest.raises(OSError, match="no answer"):
        catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    left = [path for path in (tmp_path / "db" / "t" / "_text").rglob("*.json") if path.name != "table.json"]
    assert bool(left) == (late or there)
    monkeypatch.undo()
    catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    assert len(list((tmp_path / "db" / "t" / "_text").glob("*/0*.json"))) == (2 if late and not there else 1)


def test_how_large_a_state_is_in_memory(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    info = lake.catalog.load_table(PATH)
    document = (lake.table.manifests().path(0)).stat().st_size
    assert lake.catalog.handle_bytes(info) == 8 * document
    assert lake.catalog.handle_bytes(info.with_handle(None)) is None
    for error in (OSError("gone"), spi.StorageError("gone")):

        def fails(*_: Any, error: Exception = error) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(LocalStore, "sizes", fails)
            assert lake.catalog.handle_bytes(info) is None
    lake.table.manifests().path(0).unlink()
    assert lake.catalog.handle_bytes(info) is None


def test_where_a_table_is_on_a_disk(lake: Lake, tmp_path: Path) -> None:
    assert lake.catalog.location(PATH) == tmp_path / "lake" / "db" / "t"
    with pytest.raises(spi.FeatureNotSupported):
        kit.ManifestCatalog(TextTable, Buckets(tmp_path)).location(PATH)


def test_a_version_that_is_known_is_told_again_without_reading(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, read = lake.catalog, LocalStore.read
    known = catalog.table_version(PATH)
    assert known is not None
    reads: list[str] = []

    def counted(store: LocalStore, path: str) -> bytes:
        reads.append(path)
        return read(store, path)

    monkeypatch.setattr(LocalStore, "read", counted)
    assert catalog.table_version(PATH, known) == known
    assert reads == []
    lake.round(0, 1)
    after = catalog.table_version(PATH, known)
    assert after not in (None, known)
    assert catalog.table_version(PATH) == after


def test_a_version_is_told_only_of_what_is_in_place(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests, catalog = lake.table.manifests(), lake.catalog
    first = manifests.version()
    put(manifests, following(manifests.read(0)))
    assert manifests.version() is None
    lake.table.open()
    assert manifests.version() not in (None, first)
    (manifests.folder / "head.json").unlink()
    assert manifests.version() is None
    assert catalog.table_version(spi.TablePath("db", "missing")) is None
    for error in (OSError("busy"), spi.StorageError("busy"), spi.CorruptTable("damaged")):

        def fails(*_: Any, error: Exception = error) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(LocalStore, "identity", fails)
            assert catalog.table_version(PATH, "x") is None

    def is_broken(*_: Any) -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(LocalStore, "identity", is_broken)
    with pytest.raises(KeyError):
        catalog.table_version(PATH, "x")


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: [],
        lambda parts: parts[:5],
        lambda parts: parts[:1],
        lambda parts: [*parts, "more"],
        lambda parts: ["../x", *parts[1:]],
        lambda parts: [parts[0], "one", *parts[2:]],
        lambda parts: [parts[0], "-1", *parts[2:]],
        lambda parts: [*parts[:3], "other", *parts[4:]],
        lambda parts: [*parts[:4], "other", *parts[5:]],
        lambda parts: [*parts[:5], "other"],
    ],
)
def test_a_version_of_something_else(lake: Lake, change: Any) -> None:
    manifests = lake.table.manifests()
    known = manifests.version()
    assert known is not None
    assert ManifestLog.is_version(known, manifests.place, manifests.layout)
    put(manifests, following(manifests.read(0)))
    assert not ManifestLog.is_version(known, manifests.place, manifests.layout), "another writer is at work"
    manifests.path(1).unlink()
    assert ManifestLog.is_version(known, manifests.place, manifests.layout)
    assert not ManifestLog.is_version("/".join(change(known.split("/"))), manifests.place, manifests.layout)


def test_a_plan_of_a_state_that_was_seen_looks_at_nothing_newer(lake: Lake) -> None:
    lake.round(0, 1)
    state = lake.table.open()
    lake.round(1, 2)
    plan = lake.source.plan(spi.ScanRequest(state=state))
    assert (plan.snapshot_id, sum(split.rows or 0 for split in plan.splits)) == (1, 1)
    snapshot = lake.source._snapshot(spi.ScanRequest(state=state))
    assert snapshot.settled is False, "its files may be moved meanwhile, or not be moved yet"
    assert lake.source._snapshot(spi.ScanRequest()).settled is True
    put(state.manifests, following(state.manifests.head()[0]))
    assert lake.source._snapshot(spi.ScanRequest()).settled is False


def test_a_state_is_looked_up_where_a_table_has_none(lake: Lake) -> None:
    storage = kit.ManifestStorage(lake.catalog.warehouse, TextTable, type(lake.source), _no_writer)  # type: ignore[arg-type]
    info = lake.catalog.load_table(PATH)
    assert storage.state(info) is info.handle
    assert [each.snapshot_id for each in storage.history(info).snapshots(5)] == [0]
    assert storage.changes(info).versions().latest == 1
    assert storage.source(info).plan(spi.ScanRequest()).splits == ()
    lake.round(0, 1)
    fresh = storage.state(info.with_handle(None))
    assert (fresh.snapshot_id, fresh.metadata) == (1, lake.info.descriptor)
    lake.round(1, 2)
    assert storage.state(info.with_handle(None)).snapshot_id == 2


def _no_writer(*_: Any) -> Any:
    raise AssertionError("no writer is made")


def test_an_alteration_is_of_the_columns_that_it_was_decided_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process adds a column after the look: the manifest that is made of the look is then not the next one."""
    look = TextTable.open

    def with_a_rival(table: TextTable) -> Any:
        state = look(table)
        monkeypatch.setattr(TextTable, "open", look)
        lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("theirs", pa.int64()))])
        return state

    monkeypatch.setattr(TextTable, "open", with_a_rival)
    altered = lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("ours", pa.int64()))])
    assert altered.schema.names == ["id", "theirs", "ours"]
    assert [manifest.kind for manifest in map(lake.table.manifests().read, (1, 2))] == ["alter", "alter"]


def test_a_description_of_another_manifest_is_not_taken(lake: Lake) -> None:
    lake.round(0, 1)
    manifests = lake.table.manifests()
    first = manifests.read(0)
    put(manifests, replace(first, table_uuid="0" * 32))
    with pytest.raises(spi.CorruptTable, match="the file is another manifest"):
        lake.table.open()
    manifests.path(0).write_bytes(encode({"version": 1}))
    with pytest.raises(spi.CorruptTable):
        lake.table.open()


def test_the_folders_of_a_new_table_are_made_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []
    make = LocalStore.make_folders

    def recorded(store: LocalStore, *paths: str) -> None:
        made.append(tuple(path.rpartition("/")[2] for path in paths))
        make(store, *paths)

    monkeypatch.setattr(LocalStore, "make_folders", recorded)
    Lake(tmp_path, Staging)
    assert made == [("rollups", "_in")], "where the first is not there, and the second is, something deleted it"


class Staging(TextTable):
    layout: ClassVar = replace(TextTable.layout, staging="_in")


def test_no_document_is_kept_where_a_look_is_a_request(bucket: TextTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask what a file is costs there as much as to read it."""
    manifests = bucket.manifests()
    monkeypatch.setattr(kept, "LARGE", 1)

    def asked(*_: Any) -> str:
        raise AssertionError("it is asked what a document is, which is a request")

    monkeypatch.setattr(Bucket, "identity", asked)
    assert manifests.read(0) == manifests.read(0)
    bucket.store.replace(manifests.name(0), b"damaged")
    with pytest.raises(spi.CorruptTable):
        manifests.read(0)
