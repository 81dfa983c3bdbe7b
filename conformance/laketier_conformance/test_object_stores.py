"""Tables in an object store: rounds as on a disk, and nothing beside the table is touched."""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    CommitError,
    Feature,
    LaketierError,
    ScanRequest,
    TableNotFound,
    WriteMode,
    pack,
    unpack,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.children import Child
from laketier_conformance.expect import expect, refused
from laketier_conformance.expect import told as error_told
from laketier_conformance.interposed.runs import spread
from laketier_conformance.lake import ids_of, token
from laketier_conformance.stored import Stored
from laketier_conformance.stores.proxy import Fault, Proxy
from laketier_conformance.stores.steps import Step, recorded
from laketier_conformance.stores.wsgi import Sent
from laketier_conformance.verdict import STRIDES

pytestmark = pytest.mark.needs(Feature.OBJECT_STORES)

InStore = Callable[[], Stored]
FOLDERS = {"unicode": "a l\u00e4ke-\u9d28 ", "percent": "100% %2F"}
SIBLINGS = ("db.t_x", "db2.t")
AS_NEW = "of listings in a store, each is as new as the store, as those of S3, GCS and Azure are: none lags behind"
UPLOADS = "of uploads in parts, none is given up halfway, as no file of the suite is large enough to be one"
PAGE = 1
"""So many keys are in one page of a listing."""
_KEY = re.compile(r"Credential=([^/]+)/")
WHOLE = "of listings in your store, none comes in small pages, as it checks what was signed: run it on moto, too"


