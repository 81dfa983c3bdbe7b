"""The object store of the suite, and the proxy before it."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from conformance_runs import RunSuite
from laketier.registry import load_format
from laketier_conformance.lake import Lake
from laketier_conformance.stored import Stored
from laketier_conformance.stores import ObjectStore
from laketier_conformance.stores.found import Store, running
from laketier_conformance.stores.proxy import Fault
from laketier_conformance.stores.steps import CHANGES, READS, FirstTime, Step, decisions
from laketier_conformance.stores.wsgi import Sent

PUT = Sent("PUT", "/lake/a%20b?x=1", {"if-none-match": "*"}, b"")
GET = Sent("GET", "/lake/a", {}, b"")

SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=me/20260101/us-east-1/s3/aws4_request"}
"""Nobody checks it; without it, a reader is a stranger."""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running(None) as store:
        yield store


@pytest.mark.parametrize("hidden", ["moto", "boto3"])
def test_without_a_store_the_suite_tells_what_to_install(
    hidden: str, run_suite: RunSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on: the feature is not shown, and that is no failure."""
    monkeypatch.setenv("HIDDEN", hidden)
    test = "test_object_stores.py::test_a_drop"
    run = run_suite("localfile", [test], arguments=["-p", "hides"])
    assert run.outcome(test) == "passed", run.output
    assert run.report["shown"]["object-stores"] == "not shown"
    told = run.report["unproven"]["object-stores"]
    assert f"{hidden} can't be imported" in told
    assert "moto[server]" in told


