"""The same table in an object store: moto, a real S3 API over HTTP, made atomic by a lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import boto3
import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileSession

from laketier.kit import failpoints
from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    AddColumn,
    Collected,
    Conflict,
    CorruptTable,
    Decision,
    IncompatibleTable,
    LakeStorageConfig,
    LaketierError,
    Passthrough,
    RenameColumn,
    ScanRequest,
    SetProperty,
    SnapshotNotFound,
    StagedFileLost,
    StorageError,
    TableDescriptor,
    TableNotFound,
    TablePath,
    Token,
    WidenColumn,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import TieringRound
from laketier_conformance.stores.atomic import OneAtATime, server
from laketier_lance import committer, properties, store_drops
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2))])


lost_answers: list[str] = []
"""Once there is something in it, the answer to the next put of a manifest is lost: it is done, and the client gets a
500. The paths of those that were put are added."""


class LosesAnswers(OneAtATime):
    def __call__(self, environ, start_response):
        with self.lock:
            answer = super().__call__(environ, start_response)
            if lost_answers and environ["REQUEST_METHOD"] == "PUT" and environ["PATH_INFO"].endswith(".manifest"):
                lost_answers.append(environ["PATH_INFO"])
                if len(lost_answers) == 2:
                    start_response("500 Internal Server Error", [], (RuntimeError, RuntimeError("lost"), None))
                    return [b""]
            return answer


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    store = server(LosesAnswers())
    thread = threading.Thread(target=store.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{store.port}"
    store.shutdown()
    store.server_close()
    thread.join()


@pytest.fixture
def storage_options(endpoint):
    options = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1", "endpoint": endpoint}
    return options | {"virtual_hosted_style_request": "false"}


@pytest.fixture
def bucket(endpoint, request):
    found = boto3.resource(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret"
    ).Bucket(f"lake-{abs(hash(request.node.name)) % 10**8}")
    found.create()
    return found


@pytest.fixture
def storage(bucket, storage_options):
    options = LanceOptions(storage=Passthrough(storage_options))
    return LancePlugin().create_storage(LakeStorageConfig(f"s3://{bucket.name}/lake/", options))


PATH = TablePath("db", "t")
REFUSED = r"the table was dropped|there is no Lance dataset|could not be changed|column 'n'"


def rows(*ids):
    return pa.RecordBatch.from_pylist([{"id": i, "v": [i, i]} for i in ids], schema=SCHEMA)


def stage(factory, *ids):
    writer = factory.create_writer(WriterInitContext(new_attempt_id()))
    writer.write(rows(*ids))
    return writer.complete()


def read(storage, **request):
    source = storage.source(storage.catalog().load_table(PATH))
    plan = source.plan(ScanRequest(columns=("id",), **request))
    return sorted(i for split in plan.splits for b in source.read(split, plan.schema) for i in b.column(0).to_pylist())


def test_a_table_in_s3_lives_through_all_of_its_life(storage, storage_options):
    catalog = storage.catalog()
    assert catalog.list_tables() == []
    with pytest.raises(TableNotFound):
        catalog.load_table(PATH)
    info = catalog.create_table(PATH, TableDescriptor(SCHEMA))
    assert catalog.create_table(PATH, TableDescriptor(SCHEMA)).table_uuid == info.table_uuid
    assert catalog.list_tables() == [PATH]
    factory = storage.tiering_factory(info)
    for epoch in range(3):
        TieringRound(factory, token=Token("p", "r", epoch)).commit([stage(factory, epoch)])
    assert TieringRound(factory, token=Token("p", "r", 2)).begin() is Decision.DONE
    assert read(storage) == [0, 1, 2]
    assert read(storage, snapshot_id=2) == [0]
    with pytest.raises(SnapshotNotFound):
        read(storage, snapshot_id=99)
    theirs = lance.dataset(info.location, storage_options=storage_options | {"allow_http": "true"})
    assert sorted(theirs.to_table().column("id").to_pylist()) == [0, 1, 2]
    theirs.optimize.compact_files()
    theirs.cleanup_old_versions(older_than=timedelta(0))
    overwrite = TieringRound(factory, token=Token("p", "r", 3), mode=WriteMode.OVERWRITE)
    overwrite.commit([stage(factory, 7)])
    assert read(storage) == [7]
    catalog.drop_table(PATH)
    assert catalog.list_tables() == []


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "theirs/notes.txt",
        "data/notes.txt",
        "data/deeper/notes.lance",
        "tree/notes.txt",
        "_laketier/notes.txt",
    ],
)
def test_a_table_is_not_made_where_objects_of_others_lie(storage, bucket, name):
    """A drop would delete them with the table."""
    catalog, notes = storage.catalog(), bucket.Object(f"lake/db/t.lance/{name}")
    notes.put(Body=b"theirs")
    with pytest.raises(IncompatibleTable, match=name.partition("/")[0]):
        catalog.create_table(PATH, TableDescriptor(SCHEMA))
    assert [each.key for each in bucket.objects.all()] == [notes.key]
    notes.delete()
    bucket.Object("lake/db/t.lance/_transactions/0-a.txn").put(Body=b"of a creation that was killed")
    bucket.Object("lake/db/t.lance/_laketier/clock").put(Body=b"")  # of who asked for the time, and was killed
    assert catalog.create_table(PATH, TableDescriptor(SCHEMA)).schema == SCHEMA


def test_a_table_is_not_made_over_the_rows_of_a_lost_one(storage, bucket):
    catalog = storage.catalog()
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    TieringRound(factory, token=Token("p", "r", 0)).commit([stage(factory, 1)])
    bucket.objects.filter(Prefix="lake/db/t.lance/_versions/").delete()
    rows = {each.key for each in bucket.objects.filter(Prefix="lake/db/t.lance/data/")}
    for look in (catalog.load_table, lambda path: catalog.create_table(path, TableDescriptor(SCHEMA))):
        with pytest.raises(CorruptTable, match="the dataset's list of versions is gone"):
            look(PATH)
    assert {each.key for each in bucket.objects.filter(Prefix="lake/db/t.lance/data/")} == rows != set()
    bucket.objects.all().delete()
    assert catalog.create_table(PATH, TableDescriptor(SCHEMA)).schema == SCHEMA


@pytest.fixture
def cut_off(storage, monkeypatch):
    """A table of which others compacted two rounds, and a drop that ends after so many deletions."""
    info = storage.catalog().create_table(PATH, TableDescriptor(SCHEMA))
    factory = storage.tiering_factory(info)
    for epoch in range(2):
        TieringRound(factory, token=Token("p", "r", epoch)).commit([stage(factory, epoch)])
    options = factory.target.options.storage_options()
    lance.dataset(info.location, storage_options=options).optimize.compact_files()

    def drop(deletions):
        delete, left = LanceFileSession.delete_file, iter(range(deletions))

        def some(session, name):
            if next(left, None) is None:
                raise KeyboardInterrupt
            delete(session, name)

        monkeypatch.setattr(store_drops, "_REQUESTS", 1)
        monkeypatch.setattr(LanceFileSession, "delete_file", some)
        with pytest.raises(KeyboardInterrupt):
            storage.catalog().drop_table(PATH)
        monkeypatch.undo()

    return drop


@pytest.mark.parametrize("then", ["drop", "create"])
def test_a_drop_that_was_cut_off_is_ended_by_whoever_comes_next(storage, bucket, cut_off, then):
    """What others compacted looks like the rows of a dataset that lost its versions."""
    catalog, deletions = storage.catalog(), 0
    while True:
        cut_off(deletions)
        manifests = len([*bucket.objects.filter(Prefix="lake/db/t.lance/_versions/")])
        if not manifests:
            break
        assert read(storage) == [0, 1], "as long as the newest manifest is there, all of it is"
        deletions = manifests
    assert deletions
    assert len([*bucket.objects.filter(Prefix="lake/db/t.lance/data/")]) == 3
    with pytest.raises(TableNotFound):
        catalog.load_table(PATH)
    assert catalog.list_tables() == []
    if then == "create":
        catalog.create_table(PATH, TableDescriptor(SCHEMA))
        assert read(storage) == []
    catalog.drop_table(PATH)
    assert [each.key for each in bucket.objects.all()] == []
    with pytest.raises(TableNotFound):
        catalog.drop_table(PATH)


@pytest.mark.parametrize("made", [False, True], ids=["dropped", "recreated"])
@pytest.mark.parametrize("rows", [True, False])
def test_what_is_committed_onto_a_dropped_table_is_taken_back(storage, bucket, made, rows):
    """A key can be put where there is no table: the round would be acknowledged, and be nowhere."""
    catalog = storage.catalog()
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    TieringRound(factory, token=Token("p", "r", 0)).commit([stage(factory, 0)])
    committer = TieringRound(factory, token=Token("p", "r", 1))._committer
    state, staged = committer.open(), [stage(factory, 1)] if rows else []
    there = []

    def drop(point):
        if point == "publish.before_commit":
            catalog.drop_table(PATH)
            if made:
                there.append(catalog.create_table(PATH, TableDescriptor(SCHEMA)))

    with failpoints.observed(drop), pytest.raises(Conflict, match="dropped meanwhile"):
        committer.publish(state, staged, None)
    if made:
        assert catalog.load_table(PATH).table_uuid == there[0].table_uuid
        assert read(storage) == []
    else:
        assert [each.key for each in bucket.objects.all()] == []


@pytest.mark.parametrize("doing", ["a round without rows", "a property"])
def test_what_others_compact_and_clean_up_at_once_was_not_dropped(storage, monkeypatch, doing):
    """The files and versions of before a commit are gone when it looks for a drop, and the table is not."""
    catalog = storage.catalog()
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    for epoch in range(2):
        TieringRound(factory, token=Token("p", "r", epoch)).commit([stage(factory, epoch)])
    rows = read(storage)
    place = catalog.load_table(PATH).location
    cleaned = []

    def looks(real):
        def late(*args):
            if not cleaned:
                dataset = lance.dataset(place, storage_options=args[1])
                dataset.optimize.compact_files()
                dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
                cleaned.append(dataset.version)
            return real(*args)

        return late

    for module in (committer, properties):
        monkeypatch.setattr(module, "was_dropped", looks(module.was_dropped))
    if doing == "a property":
        catalog.alter_table(PATH, [SetProperty("a", "b", None)])
        assert catalog.load_table(PATH).descriptor.properties["a"] == "b"
    else:
        TieringRound(factory, token=Token("p", "r", 2)).commit([])
    assert len(cleaned) == 1
    assert read(storage) == rows


@pytest.mark.parametrize("made", [False, True], ids=["dropped", "recreated"])
def test_a_round_without_rows_onto_an_empty_table_that_is_dropped_is_no_round(storage, bucket, made):
    """Neither acknowledged, nor newer than the table that others made meanwhile."""
    catalog = storage.catalog()
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    for epoch in range(2):
        TieringRound(factory, token=Token("p", "r", epoch)).commit([])
    assert [each.key for each in bucket.objects.all() if "witness" in each.key] == []
    committer = TieringRound(factory, token=Token("p", "r", 2))._committer
    state, there = committer.open(), []

    def drop(point):
        if point == "publish.before_commit":
            catalog.drop_table(PATH)
            if made:
                there.append(catalog.create_table(PATH, TableDescriptor(SCHEMA)))

    with failpoints.observed(drop), pytest.raises(Conflict, match="dropped meanwhile"):
        committer.publish(state, [], None)
    if made:
        assert catalog.load_table(PATH).table_uuid == there[0].table_uuid
    else:
        assert [each.key for each in bucket.objects.all()] == []


@pytest.mark.parametrize("made", [False, True], ids=["dropped", "recreated"])
@pytest.mark.parametrize(
    ("kind", "rows", "when"),
    [
        ("property", True, "committed"),
        ("property", False, "committed"),
        ("property", False, "looked"),
        ("added", True, "committed"),
        ("renamed", False, "committed"),
        ("widened", True, "committed"),
        ("widened", False, "looked"),
    ],
)
def test_an_alteration_of_a_table_that_is_dropped_is_taken_back(storage, bucket, monkeypatch, when, made, rows, kind):
    """A key can be put where there is no table: the alteration would be acknowledged, and bring a table back without
    its rows, or bury that of others."""
    catalog = storage.catalog()
    schema = SCHEMA.append(pa.field("n", pa.int32()))
    info = catalog.create_table(PATH, TableDescriptor(schema))
    if rows:
        factory = storage.tiering_factory(info)
        writer = factory.create_writer(WriterInitContext(new_attempt_id()))
        writer.write(pa.RecordBatch.from_pylist([{"id": 1, "v": [1, 1], "n": 1}], schema=schema))
        TieringRound(factory, token=Token("p", "r", 0)).commit([writer.complete()])
    changes = {
        "property": SetProperty("a", "b", None),
        "added": AddColumn(pa.field("more", pa.string())),
        "renamed": RenameColumn("n", "m"),
        "widened": WidenColumn("n", pa.int64()),
    }
    there = []

    def drop():
        if not there:
            catalog.drop_table(PATH)
            there.append(catalog.create_table(PATH, TableDescriptor(SCHEMA)) if made else None)

    def dropping(change):
        def late(*args, **options):
            drop()
            return change(*args, **options)

        return late

    with monkeypatch.context() as meanwhile:
        if when == "looked":
            meanwhile.setattr(store_drops, "islice", dropping(store_drops.islice))
        else:
            meanwhile.setattr(properties, "_commit", dropping(properties._commit))
            for name in ("alter_columns", "add_columns"):
                meanwhile.setattr(lance.LanceDataset, name, dropping(getattr(lance.LanceDataset, name)))
        with pytest.raises(LaketierError, match=REFUSED):
            catalog.alter_table(PATH, [changes[kind]])
    assert there
    if made:
        assert catalog.load_table(PATH).table_uuid == there[0].table_uuid
        assert catalog.load_table(PATH).schema == SCHEMA
        assert read(storage) == []
    else:
        assert [each.key for each in bucket.objects.all()] == []


def test_a_round_of_a_table_that_was_made_anew_in_s3_is_refused(storage):
    """Also one without rows, whose version the new table has not reached."""
    catalog = storage.catalog()
    factory = storage.tiering_factory(catalog.create_table(PATH, TableDescriptor(SCHEMA)))
    committer = TieringRound(factory, token=Token("p", "r", 0))._committer
    state = committer.open()
    catalog.drop_table(PATH)
    catalog.create_table(PATH, TableDescriptor(SCHEMA))
    with pytest.raises(Conflict, match="made anew"):
        committer.publish(state, [], None)


def test_of_two_that_publish_against_one_state_one_wins(storage):
    factory = storage.tiering_factory(storage.catalog().create_table(PATH, TableDescriptor(SCHEMA)))
    ours, theirs = (TieringRound(factory, token=Token(name, "r", 0)) for name in ("ours", "theirs"))
    first, second = (round_._committer for round_ in (ours, theirs))
    state, other = first.open(), second.open()
    first.publish(state, [stage(factory, 1)], None)
    with pytest.raises(Conflict):
        second.publish(other, [stage(factory, 2)], None)
    assert read(storage) == [1]


def test_a_put_that_landed_and_whose_answer_was_lost_is_no_conflict(storage):
    factory = storage.tiering_factory(storage.catalog().create_table(PATH, TableDescriptor(SCHEMA)))
    round_ = TieringRound(factory)
    staged = stage(factory, 1)
    lost_answers.append("from now on")
    try:
        result = round_.commit([staged])
        puts = lost_answers[1:]
    finally:
        lost_answers.clear()
    # The same name was put again and refused; that must not be taken for another's commit.
    assert len(puts) > 1
    assert len(set(puts)) == 1
    assert (result.conflicts, result.snapshot_id) == (0, 2)
    assert read(storage) == [1]


def test_an_aborted_task_leaves_no_object(storage, endpoint):
    factory = storage.tiering_factory(storage.catalog().create_table(PATH, TableDescriptor(SCHEMA)))
    staged = stage(factory, 1)
    round_ = TieringRound(factory, token=Token("p", "r", 0))
    round_.abort([staged], commit_was_called=False)
    writer = factory.create_writer(WriterInitContext(new_attempt_id()))
    writer.write(rows(1))
    writer.abort()
    info = storage.catalog().load_table(PATH)
    session = lance.file.LanceFileSession(info.location, factory.target.options.storage_options())
    assert not [name for name in session.list() if "/data/" in name]


def test_orphans_in_s3_are_listed_and_deleted(storage, storage_options):
    info = storage.catalog().create_table(PATH, TableDescriptor(SCHEMA))
    factory = storage.tiering_factory(info)
    for epoch in range(3):
        TieringRound(factory, token=Token("p", "r", epoch)).commit([stage(factory, epoch)])
    theirs = lance.dataset(info.location, storage_options=storage_options | {"allow_http": "true"})
    theirs.delete("id = 1")
    theirs.create_scalar_index("id", "BTREE")
    branch = theirs.create_branch("b", 2)
    theirs.optimize.compact_files()
    began = time.time_ns() // 1_000_000
    staged = stage(factory, 7)
    later = time.time_ns() // 1_000_000 + 60_000
    (found,) = storage.maintenance(info).orphans(later)
    assert (found.path, found.bytes, found.kind) == (staged.files[0].path, staged.files[0].bytes, "data")
    assert began <= found.modified_at < later, "S3 keeps whole seconds; a file must not look older than its attempt"
    while time.time_ns() // 1_000_000 <= found.modified_at:
        pass
    collected = collect_orphans(storage, info, grace=timedelta(0))
    assert [file.path for file in collected.removed] == [staged.files[0].path]
    assert storage.maintenance(info).orphans(later) == []
    assert storage.maintenance(info).remove_orphans([found]) == [found], "what is gone counts as gone"
    assert [read(storage, snapshot_id=version) for version in (2, 4, 5)] == [[0], [0, 1, 2], [0, 2]]
    assert read(storage) == [0, 2]
    assert branch.to_table().num_rows == 1


def test_a_round_whose_files_are_gone_is_refused_even_if_a_restore_took_the_horizon_away(storage, storage_options):
    """Lance would publish the missing file, and no read of the table would work any more."""
    info = storage.catalog().create_table(PATH, TableDescriptor(SCHEMA))
    factory = storage.tiering_factory(info)
    TieringRound(factory, token=Token("p", "r", 0)).commit([stage(factory, 1)])
    two_hours_ago = time.time_ns() // 1_000_000 - 7_200_000
    writer = factory.create_writer(WriterInitContext(f"{two_hours_ago:012x}" + "ab" * 10))
    writer.write(rows(2))
    staged = writer.complete()
    (found,) = storage.maintenance(info).orphans(time.time_ns() // 1_000_000 + 60_000)
    while time.time_ns() // 1_000_000 <= found.modified_at:
        pass
    assert collect_orphans(storage, info, grace=timedelta(0)).removed == (found,)
    with pytest.raises(Collected):
        TieringRound(factory, token=Token("p", "r", 1)).commit([staged])
    lance.dataset(info.location, 2, storage_options=storage_options | {"allow_http": "true"}).restore()
    with pytest.raises(StagedFileLost, match="is gone"):
        TieringRound(factory, token=Token("p", "r", 1)).commit([staged])
    assert read(storage) == [1]


@pytest.mark.parametrize("damage", ["cut", "replaced", "gone"])
def test_a_staged_file_that_is_not_whole_is_refused(storage, storage_options, tmp_path, damage):
    """A request for each file of the round tells, though Lance's API has no sizes."""
    info = storage.catalog().create_table(PATH, TableDescriptor(SCHEMA))
    factory = storage.tiering_factory(info)
    staged = stage(factory, 1)
    session = LanceFileSession(info.location, storage_options | {"allow_http": "true"})
    path = staged.files[0].path
    whole = session.read_range(path, 0, staged.files[0].bytes)
    session.delete_file(path)
    if damage != "gone":
        (file := tmp_path / "damaged").write_bytes(whole[:-1] if damage == "cut" else b"other" + whole)
        session.upload_file(str(file), path)
    with pytest.raises(StagedFileLost, match="is gone" if damage == "gone" else "does not end after"):
        TieringRound(factory, token=Token("p", "r", 0)).commit([staged])
    assert read(storage) == []


def test_a_store_that_is_not_there_is_an_error_and_shows_no_secret():
    options = LanceOptions(
        storage=Passthrough(
            {
                "endpoint": "http://127.0.0.1:9",
                "access_key_id": "key",
                "secret_access_key": "hunter2",
                "region": "r",
                "client_max_retries": "0",
                "client_retry_timeout": "1",
            }
        )
    )
    storage = LancePlugin().create_storage(LakeStorageConfig("s3://lake", options))
    with pytest.raises(StorageError) as failure:
        storage.catalog().load_table(PATH)
    assert "hunter2" not in str(failure.value)


def test_no_version_is_told_of_an_object_store(storage):
    """A dataset that was made anew has manifests of the same names."""
    path = TablePath("db", "versions")
    info = storage.catalog().create_table(path, TableDescriptor(SCHEMA))
    assert storage.catalog().table_version(path) is None
    assert storage.catalog().handle_bytes(info) is None