def test_rounds(
    in_store: InStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Two pipelines, replays, an overwrite, a new column and an older snapshot, each from fresh handles. All of it is
    in the bucket, below the warehouse, and nothing is on the local disk."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    stored = in_store()
    begun = stored.proxy.seen["UPLOAD"]
    table = stored.lake.create()
    versions: list[str | None] = [None]
    for number, (epoch, pipeline) in enumerate([(0, "p"), (0, "q"), (1, "p")]):
        found = table.append(epoch, ids_of(number), pipeline=pipeline).outcome
        expect(found, RoundOutcome.PUBLISHED, f"epoch {epoch} of pipeline {pipeline!r} in a store")
        version = stored.lake.storage.catalog().table_version(table.path)
        assert version is None or version not in versions, "a commit in a store gives a table another version, or none"
        if version is not None:  # else its state was not settled yet, and may be by now
            again = stored.lake.storage.catalog().table_version(table.path, version)
            expect(again, version, "the version of a table in a store that did not change, to who knew it")
        versions.append(version)
    expect(table.append(1, ids_of(2)).outcome, RoundOutcome.ALREADY_THERE, "a replay in a store")
    rows = [i for epoch in range(3) for i in ids_of(epoch)]
    expect(table.ids, rows, "rows of two pipelines in a store")
    before = table.source.plan(ScanRequest()).snapshot_id
    if stored.lake.declares(Feature.ADD_COLUMN):
        stored.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
        expect(table.read()["extra"].to_pylist(), [None] * len(rows), "values of a column that was added in a store")
    if stored.lake.declares(Feature.OVERWRITE):
        table.round(token(2), [ids_of(3)], WriteMode.OVERWRITE)
        rows, past = ids_of(3), rows
        expect(table.ids, rows, "rows after an overwrite in a store")
        if stored.lake.declares(Feature.TIME_TRAVEL):
            ids = table.read(columns=("id",), snapshot_id=before)["id"].to_pylist()
            expect(sorted(ids), past, "rows of the snapshot before an overwrite in a store")
    expect(table.append(0, pipeline="q").outcome, RoundOutcome.ALREADY_THERE, "a replay after an overwrite")
    expect(
        list(map(str, stored.lake.storage.catalog().list_tables())), ["db.t"], "the tables of a warehouse in a store"
    )
    keys = stored.keys()
    beside = [key for key in keys if not key.startswith("warehouse/")]
    assert keys, "a table in a bucket has objects there: expected some keys, found none"
    expect(beside, [], "keys of the bucket that are not below the warehouse")
    expect(sorted(map(str, here.rglob("*"))), [], "files in the working folder, where the warehouse is in a bucket")
    expect(stored.uploads, [], "uploads in parts that were neither completed nor aborted")
    told = [AS_NEW] if stored.proxy.seen["UPLOAD"] > begun else [AS_NEW, UPLOADS]
    request.node.user_properties += [(STRIDES, each) for each in told]


def test_executors(in_store: InStore, children: Callable[[int], list[Child]]) -> None:
    """Other processes stage and read with what they were sent."""
    table = in_store().lake.create()
    factory = table.factory
    (child,) = children(1)
    answer = child.ask(table.lake, "stage", factory=_text(pickle.dumps(factory)), ids=ids_of(0))
    assert "opened" in answer, f"an executor stages in a store with what it was given: found {answer}"
    staged = unpack(factory.write_result_serializer, base64.b64decode(answer["message"]))
    table.commit([staged], token(0))
    source = table.source
    plan = source.plan(ScanRequest(columns=("id",)))
    found: list[int] = []
    for split in plan.splits:
        sent = {"source": source, "schema": plan.schema}
        given = {name: _text(pickle.dumps(each)) for name, each in sent.items()}
        answer = child.ask(table.lake, "read", split=_text(pack(source.split_serializer, split)), **given)
        assert "ids" in answer, f"an executor reads a split in a store with what it was given: found {answer}"
        found += answer["ids"]
    expect(sorted(found), ids_of(0), "rows that other processes staged and read in a store")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_drop(in_store: InStore) -> None:
    """It leaves no object of the table, and touches none of another whose name, or database, begins alike. A key can be
    put where the table is gone, and a round that was opened before is refused all the same."""
    stored = in_store()
    siblings = [stored.lake.create(name=name) for name in SIBLINGS]
    for number, sibling in enumerate(siblings):
        sibling.append(0, ids_of(number))
    stored.store.client.put_object(Bucket=stored.bucket.bucket, Key="warehouse/db/t.txt", Body=b"of somebody else")
    before = stored.keys()
    table = stored.lake.create()
    table.append(0)
    committer = table.committer()
    state = committer.open()
    stored.lake.storage.catalog().drop_table(table.path)
    expect(set(stored.keys()), set(before), "keys of the bucket after a table was made and dropped, and before")
    with refused(
        (LaketierError, CommitError, OSError), "a round is published in a store, whose table was dropped since `open`"
    ):
        committer.publish(state, [], None)
    committer.close()
    with refused(TableNotFound, "a table that was dropped in a store is loaded"):
        _ = table.info
    for number, sibling in enumerate(siblings):
        expect(sibling.ids, ids_of(number), f"rows of {sibling.path} after db.t was dropped")
        expect(sibling.append(1).outcome, RoundOutcome.PUBLISHED, f"a round of {sibling.path} after db.t was dropped")
    again = stored.lake.create()
    expect((again.ids, again.watermark()), ([], None), "rows and watermark of a table that was dropped and made anew")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_drop_that_is_cut_off(in_store: InStore, request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> None:
    """A table of many objects is deleted in several requests, and whoever drops it is stopped before one of them, from
    the second on. Its name is not lost: the drop is asked for again, or is over, and then a table is made under the
    name, which has nothing of the one before."""
    stored = in_store()
    most, seed = -(-pytestconfig.getoption("lake_steps") // 3), pytestconfig.getoption("lake_seed")
    with recorded(stored.proxy) as sent:
        _made_and_dropped(stored, request)
    steps = sum(map(_takes_away, sent))
    for at in spread(max(steps - 1, 0), most, seed):
        step = Step(at + 1, Fault.DENIED, lasting=True, counts=_takes_away)
        _made_and_dropped(stored, request, step)
        if step.met is None:
            continue
        cut = f"a drop of db.t in a store, {step.told}"
        catalog = stored.lake.storage.catalog()
        with suppress(TableNotFound):
            catalog.drop_table(stored.lake.table("db.t").path)
        try:
            again = stored.lake.create()
        except LaketierError as error:
            pytest.fail(f"{cut}, and asked for again: no table can be made under the name: {error_told(error)}")
        expect((again.ids, again.watermark()), ([], None), f"{cut}: rows and watermark of the next table of the name")


def _made_and_dropped(stored: Stored, request: pytest.FixtureRequest, step: Step | None = None) -> None:
    table = stored.lake.create()
    expect(table.append(0).outcome, RoundOutcome.PUBLISHED, "the first round of a table in a store")
    with _small_pages(stored, request):
        if step is None:
            stored.lake.storage.catalog().drop_table(table.path)
            return
        with stored.proxy.deciding(step), suppress(Exception):  # how it ends is asked by other tests
            stored.lake.storage.catalog().drop_table(table.path)


def _takes_away(sent: Sent) -> bool:
    return sent.method == "DELETE" or sent.deletes_many


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_with_an_odd_name(in_store: InStore, name: str) -> None:
    """It is a key of just that name, or refused."""
    stored = in_store()
    odd = replace(stored.lake, location=f"{stored.bucket.warehouse}/{FOLDERS[name]}")
    try:
        table = odd.create()
    except LaketierError:
        expect(stored.keys(), [], f"keys of the bucket after a warehouse in {FOLDERS[name]!r} was refused")
        return
    table.append(0)
    expect(table.append(0).outcome, RoundOutcome.ALREADY_THERE, f"in {FOLDERS[name]!r} a replay adds nothing")
    expect(table.ids, ids_of(0), f"rows in {FOLDERS[name]!r}")
    keys = stored.keys()
    outside = [key for key in keys if not key.startswith(f"warehouse/{FOLDERS[name]}/")]
    assert keys, f"a table was made in {FOLDERS[name]!r}, and no key is there"
    expect(outside, [], f"keys outside of the folder {FOLDERS[name]!r}")


def test_a_whole_bucket(in_store: InStore) -> None:
    """A warehouse may be a bucket, without a folder in it; or that is refused, and nothing is made there."""
    stored = in_store()
    whole = replace(stored.lake, location=stored.bucket.warehouse.rpartition("/")[0])
    try:
        table = whole.create()
    except LaketierError:
        expect(stored.keys(), [], f"keys of the bucket after the warehouse {whole.location} was refused")
        return
    table.append(0)
    expect(table.append(0).outcome, RoundOutcome.ALREADY_THERE, "a replay in a warehouse that is a whole bucket")
    expect(table.ids, ids_of(0), "rows of a warehouse that is a whole bucket")
    expect([*map(str, whole.storage.catalog().list_tables())], ["db.t"], "the tables of a warehouse that is a bucket")


def test_a_listing_comes_in_pages(in_store: InStore, request: pytest.FixtureRequest) -> None:
    """As it does of many keys: whoever takes the first page for all loses tables, versions and rows."""
    stored = in_store()
    with _small_pages(stored, request):
        names = [f"db.t{number}" for number in range(PAGE + 1)]
        tables = [stored.lake.create(name=name) for name in names]
        for epoch in range(PAGE + 1):
            expect(tables[0].append(epoch).outcome, RoundOutcome.PUBLISHED, f"epoch {epoch}, where listings have pages")
        expect(tables[0].append(PAGE).outcome, RoundOutcome.ALREADY_THERE, "a replay, where listings have pages")
        rows = [i for epoch in range(PAGE + 1) for i in ids_of(epoch)]
        expect(tables[0].ids, rows, "rows, where listings have pages")
        found = list(map(str, stored.lake.storage.catalog().list_tables("db")))
        expect(found, names, "the tables of a database, where listings have pages")
        if stored.lake.declares(Feature.DROP_TABLE):
            before = set(stored.keys())
            table = stored.lake.create(name="db.more")
            stored.lake.storage.catalog().drop_table(table.path)
            expect(set(stored.keys()), before, "keys after a table was made and dropped, where listings have pages")


def test_each_storage_has_its_own_settings(in_store: InStore) -> None:
    """Two storages of one process name the same bucket, as two accounts do, or a service whose keys were changed. Each
    goes where its own options say, by the key that they name: with another one's it would read and write elsewhere."""
    stored = in_store()
    stored.lake.create()
    ours = stored.bucket.access_key_id
    theirs = "another-key" if stored.store.is_ours else ours  # a store that checks signatures knows one key
    with Proxy(stored.proxy.url, keeps=True) as other:
        first = (stored.lake, ours, "a storage")
        second = (stored.at_endpoint(other.url, theirs), theirs, "another storage of its bucket")
        for epoch, (lake, key, whose) in enumerate((first, second, first)):
            before, table = other.seen.total(), lake.table("db.t")
            with recorded(stored.proxy) as sent:
                expect(table.append(epoch).outcome, RoundOutcome.PUBLISHED, f"a round of {whose}")
                expect(table.ids, [i for n in range(epoch + 1) for i in ids_of(n)], f"rows of {whose}")
            elsewhere = other.seen.total() - before
            wanted = len(sent) if lake is second[0] else 0
            expect(elsewhere, wanted, f"requests of {whose} that came to the endpoint of the second one")
            keys = {found[1] for each in sent if (found := _KEY.search(each.headers.get("authorization", "")))}
            expect(keys, {key}, f"the keys by which {whose} signed its requests")


@contextmanager
def _small_pages(stored: Stored, request: pytest.FixtureRequest) -> Iterator[None]:
    """Libraries delete what a page lists with one request."""
    if stored.store.is_ours:
        stored.proxy.page = PAGE
    else:
        request.node.user_properties.append((STRIDES, WHOLE))
    try:
        yield
    finally:
        stored.proxy.page = None