@pytest.mark.every(2)
@pytest.mark.parametrize(("hidden", "outcome"), [("nothing", "refused"), ("flask_cors", "passed")])
def test_what_else_is_not_declared_is_refused_in_a_store(
    hidden: str, outcome: str, run_suite: RunSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where few operations are drawn; and where there is no store, nobody can ask. The user's proxies and profiles
    are of no matter."""
    monkeypatch.setenv("HIDDEN", hidden)
    monkeypatch.setenv("AWS_PROFILE", "of-nobody")
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    tests = ["test_object_stores.py::test_a_drop", "test_store_faults.py::test_requests_fail[drop]"]
    run = run_suite(
        "undropped",
        tests,
        offers={"undropped": "undropped"},
        harnesses={"undropped": "laketier_localfile.conformance:Harness"},
        arguments=["-p", "hides", "--lake-steps=1", "--lake-seed=0"],
    )
    assert {test: run.outcome(test) for test in tests} == dict.fromkeys(tests, outcome), run.output


@pytest.mark.every(2)
def test_a_format_may_say_that_nothing_began_where_a_store_fails(run_suite: RunSuite) -> None:
    """Another try may end in another way then, though nobody else is there."""
    tests = ["test_store_faults.py::test_no_error_shows_a_key", "test_store_faults.py::test_requests_fail[create]"]
    run = run_suite(
        "begins-nothing",
        tests,
        offers={"begins-nothing": "begins_nothing"},
        harnesses={"begins-nothing": "laketier_localfile.conformance:Harness"},
        arguments=["--lake-steps=2", "--lake-seed=0"],
    )
    assert {test: run.outcome(test) for test in tests} == dict.fromkeys(tests, "passed"), run.output


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_a_store_of_the_user_may_be_in_any_region(
    variable: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "x", variable: "eu-west-1"}.items():
        monkeypatch.setenv(name, value)
    with running(store.client.meta.endpoint_url) as theirs:
        bucket = theirs.bucket(tmp_path)
        assert bucket.region == "eu-west-1"
        theirs.clear(bucket.bucket)
    with pytest.raises(store.client.exceptions.ClientError, match="NoSuchBucket"):
        store.keys(bucket.bucket)


def test_no_bucket_is_left_where_a_harness_fails(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")

    class Failing:
        def object_store(self, bucket: ObjectStore) -> None:
            raise ConnectionError(bucket.bucket)

    with running(store.client.meta.endpoint_url) as theirs, pytest.raises(ConnectionError) as error:
        Stored.of(theirs, load_format("localfile"), Failing(), tmp_path)  # type: ignore[arg-type]
    assert str(error.value) not in [each["Name"] for each in store.client.list_buckets()["Buckets"]]


def test_what_a_test_prints_has_no_key() -> None:
    assert "s3cret" not in repr(Lake("localfile", "s3://a", {"storage.AWS_SECRET_ACCESS_KEY": "s3cret"}))


def test_a_store_of_the_user_needs_keys(run_suite: RunSuite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    for given, says in {
        "http://here": "set AWS_SECRET_ACCESS_KEY in",
        "here:9000": "write http://",
        "http://here:9000/below": "name a host and a port alone",
        "http://me:s3cret@here:9000": "no user belongs into the URL",
    }.items():
        run = run_suite("localfile", ["test_object_stores.py"], arguments=[f"--lake-s3-endpoint={given}"])
        assert run.code == pytest.ExitCode.USAGE_ERROR
        assert says in run.output
        assert "s3cret" not in run.output


def test_what_is_sent_is_handed_on(store: Store, tmp_path: Path) -> None:
    """Names with escapes, bodies in chunks, lengths without a body, and bytes as they were."""
    bucket = store.bucket(tmp_path).bucket
    store.client.put_object(Bucket=bucket, Key="plain", Body=bytes(range(256)))
    address = urlsplit(store.proxy.url)
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        put = f"PUT /{bucket}/a%20b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(put.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert store.client.get_object(Bucket=bucket, Key="a b")["Body"].read() == b"abcde"
    through = http.client.HTTPConnection(address.hostname or "", address.port)
    through.request("HEAD", f"/{bucket}/plain", headers=SIGNED)
    head = through.getresponse()
    assert (head.headers["Content-Length"], head.read()) == ("256", b"")
    through.request("GET", f"/{bucket}/plain", headers=SIGNED)
    assert through.getresponse().read() == bytes(range(256))
    through.close()


@pytest.mark.parametrize("fault", Fault)
def test_a_fault(fault: Fault, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is answered, and whether it happened."""
    monkeypatch.setattr("laketier_conformance.stores.proxy.SILENCE_SECONDS", 0)
    bucket = store.bucket(tmp_path).bucket
    address = urlsplit(store.proxy.url)
    client = http.client.HTTPConnection(address.hostname or "", address.port)
    answers = {Fault.FAILED: 500, Fault.LOST: 500, Fault.SLOW_DOWN: 503, Fault.REFUSED: 412, Fault.DENIED: 403}
    with store.proxy.deciding(Step(0, fault)):
        if fault is Fault.KEPT:  # of a batch of deletions alone, so it comes upon no put
            client.request("PUT", f"/{bucket}/key", body=b"x", headers={"If-None-Match": "*"})
            assert client.getresponse().status == 200
        elif fault in answers:
            client.request("PUT", f"/{bucket}/key", body=b"x", headers={"If-None-Match": "*"})
            assert client.getresponse().status == answers[fault]
        else:
            client.request("PUT", f"/{bucket}/key", body=b"x", headers={"If-None-Match": "*"})
            with pytest.raises(ConnectionError):
                client.getresponse()
    client.close()
    assert store.keys(bucket) == (["key"] if fault in (Fault.LOST, Fault.RESET, Fault.SILENCE, Fault.KEPT) else [])


def test_a_put_on_a_condition_is_one_step(store: Store, tmp_path: Path) -> None:
    bucket = store.bucket(tmp_path).bucket
    store.client.put_object(Bucket=bucket, Key="key", Body=b"first", IfNoneMatch="*")
    with pytest.raises(store.client.exceptions.ClientError, match="PreconditionFailed"):
        store.client.put_object(Bucket=bucket, Key="key", Body=b"second", IfNoneMatch="*")


def test_what_is_decided() -> None:
    """Everything there is, or as much of each kind as was asked for, and the same for one seed."""
    sent = [GET, PUT, GET]
    everything = decisions(sent, 0, "")
    single = {(each.at, each.fault) for each in everything if isinstance(each, Step) and not each.lasting}
    assert single == {(at, fault) for at in (0, 2) for fault in READS} | {(1, fault) for fault in CHANGES}
    assert {each.fault for each in everything if isinstance(each, FirstTime)} == set(CHANGES)
    assert {each.at for each in everything if isinstance(each, Step) and each.lasting} == {0, 1, 2}
    some = decisions(sent, 4, "seed")
    assert sum(isinstance(each, Step) and not each.lasting for each in some) == 3
    assert [vars(each)["fault"] for each in some] == [vars(each)["fault"] for each in decisions(sent, 4, "seed")]
    assert len(decisions(sent, 1, "seed")) == 1


def test_a_step_is_one_request() -> None:
    step = Step(1, Fault.DENIED, counts=lambda sent: sent.changes)
    assert [step(each) for each in (PUT, GET, PUT, PUT)] == [None, None, Fault.DENIED, None]
    assert step.told == "request 2, PUT of a b on a condition, answered 403"
    lasting = Step(1, Fault.FAILED, lasting=True)
    assert [lasting(each) for each in (PUT, GET, PUT)] == [None, Fault.FAILED, Fault.FAILED]
    first = FirstTime(Fault.LOST)
    assert [first(each) for each in (PUT, GET, PUT)] == [Fault.LOST, Fault.LOST, None]


def test_a_call_that_is_made_again_gets_further() -> None:
    """Its files may have other names then. One that comes on top of those that had the fault has it, too."""
    first = FirstTime(Fault.DENIED)
    calls = [["0a1b2c3d"], ["4e5f6a7b", "8c9d0e1f", "8c9d0e1f"], ["0a1b2c3d", "2a3b4c5d", "6e7f8a9b"]]
    found = []
    for names in calls:
        first.begin_again()
        found.append([first(replace(PUT, target=f"/bucket/data/{name}-0.parquet")) for name in names])
    assert found == [[Fault.DENIED], [None, Fault.DENIED, None], [None, None, Fault.DENIED]]
