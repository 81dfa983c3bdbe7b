"""What the parts of a table in S3 ask of a store, and what they make of its answers, value by value: over a store in
memory, whose answers a test can change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from laketier.kit.manifests import FileEntry
from laketier.spi import (
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleTable,
    OutsideTable,
    Passthrough,
    StorageError,
    TableNotFound,
)
from laketier_localfile.layout import base_name, staged_path, superseded_path
from laketier_localfile.s3 import client, data, errors, store
from laketier_localfile.s3 import settle as settling
from laketier_localfile.s3.client import Client, Trust
from laketier_localfile.s3.data import KEPT, Kept, RangeFile
from laketier_localfile.s3.lying import BucketPlace
from laketier_localfile.s3.store import S3Store, S3Warehouse

MANIFESTS = "_laketier_manifests"
PART = base_name(0, None, "a" * 32, 0)


class Told(Exception):
    """An answer of the store."""


Told.__module__ = "obstore.exceptions"


class Library:
    """The library. ``asked``: each request, and the key that it names first. A request fails while ``fails`` has errors
    for it, after its effect where ``lands``."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.fails: dict[str, list[Exception]] = {}
        self.lands = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(obstore, name)

        def asked(*given: Any, **more: Any) -> Any:
            self.asked.append((name, given[1] if len(given) > 1 else None))
            failures = self.fails.get(name, [])
            if failures:
                if self.lands:
                    real(*given, **more)
                raise failures.pop(0)
            return real(*given, **more)

        return asked


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    for module in (store, data):
        monkeypatch.setattr(module, "library", lambda: found)
    monkeypatch.setattr(store, "_WAITS", (0.0, 0.0))
    return found


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def bucket(library: Library, memory: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> S3Store:
    """A table's place at the prefix ``lake/db/t``."""
    known = Client(memory, memory, Trust(holds=True))
    monkeypatch.setattr(store, "client_of", lambda *_: known)
    return S3Store("b", "lake/db/t", Passthrough())


def put(memory: MemoryStore, *keys: str, bytes: bytes = b"x") -> None:
    for key in keys:
        obstore.put(memory, f"lake/db/t/{key}", bytes)


def keys(memory: MemoryStore) -> set[str]:
    return {each["path"] for page in obstore.list(memory) for each in page}


def answer(status: int, code: str = "") -> Told:
    return Told(f"status code: {status} <Code>{code}</Code>")


# -- documents ---------------------------------------------------------------------------------------------------------


def test_a_document_is_taken_once_and_replaced_at_will(bucket: S3Store, memory: MemoryStore) -> None:
    bucket.create("m/0.json", b"one")
    bucket.create("m/0.json", b"one")  # an answer that was lost
    with pytest.raises(FileExistsError, match=r"another document is there: s3://b/lake/db/t/m/0\.json"):
        bucket.create("m/0.json", b"two")
    assert bucket.read("m/0.json") == b"one"
    bucket.replace("m/0.json", b"three")
    assert bucket.read("m/0.json") == b"three"
    assert keys(memory) == {"lake/db/t/m/0.json"}
    assert (bucket.exists("m/0.json"), bucket.exists("m/1.json")) == (True, False)
    with pytest.raises(FileNotFoundError, match="there is no object"):
        bucket.read("m/1.json")


@pytest.mark.parametrize("lands", [False, True])
@pytest.mark.parametrize("status", [500, 503, 409, 412, 408, 429])
def test_a_put_that_may_be_sent_again_is(bucket: S3Store, library: Library, status: int, lands: bool) -> None:
    library.fails["put"] = [answer(status)] * 2
    library.lands = lands
    bucket.create("m/0.json", b"one")
    assert bucket.read("m/0.json") == b"one"
    assert [name for name, _ in library.asked].count("put") == (1 if lands else 3)


@pytest.mark.parametrize("status", [400, 403, 404, 501])
def test_a_put_that_is_refused_for_good_is_not_sent_again(bucket: S3Store, library: Library, status: int) -> None:
    library.fails["put"] = [answer(status, "Some")] * 3
    with pytest.raises(StorageError, match="while publishing a document of the table"):
        bucket.create("m/0.json", b"one")
    assert [name for name, _ in library.asked] == ["put", "get"]


def test_a_put_that_fails_each_time_is_told_as_unknown(bucket: S3Store, library: Library) -> None:
    library.fails["put"] = [answer(500)] * 9
    with pytest.raises(StorageError, match="the store failed while publishing"):
        bucket.create("m/0.json", b"one")
    assert [name for name, _ in library.asked] == ["put", "get"] * 3


def test_what_names_an_object_changes_with_it(bucket: S3Store, library: Library) -> None:
    assert bucket.identity("d") is None
    bucket.replace("d", b"abc")
    first = bucket.identity("d")
    assert first is not None
    assert first == bucket.identity("d")
    assert "/" not in first
    assert first.startswith("3.")
    bucket.replace("d", b"abd")
    assert bucket.identity("d") != first
    library.fails["head"] = [answer(500), MemoryError()]
    assert bucket.identity("d") is None
    with pytest.raises(MemoryError):
        bucket.identity("d")


def test_a_store_that_is_not_trusted_is_asked_again(bucket: S3Store) -> None:
    assert bucket._client.trust.holds
    bucket.distrust()
    assert not bucket._client.trust.holds


# -- files -------------------------------------------------------------------------------------------------------------


def test_files_are_those_below_the_prefix(bucket: S3Store, memory: MemoryStore) -> None:
    put(memory, "k=1/a", "k=1/b", "c")
    obstore.put(memory, "lake/db/t2/d", b"other")
    obstore.put(memory, "lake/db/td", b"other")
    assert sorted(file.path for file in bucket.files()) == ["c", "k=1/a", "k=1/b"]
    assert sorted(file.path for file in bucket.files("k=1")) == ["k=1/a", "k=1/b"]
    assert list(bucket.files("nothing")) == []


def test_a_file_says_when_it_came_and_how_large_it_is(bucket: S3Store, memory: MemoryStore) -> None:
    put(memory, "k/a", bytes=b"12345")
    [file] = bucket.files("k")
    [listed] = bucket.objects("k")
    moment = int(obstore.head(memory, "lake/db/t/k/a")["last_modified"].timestamp() * 1000)
    assert (file.bytes, file.modified_at, file.named_at) == (5, moment, moment)
    assert listed.identity == (5, moment, listed.tag)
    assert listed.tag
    assert bucket.sizes(["k/a", "k/b"]) == {"k/a": 5, "k/b": None}


def test_a_bucket_without_a_prefix(bucket: S3Store, memory: MemoryStore) -> None:
    whole = S3Store("b", "", Passthrough())
    put(memory, "a")
    assert [file.path for file in whole.files()] == ["lake/db/t/a"]
    assert whole.directly_in("") == ([], ["lake"])
    assert whole.root == "s3://b"
    assert whole.where("x") == "s3://b/x"
    assert bucket.where("") == "s3://b/lake/db/t"


def test_names_are_those_directly_in_a_folder(bucket: S3Store, memory: MemoryStore) -> None:
    put(memory, "m/0", "m/1", "m/rollups/2")
    assert sorted(bucket.names("m")) == ["0", "1"]
    assert bucket.directly_in("") == ([], ["m"])
    assert bucket.directly_in("m")[1] == ["rollups"]
    assert bucket.names("nothing") == []


def test_deletions_are_a_thousand_by_one_request(
    bucket: S3Store, memory: MemoryStore, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_DELETED_AT_ONCE", 2)
    put(memory, "a", "b", "c", "d", "e")
    bucket.delete_all(["a", "b", "c", "d"])
    assert keys(memory) == {"lake/db/t/e"}
    assert [name for name, _ in library.asked].count("delete") == 2
    assert bucket.delete("e")
    assert not keys(memory)
    bucket.delete_all([])
    library.fails["delete"] = [answer(403)]
    with pytest.raises(StorageError, match="deleting files of the table"):
        bucket.delete("e")


def test_a_copy_of_nothing_is_told(bucket: S3Store, memory: MemoryStore, library: Library) -> None:
    put(memory, "a", bytes=b"rows")
    assert bucket.copy("a", "b")
    assert bucket.read("b") == b"rows"
    assert not bucket.copy("c", "d")
    library.fails["copy"] = [answer(403)]
    with pytest.raises(StorageError, match="copying a file of the table"):
        bucket.copy("a", "b")


def test_what_is_left_of_a_creation_that_failed_stays_where_it_can_not_be_deleted(
    bucket: S3Store, memory: MemoryStore, library: Library
) -> None:
    put(memory, "m/0", "m/1", "n/0")
    library.fails["delete"] = [answer(403)]
    bucket.remove_below("m")
    assert len(keys(memory)) == 3, "orphan collection finds it"
    bucket.remove_below("m")
    assert keys(memory) == {"lake/db/t/n/0"}


def test_the_time_of_the_store_is_that_of_a_new_object(bucket: S3Store, memory: MemoryStore, library: Library) -> None:
    now = bucket.now()
    assert now > 1_700_000_000_000
    assert not keys(memory)
    library.fails["head"] = [FileNotFoundError("gone")]
    with pytest.raises(StorageError, match="does not tell its time"):
        bucket.now()


def test_a_path_leads_out_of_no_table(bucket: S3Store) -> None:
    for look in (bucket.read, bucket.exists, bucket.refuse_links, lambda path: bucket.copy(path, "a")):
        with pytest.raises(OutsideTable):
            look("../u/x")
    bucket.refuse_links("")
    bucket.refuse_links("a/b")


def test_others_in_a_tables_place(bucket: S3Store, memory: MemoryStore) -> None:
    bucket.refuse_others(frozenset({MANIFESTS}))
    put(memory, f"{MANIFESTS}/x")
    bucket.refuse_others(frozenset({MANIFESTS}))
    put(memory, "notes.txt")
    with pytest.raises(IncompatibleTable, match="it contains notes"):
        bucket.refuse_others(frozenset({MANIFESTS}))
    with pytest.raises(IncompatibleTable, match=MANIFESTS):
        bucket.refuse_others(frozenset({"notes.txt"}))


# -- drops -------------------------------------------------------------------------------------------------------------

TABLE = f"{MANIFESTS}/table.json"


def test_a_drop_takes_the_tables_file_first_and_then_its_head(
    bucket: S3Store, memory: MemoryStore, library: Library
) -> None:
    put(memory, TABLE, f"{MANIFESTS}/u/head.json", f"{MANIFESTS}/u/0.json", "a.parquet")
    obstore.put(memory, "lake/db/u/a", b"another table's")
    bucket.drop(MANIFESTS, TABLE)
    deleted = [[key.removeprefix("lake/db/t/") for key in keys] for name, keys in library.asked if name == "delete"]
    assert deleted[:2] == [[TABLE], [f"{MANIFESTS}/u/head.json"]]
    assert sorted(deleted[2]) == [f"{MANIFESTS}/u/0.json", "a.parquet"]
    assert len(deleted) == 3
    assert keys(memory) == {"lake/db/u/a"}


def test_a_drop_of_a_table_that_is_another_one_by_now(
    bucket: S3Store, memory: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(memory, TABLE, "a.parquet")
    listed = S3Store.files

    def changed(self: S3Store, folder: str = "") -> Iterator[Any]:
        yield from listed(self, folder)
        put(memory, TABLE, bytes=b"another")

    monkeypatch.setattr(S3Store, "files", changed)
    with pytest.raises(FileNotFoundError, match="another table's by now"):
        bucket.drop(MANIFESTS, TABLE)
    assert len(keys(memory)) == 2


def test_a_drop_that_was_cut_off_is_ended(bucket: S3Store, memory: MemoryStore) -> None:
    put(memory, f"{MANIFESTS}/u/0.json", "a.parquet")
    bucket.delete_rest(MANIFESTS, TABLE)
    assert not keys(memory)
    put(memory, TABLE, "a.parquet")
    with pytest.raises(FileNotFoundError, match="another table's by now"):
        bucket.delete_rest(MANIFESTS, TABLE)
    assert len(keys(memory)) == 2


def test_no_drop_takes_a_table_inside_along(bucket: S3Store, memory: MemoryStore) -> None:
    put(memory, TABLE, f"inner/{TABLE}", "a.parquet")
    for drop in (bucket.drop, bucket.delete_rest):
        with pytest.raises(IncompatibleTable, match="another table is inside") as told:
            drop(MANIFESTS, TABLE)
        assert told.value.where == "s3://b/lake/db/t/inner"
    assert len(keys(memory)) == 3


# -- requests at once --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_answers_come_in_the_order_of_the_questions(bucket: S3Store, count: int) -> None:
    assert bucket.at_once(lambda one: one * 2, range(count)) == [one * 2 for one in range(count)]
    assert bucket.all_of([lambda one=one: one for one in range(count)]) == list(range(count))


# -- a data file that is read ------------------------------------------------------------------------------------------


def ranges(client: Any, size: int, pieces: dict[int, bytes] | None = None) -> RangeFile:
    return RangeFile(client, ["k"], "w", Kept(size, pieces or {}))


def test_a_file_is_read_from_its_beginning_on() -> None:
    file = ranges(None, 6, {0: b"abcdef"})
    assert (file.tell(), file.size()) == (0, 6)
    assert (file.read(2), file.tell()) == (b"ab", 2)
    assert (file.read(), file.tell()) == (b"cdef", 6)
    assert (file.read(), file.read(5), file.tell()) == (b"", b"", 6)
    assert (file.seek(1), file.read(3)) == (1, b"bcd")
    assert (file.seek(-2, 2), file.read(-1)) == (4, b"ef")
    assert (file.seek(2), file.seek(1, 1), file.read(None)) == (2, 3, b"def")
    assert (file.seek(9), file.read(1)) == (9, b"")
    assert (file.readable(), file.writable(), file.seekable(), file.closed) == (True, False, True, False)
    file.flush()
    file.close()
    assert file.closed


def test_pieces_that_are_kept() -> None:
    kept = Kept(10, {0: b"abc", 7: b"xyz"})
    asked = {(0, 3): b"abc", (1, 1): b"b", (0, 4): None, (7, 3): b"xyz", (8, 2): b"yz", (8, 3): None, (6, 1): None}
    assert {each: kept.get(*each) for each in asked} == asked
    kept.keep(3, b"def")
    assert (kept.get(3, 3), kept.get(0, 1), kept.get(9, 1)) == (b"def", None, b"z"), "the end stays"


def test_a_larger_piece_is_asked_for_the_longer_reads_follow(
    memory: MemoryStore, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "KEPT", 4)
    monkeypatch.setattr(data, "_LONGEST_READ", 8)
    content = bytes(range(64))
    obstore.put(memory, "k", content)
    asked: list[Any] = []
    real = obstore.get

    def get(*given: Any, options: Any) -> Any:
        asked.append(options["range"])
        return real(*given, options=options)

    library.get = get  # type: ignore[attr-defined]
    file = RangeFile(Client(memory, memory), ["k"], "w")
    assert file.size() == 64
    read = [file.read(2) for _ in range(14)]
    assert b"".join(read) == content[:28]
    assert asked == [{"suffix": 4}, (0, 4), (4, 12), (12, 20), (20, 28)]
    asked.clear()
    assert file.seek(40) == 40
    assert (file.read(1), file.seek(60), file.read(4)) == (content[40:41], 60, content[60:])
    assert asked == [(40, 44)], "not again as much, and the end is kept"
    asked.clear()
    file.seek(30)
    assert file.read(20) == content[30:50]
    assert asked == [(30, 50)], "as much as was asked for"
    asked.clear()
    file.seek(58)
    assert file.read(3) == content[58:61]
    assert asked == [(58, 62)]


def test_a_file_that_became_another_is_told(memory: MemoryStore, library: Library) -> None:
    obstore.put(memory, "k", b"abc")
    file = ranges(Client(memory, memory), 5)
    with pytest.raises(CorruptTable, match="other bytes than when it was opened: 3 for 5"):
        file.read(5)


def test_a_file_without_bytes_and_a_store_that_has_no_range_of_it(memory: MemoryStore, library: Library) -> None:
    obstore.put(memory, "k", b"")
    library.fails["get"] = [answer(416, "InvalidRange")]
    file = RangeFile(Client(memory, memory), ["k"], "w")
    assert (file.size(), file.read()) == (0, b"")
    obstore.put(memory, "k", b"abc")
    library.fails["get"] = [answer(500)]
    with pytest.raises(StorageError, match="reading a data file"):
        RangeFile(Client(memory, memory), ["k"], "w")
    library.fails["get"], library.fails["head"] = [answer(403, "AccessDenied")], [answer(403)]
    with pytest.raises(StorageError, match="403 AccessDenied"):
        RangeFile(Client(memory, memory), ["k"], "w")


def test_a_file_is_looked_for_where_it_moves_to(memory: MemoryStore, library: Library) -> None:
    obstore.put(memory, "third", b"x" * 10)
    file = RangeFile(Client(memory, memory), ["first", "second", "third"], "w", Kept(10, {}))
    assert file.read(4) == b"xxxx"
    assert [key for _, key in library.asked] == ["first", "second", "third"]
    obstore.rename(memory, "third", "first")
    file = RangeFile(Client(memory, memory), ["third", "first"], "w")
    assert file.read() == b"x" * 10
    with pytest.raises(FileNotFoundError, match="there is no object"):
        RangeFile(Client(memory, memory), ["nowhere", "nor"], "w")


# -- a data file that is written ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[], [1], [KEPT, 1], [KEPT // 2] * 7, [3 * KEPT + 5], [KEPT - 1, 2, 2 * KEPT]])
def test_an_upload_knows_its_beginning_and_its_end(
    bucket: S3Store, memory: MemoryStore, library: Library, sizes: list[int]
) -> None:
    upload = bucket.upload("k")
    written = b""
    for number, size in enumerate(sizes):
        piece = bytes([number + 1]) * size
        assert upload.write(piece) == size
        written += piece
        assert upload.tell() == len(written)
    assert not keys(memory), "nothing is to be seen of it yet"
    assert not upload.closed
    upload.close()
    upload.close()
    assert upload.closed
    assert bucket.read("k") == written
    kept = upload.kept()
    size = len(written)
    assert kept.size == size
    for start, length in ((0, min(size, KEPT)), (max(0, size - KEPT), min(size, KEPT)), (size, 0)):
        assert kept.get(start, length) == written[start : start + length]
    if size > 2 * KEPT:
        assert kept.get(KEPT, 1) is None
    library.asked.clear()
    assert bucket.open("k", kept=kept).read(3) == written[:3]
    assert not library.asked
    assert (upload.readable(), upload.writable(), upload.seekable()) == (False, True, False)


def test_an_upload_that_is_given_up_leaves_nothing(bucket: S3Store, memory: MemoryStore) -> None:
    upload = bucket.upload("k")
    upload.write(b"some")
    upload.give_up()
    upload.give_up()
    upload.close()
    assert not keys(memory)
    other = bucket.upload("k")
    other.write(b"some")
    other.close()
    other.give_up()
    assert bucket.read("k") == b"some"


def test_a_file_that_is_fetched_as_a_whole(
    bucket: S3Store, memory: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_FETCHED", 4)
    put(memory, "b", bytes=b"0123456789")
    with bucket.fetch("a", "b") as file:
        assert (file.tell(), file.size(), file.read()) == (0, 10, b"0123456789")


# -- warehouses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("warehouse", "bucket_and_prefix"),
    [("s3://b", ("b", "")), ("s3://b/", ("b", "")), ("s3a://b/x/y/", ("b", "x/y")), ("s3://b//x", ("b", "x"))],
)
def test_a_warehouse_in_s3(warehouse: str, bucket_and_prefix: tuple[str, str]) -> None:
    found = S3Warehouse.of(warehouse, Passthrough())
    assert (found.bucket, found.prefix) == bucket_and_prefix


@pytest.mark.parametrize("warehouse", ["s3://", "s3:///x", "s3://k:s@b/x", "s3://b/x?y", "s3://b/x#y", "s3://b/../x"])
def test_a_warehouse_that_names_no_place(warehouse: str) -> None:
    with pytest.raises(ConfigError, match=r"s3://bucket/prefix|names no bucket|can't hold tables"):
        S3Warehouse.of(warehouse, Passthrough())


def test_a_warehouse_elsewhere() -> None:
    with pytest.raises(FeatureNotSupported, match="tables on gs://"):
        S3Warehouse.of("gs://b/x", Passthrough())


@pytest.mark.parametrize("prefix", ["", "lake"])
def test_the_tables_of_a_warehouse(bucket: S3Store, memory: MemoryStore, prefix: str) -> None:
    start = f"{prefix}/" if prefix else ""
    for key in ("db/t/s/table.json", "db/u/other", "eb/v/s/table.json", "loose", "db/loose"):
        obstore.put(memory, f"{start}{key}", b"")
    warehouse = S3Warehouse("b", prefix, Passthrough())
    assert sorted(warehouse.tables("s/table.json")) == [("db", "t"), ("eb", "v")]
    assert list(warehouse.tables("s/table.json", "eb")) == [("eb", "v")]
    assert list(warehouse.tables("s/table.json", "nothing")) == []
    there = warehouse.table("db", "t")
    assert (there.bucket, there.prefix) == ("b", f"{start}db/t")
    assert S3Warehouse.table_at(there.root, Passthrough()) == there


# -- files that a commit moves -----------------------------------------------------------------------------------------


@pytest.fixture
def entry() -> FileEntry:
    return FileEntry(f"k=1/{PART}", 3, 1, 0)


def test_a_published_file_goes_into_its_place(bucket: S3Store, memory: MemoryStore, entry: FileEntry) -> None:
    put(memory, staged_path(entry.path), bytes=b"rows")
    settling._promote(bucket, [entry])
    assert keys(memory) == {f"lake/db/t/{entry.path}"}
    settling._promote(bucket, [entry])  # who comes later
    settling._retire(bucket, [entry.path])
    assert keys(memory) == {f"lake/db/t/{superseded_path(entry.path)}"}
    settling._promote(bucket, [entry])
    settling._retire(bucket, [entry.path])
    assert bucket.read(superseded_path(entry.path)) == b"rows"


def test_a_published_file_that_is_nowhere(
    bucket: S3Store, memory: MemoryStore, entry: FileEntry, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CorruptTable, match="a published data file with 3 rows is lost"):
        settling._promote(bucket, [entry])
    settling._retire(bucket, [entry.path])
    assert "was to be superseded and is missing" in caplog.text
    caplog.clear()
    put(memory, superseded_path(entry.path))
    settling._retire(bucket, [entry.path])
    assert not caplog.text
    staged, superseded = staged_path(entry.path), superseded_path(entry.path)
    assert settling.places(entry.path) == (entry.path, staged, entry.path, superseded)


# -- files that lie there ----------------------------------------------------------------------------------------------


@pytest.fixture
def place(bucket: S3Store) -> BucketPlace:
    return BucketPlace(bucket)


def test_what_lies_below_a_prefix(place: BucketPlace, memory: MemoryStore) -> None:
    assert not place.is_there()
    with pytest.raises(TableNotFound):
        place.files()
    put(memory, "a.parquet", "k=1/b.parquet", "k=1/_hidden.parquet", "_k=2/c.parquet", ".x/d.parquet", "e.txt")
    assert place.is_there()
    found = place.files()
    assert set(found.files) == {"a.parquet", "k=1/b.parquet"}
    [known] = [each.identity for each in place.bucket.objects() if each.path == "a.parquet"]
    assert found.files["a.parquet"] == known
    assert set(found.left_out) == {"_k=2", "e.txt"}
    assert place.names("k=1") == ["_hidden.parquet", "b.parquet"]


@pytest.mark.parametrize(
    ("key", "folder"),
    [("_delta_log/0.json", ""), ("in/_delta_log/0.json", "/in"), ("in/metadata/v1.metadata.json", "/in")],
)
def test_a_table_of_others_lies_there(place: BucketPlace, memory: MemoryStore, key: str, folder: str) -> None:
    put(memory, key, "a.parquet")
    with pytest.raises(IncompatibleTable, match="the folder is a table of") as told:
        place.files()
    assert told.value.where == f"s3://b/lake/db/t{folder}"


def test_a_folder_within_a_table(place: BucketPlace, memory: MemoryStore) -> None:
    place.refuse_within_table()
    put(memory, "_delta_log/0.json")
    place.refuse_within_table()  # that is the folder itself
    obstore.put(memory, "lake/_delta_log/0.json", b"")
    with pytest.raises(IncompatibleTable, match="within a table") as told:
        place.refuse_within_table()
    assert "s3://b/lake is a table of Delta Lake" in str(told.value.why)
    obstore.put(memory, "_delta_log/0.json", b"")
    obstore.delete(memory, "lake/_delta_log/0.json")
    with pytest.raises(IncompatibleTable, match="within a table"):
        place.refuse_within_table()


@pytest.mark.parametrize(
    ("keys_there", "left"),
    [
        ([], None),
        (["a.parquet"], None),
        ([staged_path(PART)], None),
        ([f"{MANIFESTS}/{'0' * 32}.lost/0.json"], f"{MANIFESTS}/{'0' * 32}.lost/0.json"),
        ([f"{MANIFESTS}/u/head.json"], None),
        ([f"{MANIFESTS}/u/head.json", f"{MANIFESTS}/u/{1:020}.json"], f"{MANIFESTS}/u/head.json"),
        ([f"{MANIFESTS}/u/head.json", f"{MANIFESTS}/u/{0:020}.json"], f"{MANIFESTS}/u/head.json"),
        ([f"k=1/{PART}"], f"k=1/{PART}"),
    ],
)
def test_what_is_left_of_a_table(
    place: BucketPlace, memory: MemoryStore, keys_there: list[str], left: str | None
) -> None:
    put(memory, *keys_there)
    assert place.left_of_table() == left
    assert place.end_drop() is (left is not None)
    assert bool(keys(memory)) is (left is None and bool(keys_there))


def test_what_was_about_to_be_taken_away(place: BucketPlace, memory: MemoryStore) -> None:
    put(memory, PART, "a.parquet", superseded_path(PART))
    assert list(place.superseded(place.files())) == [PART]


def test_manifests_are_moved_aside(place: BucketPlace, memory: MemoryStore, library: Library) -> None:
    uuid = "0" * 32
    put(memory, TABLE, f"{MANIFESTS}/{uuid}/0.json", f"{MANIFESTS}/{uuid}/rollups/1.json", "a.parquet")
    put(memory, f"{MANIFESTS}/{uuid}.lost/9.json")
    place.move_aside([uuid, "table.json"])
    home = f"lake/db/t/{MANIFESTS}"
    assert keys(memory) == {
        "lake/db/t/a.parquet",
        f"{home}/table.json.lost",
        f"{home}/{uuid}.1.lost/0.json",
        f"{home}/{uuid}.1.lost/rollups/1.json",
        f"{home}/{uuid}.lost/9.json",
    }
    copied = [key for name, key in library.asked if name == "copy"]
    assert copied[0] == f"{home}/table.json", "from then on nobody publishes"


# -- settings and errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage", "of_s3", "of_client"),
    [
        ({}, {}, {}),
        ({"AWS_REGION": "r", "access-key": "k", "token": "t"},
         {"region": "r", "access_key_id": "k", "session_token": "t"}, {}),
        ({"endpoint_url": "http://h"}, {"endpoint": "http://h"}, {"allow_http": "true"}),
        ({"endpoint": "http://h", "allow_http": "false"}, {"endpoint": "http://h"}, {"allow_http": "false"}),
        ({"endpoint": "https://h", "timeout": "5s"}, {"endpoint": "https://h"}, {"timeout": "5s"}),
    ],
)  # fmt: skip
def test_settings_by_their_names(storage: dict[str, str], of_s3: dict[str, str], of_client: dict[str, str]) -> None:
    assert client.settings_of(storage) == (of_s3, of_client)


@pytest.mark.parametrize(
    ("storage", "told"),
    [({"bucket": "b"}, "bucket can't be set"), ({"AWS_CONDITIONAL_PUT": "x"}, "can't be set"),
     ({"endpoint": "h:9000"}, "which is no URL"), ({"endpoint": "ftp://h"}, "which is no URL")],
)  # fmt: skip
def test_settings_that_are_refused(storage: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        client.settings_of(storage)


def test_a_library_that_does_not_start_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def imported(name: str, *more: Any) -> Any:
        if name == "obstore":
            raise RuntimeError("its own error")
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", imported)
    with pytest.raises(RuntimeError, match="its own error"):
        client.library()


@pytest.mark.parametrize(
    ("status", "final", "taken"),
    [(200, False, False), (299, False, False), (300, True, False), (304, False, True), (400, True, False),
     (404, True, False), (408, False, False), (409, False, True), (412, False, True), (429, False, False),
     (499, True, False), (500, False, False), (501, True, False), (503, False, False)],
)  # fmt: skip
def test_whether_asking_again_would_help(status: int, final: bool, taken: bool) -> None:
    assert (errors.is_final(answer(status)), errors.is_taken(answer(status))) == (final, taken)
    assert errors.status_of(answer(status)) == status


def test_an_answer_without_a_status_may_be_another_one_next_time() -> None:
    assert not errors.is_final(Told("dns error"))
    assert errors.is_final(Told("Received redirect without LOCATION"))
    assert errors.status_of(Told("dns error")) is None
    assert errors.code_of(Told("none")) is None


TRANSLATED: list[tuple[Exception, str, str]] = [
    (answer(403, "AccessDenied"), "the store refused while x", "it answered 403 AccessDenied"),
    (answer(403), "the store refused while x", "it answered 403 AccessDenied"),
    (answer(301), "the store refused while x", "it answered 301 PermanentRedirect"),
    (answer(500, "InternalError"), "the store failed while x", "it answered 500 InternalError"),
    (Told("<Code>Slow</Code><Message>wait</Message> status code: 503"), "the store failed", "503 Slow: wait"),
    (Told("dns error"), "the store can't be reached while x", "dns error"),
    (Told("anything"), "the store can't be reached while x", "None"),
    (Told('invalid path: Path "a//b" contained'), "has a key that is no path", "a//b"),
    (Told("Received redirect without LOCATION"), "sent us elsewhere while x", "another region"),
    (FileNotFoundError("<Code>NoSuchBucket</Code> status code: 404"), "the store refused", "404 NoSuchBucket"),
    (OSError("status code: 500"), "the store failed", "500"),
]


@pytest.mark.parametrize(("error", "what", "why"), TRANSLATED)
def test_what_is_told_of_an_answer(error: Exception, what: str, why: str) -> None:
    found = errors.translated(error, "x", "s3://b/k")
    assert isinstance(found, StorageError)
    assert found.where == "s3://b/k"
    assert what in found.what
    assert why in str(found.why)


@pytest.mark.parametrize(
    ("status", "code", "fix"),
    [(409, "New", "Run it again"), (412, "New", "Run it again"), (429, "New", "Run it again"),
     (408, "New", "Run it again"), (500, "New", "Run it again"), (418, "New", "manual of the store"),
     (403, "AccessDenied", "s3:ListBucket"), (401, "", "s3:ListBucket"), (400, "", "may have expired"),
     (301, "", "region"), (404, "NoSuchBucket", "Make the bucket"), (503, "", "Run it again")],
)  # fmt: skip
def test_what_to_do_about_an_answer(status: int, code: str, fix: str) -> None:
    error = answer(status, code) if code else Told(f"status code: {status}")
    found = errors.translated(error, "x", "w")
    assert isinstance(found, StorageError)
    assert fix in str(found.fix)


def test_values_of_settings_are_told_to_nobody() -> None:
    storage = Passthrough({"secret_access_key": "abcd", "region": "eu", "x": "abc"})
    assert client._without_values("abcd is not eu or abc: abcd", storage) == "*** is not eu or abc: ***"


@pytest.mark.parametrize(("tag", "told"), [('"a/b"', "a_b"), ("a", "a"), (None, "")])
def test_a_tag_is_part_of_what_names_an_object(
    bucket: S3Store, library: Library, monkeypatch: pytest.MonkeyPatch, tag: str | None, told: str
) -> None:
    found = {"last_modified": datetime.fromtimestamp(16, UTC), "size": 10, "e_tag": tag}
    monkeypatch.setattr(S3Store, "_head", lambda *_: found)
    assert bucket.identity("d") == f"a.3e80.{told}"


def test_what_is_not_the_stores_passes() -> None:
    for error in (ValueError("x"), OSError(28, "no space"), CorruptTable("x")):
        assert errors.translated(error, "x", "w") is error
    missing = errors.translated(FileNotFoundError("Object at location k not found"), "x", "s3://b/k")
    assert type(missing) is FileNotFoundError
    assert "s3://b/k" in str(missing)


def test_arrow_reads_through_ranges(bucket: S3Store, memory: MemoryStore) -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"id": list(range(100))})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    put(memory, "f", bytes=sink.getvalue().to_pybytes())
    assert pa.ipc.open_file(bucket.open("g", "f")).read_all().equals(table)
