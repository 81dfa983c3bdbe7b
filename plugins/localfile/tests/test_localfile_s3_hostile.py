"""Stores that are not as expected: what they take for granted, forget, or refuse. All over HTTP, in front of moto."""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import SECRET
from localfile_s3 import S3Table

from faulty_s3 import BUCKET, KEY, Fault, FaultyS3
from laketier.kit import failpoints
from laketier.spi import (
    Conflict,
    NotBegun,
    Passthrough,
    RolledBack,
    StorageError,
    TableNotFound,
    Token,
    UnknownOutcome,
    UnsafeTable,
)
from laketier.tiering import TieringRound
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.s3 import client

CONDITION = "HTTP_IF_NONE_MATCH"


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process knows of its stores, none does at first."""
    monkeypatch.setattr(client, "_clients", {})


@pytest.fixture
def table(s3: FaultyS3, storage: Passthrough) -> S3Table:
    return S3Table.of(s3, storage)


def ignoring(method: str, path: str, environ: dict[str, Any]) -> None:
    """As a gateway that drops the header."""
    environ.pop(CONDITION, None)


def forget() -> None:
    """As a new process."""
    client._clients.clear()


# -- a store that lets two writers take one name -----------------------------------------------------------------------


def test_a_store_that_ignores_the_condition_gets_no_table(s3: FaultyS3, storage: Passthrough) -> None:
    s3.meddle(ignoring)
    table = S3Table.of(s3, storage, create=False)
    with pytest.raises(UnsafeTable, match="two writers could both win a commit, and rows be lost") as told:
        table.create()
    assert str(told.value.where).startswith(f"s3://{BUCKET}/")
    assert "took 3 puts of one new name" in str(told.value.why)
    assert "If-None-Match" in str(told.value.fix)
    assert table.all_keys() == set(), "the probe is removed"
    s3.meddle(None)
    with pytest.raises(TableNotFound):
        table.info  # noqa: B018
    table.create()


def test_nor_is_one_written_that_lies_there(s3: FaultyS3, table: S3Table) -> None:
    """Each process asks before its first commit: the store may be another one by now."""
    table.round(0)
    before = table.all_keys()
    forget()
    s3.meddle(ignoring)
    with pytest.raises(UnsafeTable):
        table.round(1)
    with pytest.raises(UnsafeTable):
        table.committer().open()
    assert not any("manifests" in key for key in table.all_keys() - before)
    assert table.read_ids() == [0, 1, 2, 3], "reading asks nothing"


def test_a_process_asks_once(s3: FaultyS3, table: S3Table) -> None:
    forget()
    s3.requests.clear()
    table.committer().open()
    table.round(0)
    S3Table.of(s3, table.options.storage).round(0)
    probes = Counter(method for method, path in s3.requests if "/.probe-" in path)
    assert probes == {"PUT": 3}, "and one deletion, which names the key in its body"
    assert not any(".probe" in key for key in s3.keys(""))


def test_a_store_that_looks_and_then_writes(s3: FaultyS3, storage: Passthrough) -> None:
    """Two puts at once find the name free. One after the other, the second is refused, as it should be."""
    both = threading.Barrier(2)

    def looks_first(method: str, path: str, environ: dict[str, Any]) -> tuple[str, str] | None:
        if environ.pop(CONDITION, None) is None:
            return None
        if path.removeprefix(f"/{BUCKET}/") in s3.keys(""):
            return "412 Precondition Failed", "PreconditionFailed"
        both.wait(30)
        return None

    s3.meddle(looks_first)
    with pytest.raises(UnsafeTable, match="took 2 puts of one new name"):
        S3Table.of(s3, storage)


@pytest.mark.parametrize(
    "answer",
    [("501 Not Implemented", "NotImplemented"), ("400 Bad Request", "InvalidArgument"), ("405 Not Allowed", "Method")],
)
def test_a_store_that_does_not_know_the_condition(s3: FaultyS3, storage: Passthrough, answer: tuple[str, str]) -> None:
    s3.meddle(lambda method, path, environ: answer if CONDITION in environ else None)
    s3.requests.clear()
    with pytest.raises(UnsafeTable, match="and takes the same one without") as told:
        S3Table.of(s3, storage)
    assert answer[0][:3] in str(told.value.why)
    assert Counter(method for method, _ in s3.requests)["PUT"] == 4, "it is asked once, and once without"


@pytest.mark.parametrize("status", ["304 Not Modified", "409 Conflict", "412 Precondition Failed"])
def test_each_way_to_say_that_a_name_is_taken(s3: FaultyS3, storage: Passthrough, status: str) -> None:
    """Old versions of MinIO say 304; S3 says 409 while another put is under way."""

    def says(method: str, path: str, environ: dict[str, Any]) -> tuple[str, str] | None:
        taken = CONDITION in environ and path.removeprefix(f"/{BUCKET}/") in s3.keys("")
        return (status, "Taken") if taken else None

    s3.meddle(says)
    table = S3Table.of(s3, storage)
    rival = table.committer()
    state, staged = rival.open(), table.stage(table.ids(9))
    table.round(0)
    with pytest.raises(Conflict):
        rival.publish(state, [staged], None)
    assert table.read_ids() == table.plain_ids() == [0, 1, 2, 3]


def test_a_store_that_fails_is_not_called_unsafe(
    s3: FaultyS3, storage: Passthrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laketier_localfile.s3.proof._WAITS", (0.0,))
    for fault in (Fault.ERROR_500, Fault.REFUSED, Fault.CONFLICT, Fault.DENIED, Fault.EXPIRED):
        s3.always_put(fault, ".tmp")
        with pytest.raises(StorageError, match="asking whether the store refuses") as told:
            S3Table.of(s3, storage)
        assert told.value.why
        assert told.value.fix
    for fault in (Fault.ERROR_500, Fault.LOST_500, Fault.RESET, Fault.REFUSED, Fault.CONFLICT):
        forget()
        s3.always_put(fault, ".tmp", times=2)
        S3Table.of(s3, storage)


@contextmanager
def at(point: str, do: Any) -> Iterator[None]:
    """The first time."""
    done: list[str] = []

    def observe(name: str) -> None:
        if name == point and not done:
            done.append(name)
            do()

    with failpoints.observed(observe):
        yield
    assert done


@pytest.mark.parametrize(
    "point", ["publish.before_manifest", "publish.after_manifest_before_renames", "publish.after_renames_before_head"]
)
def test_two_winners_are_told(s3: FaultyS3, table: S3Table, point: str) -> None:
    """The store was right when this process asked, and then another gateway came. A rival takes the same name before
    our put, or after it. Nobody who is acknowledged is lost without an error."""
    table.round(0)
    rival = table.committer()
    stale, theirs = rival.open(), table.stage(table.ids(50))

    def rivals() -> None:
        s3.meddle(ignoring)
        rival.publish(stale, [theirs], None)

    ours = TieringRound(table.factory, token=Token("q", "run", 0))
    staged = table.stage(table.ids(60))
    with at(point, rivals), pytest.raises((UnsafeTable, UnknownOutcome), match="two writers could both win a commit"):
        ours.commit([staged])
    # The rival's rows are there, or the table says that they are not.
    s3.meddle(None)
    try:
        state = table.committer().open()
    except RolledBack:
        return
    assert state.snapshot_id == 2
    assert table.read_ids() == [0, 1, 2, 3, 50000, 50001, 50002, 50003]


def test_two_winners_that_note_their_heads_at_once(s3: FaultyS3, table: S3Table) -> None:
    """Both see the head file of before, and the loser writes it last: what it named is not there."""
    table.round(0)
    rival = table.committer()
    stale, theirs = rival.open(), table.stage(table.ids(50))
    seen: list[str] = []

    def meddle(method: str, path: str, environ: dict[str, Any]) -> None:
        environ.pop(CONDITION, None)
        if method == "PUT" and path.endswith("/head.json") and not seen:
            seen.append(path)
            rival.publish(stale, [theirs], None)

    ours = table.committer()
    state, staged = ours.open(), table.stage(table.ids(60))
    s3.meddle(meddle)
    with pytest.raises(RolledBack, match="manifest 2 is not the one that was published"):
        ours.publish(state, [staged], None)
    s3.meddle(None)
    with pytest.raises(RolledBack, match="lets two writers take one name") as told:
        table.committer().open()
    assert "laketier doctor" in str(told.value.fix)


def test_after_two_winners_the_store_is_asked_again(s3: FaultyS3, table: S3Table) -> None:
    rival = table.committer()
    stale = rival.open()
    table.round(0)
    s3.meddle(ignoring)
    with pytest.raises(Conflict, match="lets two writers take one name"):
        rival.publish(stale, [table.stage(table.ids(50))], None)
    with pytest.raises(UnsafeTable):
        table.committer().open()


# -- settings, rights and clocks that are wrong ------------------------------------------------------------------------

WRONG = {
    ("301 Moved Permanently", "PermanentRedirect"): "region",
    ("307 Temporary Redirect", "TemporaryRedirect"): "region",
    ("400 Bad Request", "AuthorizationHeaderMalformed"): "region",
    ("400 Bad Request", "IllegalLocationConstraintException"): "region",
    ("403 Forbidden", "InvalidAccessKeyId"): "access_key_id",
    ("403 Forbidden", "SignatureDoesNotMatch"): "secret_access_key",
    ("400 Bad Request", "ExpiredToken"): "new credentials",
    ("400 Bad Request", "InvalidToken"): "session token",
    ("403 Forbidden", "RequestTimeTooSkewed"): "clock",
    ("403 Forbidden", "AccessDenied"): "s3:ListBucket",
    ("404 Not Found", "NoSuchBucket"): "Make the bucket",
    ("400 Bad Request", "InvalidBucketName"): "lake.warehouse",
    ("503 Slow Down", "SlowDown"): "again",
    ("418 Teapot", "SomethingNew"): "manual of the store",
}


@pytest.mark.parametrize("answer", list(WRONG), ids=lambda answer: answer[1])
def test_what_is_wrong_is_told(
    s3: FaultyS3, table: S3Table, monkeypatch: pytest.MonkeyPatch, answer: tuple[str, str]
) -> None:
    """Whatever a store refuses: what, where, why, what to do; no secret, and no request without an end."""
    monkeypatch.setattr(client, "RETRIES", 1)
    committer = table.committer()
    state, staged = committer.open(), table.stage(table.ids(0))
    catalog = table.storage.catalog()
    maintenance = table.storage.maintenance(table.info)
    forget()
    secrets = f"<AWSAccessKeyId>{KEY}</AWSAccessKeyId><StringToSign>{SECRET}</StringToSign>"
    s3.meddle(lambda method, path, environ: (*answer, secrets))
    asked = {
        "load": lambda: table.info,
        "open": committer.open,
        "stage": lambda: table.stage(table.ids(1)),
        "publish": lambda: committer.publish(state, [staged], None),
        "drop": lambda: catalog.drop_table(table.path),
        "list": catalog.list_tables,
        "orphans": lambda: maintenance.orphans(1 << 60),
    }
    for what, ask in asked.items():
        s3.requests.clear()
        with pytest.raises(NotBegun if what == "publish" else StorageError) as told:
            ask()
        names = ("redirect",) if "Redirect" in answer[1] else (answer[0][:3], answer[1])
        assert all(name in str(told.value.why) for name in names), what
        assert WRONG[answer] in str(told.value.fix), what
        assert str(told.value.where).startswith(f"s3://{BUCKET}"), what
        text = "".join(traceback.format_exception(told.value))
        assert SECRET not in text, what
        assert KEY not in text.replace("faulty_s3", ""), what
        assert len(s3.requests) <= 8, what
    s3.meddle(None)
    assert committer.publish(committer.open(), [staged], None).rows == 4
    assert table.read_ids() == table.plain_ids() == [0, 1, 2, 3]


@pytest.mark.parametrize("status", ["400", "401", "403"])
def test_an_answer_without_a_text(s3: FaultyS3, table: S3Table, status: str) -> None:
    """As to HEAD."""
    store = table.log.store
    s3.meddle(lambda method, path, environ: (f"{status} Something", "x") if method == "HEAD" else None)
    with pytest.raises(StorageError, match=f"it answered {status}") as told:
        store.exists("part-x.parquet")
    assert told.value.fix


RIGHTS = {"list": ("LIST",), "put": ("PUT",), "delete": ("POST", "DELETE"), "copy": ("COPY",)}


@pytest.mark.parametrize("right", list(RIGHTS))
def test_a_right_that_is_missing(s3: FaultyS3, storage: Passthrough, right: str) -> None:
    """Each is named by what it was wanted for. A commit that landed is in the table all the same."""
    table = S3Table.of(s3, storage)
    s3.meddle(lambda method, path, environ: ("403 Forbidden", "AccessDenied") if method in RIGHTS[right] else None)
    if right == "list":
        table.round(0)
    else:
        with pytest.raises((StorageError, UnknownOutcome), match="AccessDenied"):
            table.round(0)
    s3.meddle(None)
    table.round(0)
    assert table.read_ids() == table.plain_ids() == [0, 1, 2, 3]


def test_odd_names_of_buckets_and_who_pays(s3: FaultyS3, storage: Passthrough) -> None:
    s3.client.create_bucket(Bucket="my.lake.of-data")
    table = S3Table(
        "s3://my.lake.of-data", options=LocalFileOptions(storage=Passthrough({**storage, "request_payer": "true"}))
    )
    paid: list[str] = []
    s3.meddle(lambda method, path, environ: paid.append(environ.get("HTTP_X_AMZ_REQUEST_PAYER", "nobody")))
    table.create()
    table.round(0)
    assert table.read_ids() == [0, 1, 2, 3]
    assert set(paid) == {"requester"}
    assert str(table.info.location) == "s3://my.lake.of-data/db/events"
