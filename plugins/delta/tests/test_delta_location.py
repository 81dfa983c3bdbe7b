"""Where tables are, and what delta-rs calls ``AWS_…``, as pyarrow takes it: both have to see the same bucket."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from laketier.spi import ConfigError, Passthrough, TablePath
from laketier_delta.engine import open_table
from laketier_delta.location import Location, s3_arguments


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({}, {}),
        ({"AWS_ACCESS_KEY_ID": "k", "aws_secret_access_key": "s"}, {"access_key": "k", "secret_key": "s"}),
        ({"AWS_SESSION_TOKEN": "t"}, {"session_token": "t"}),
        ({"token": "t"}, {"session_token": "t"}),
        ({"session_token": "first", "token": "second"}, {"session_token": "first"}),
        ({"AWS_REGION": "eu"}, {"region": "eu"}),
        ({"AWS_DEFAULT_REGION": "us"}, {"region": "us"}),
        ({"AWS_REGION": "eu", "AWS_DEFAULT_REGION": "us"}, {"region": "eu"}),
        (
            {"AWS_ENDPOINT_URL": "http://host:9000"},
            {"endpoint_override": "host:9000", "scheme": "http", "force_virtual_addressing": False},
        ),
        (
            {"endpoint": "https://host", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "TRUE"},
            {"endpoint_override": "host", "scheme": "https", "force_virtual_addressing": True},
        ),
        (
            {"endpoint_url": "http://first", "endpoint": "http://second", "virtual_hosted_style_request": "false"},
            {"endpoint_override": "first", "scheme": "http", "force_virtual_addressing": False},
        ),
    ],
)
def test_arguments_of_a_bucket(storage: dict[str, str], expected: dict[str, object]) -> None:
    assert s3_arguments(storage) == expected


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"timeout": "30s"}, {"request_timeout": 30.0}),
        ({"timeout": "1500ms", "connect_timeout": "2 m"}, {"request_timeout": 1.5, "connect_timeout": 120.0}),
        ({"timeout": "1h 2s", "connect_timeout": ""}, {}),
        ({"max_retries": "many"}, {}),
    ],
)
def test_patience_with_a_bucket(storage: dict[str, str], expected: dict[str, object]) -> None:
    """A round writes through both libraries: a user who told one of them when to give up has told both."""
    assert s3_arguments(storage) == expected


@pytest.mark.parametrize("tries", [0, 7])
def test_tries_of_a_request(tries: int) -> None:
    (strategy,) = s3_arguments({"MAX_RETRIES": str(tries)}).values()
    assert isinstance(strategy, pafs.AwsDefaultS3RetryStrategy)
    assert strategy.max_attempts == 1 + tries


def test_a_bucket_is_connected_to_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a process, and for one setting. pyarrow makes no file system while another thread waits for one."""
    first = Location.of("s3://bucket/lake", S3).filesystem
    assert Location.of("s3://bucket/other", Passthrough(dict(S3))).table(TablePath("db", "t")).filesystem is first
    assert Location.of("s3://bucket/lake", Passthrough({**S3, "timeout": "9s"})).filesystem is not first
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    assert Location.of("s3://bucket/lake", S3).filesystem is not first
    monkeypatch.undo()
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert Location.of("s3://bucket/lake", S3).filesystem is not first


S3 = Passthrough({"AWS_REGION": "eu"})


@pytest.mark.parametrize(
    "storage",
    [{"AWS_ACCESS_KEY_ID": "half"}, {"AWS_SESSION_TOKEN": "part"}, {"AWS_ENDPOINT_URL": "ftp://host"}],
    ids=str,
)
def test_settings_that_pyarrow_refuses_are_told_as_such(
    monkeypatch: pytest.MonkeyPatch, storage: dict[str, str]
) -> None:
    """Also as a table is opened of which delta-rs says that it is not there: such a log is not damaged."""

    def absent(*_: object, **__: object) -> None:
        raise TableNotFoundError("no table")

    location = Location.of("s3://bucket/lake", Passthrough(storage))
    monkeypatch.setattr(DeltaTable, "__init__", absent)
    for look in (lambda: location.filesystem, lambda: open_table(location)):
        with pytest.raises(ConfigError, match="pyarrow refuses the settings") as told:
            look()
        assert told.value.where == "lake.delta.storage"
        assert "half" not in str(told.value)


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "endpoint", "aws_endpoint_url_s3"])
def test_an_http_endpoint_allows_http(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://other")
    options = Location.of("s3://bucket/lake", Passthrough({name: "http://host:1"})).storage_options
    assert options == {name: "http://host:1", "AWS_ALLOW_HTTP": "true", "AWS_ENDPOINT_URL_S3": "http://host:1"}


def test_an_https_endpoint_allows_no_http_and_is_that_of_log_and_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """delta-rs put the log into the store of the environment, and pyarrow the files into the one that was named."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://other")
    storage = Passthrough({"AWS_ENDPOINT_URL": "https://host:1"})
    assert Location.of("s3://bucket/lake", storage).storage_options == {
        "AWS_ENDPOINT_URL": "https://host:1",
        "AWS_ENDPOINT_URL_S3": "https://host:1",
    }
    found = s3_arguments(storage)
    assert (found["scheme"], found["endpoint_override"]) == ("https", "host:1")


@pytest.mark.parametrize(
    ("warehouse", "uri", "root"),
    [
        ("/data/lake", "/data/lake", "/data/lake"),
        ("/data/a?b#c", "/data/a?b#c", "/data/a?b#c"),
        ("/data/100%", "/data/100%", "/data/100%"),
        ("/data/_delta_logs", "/data/_delta_logs", "/data/_delta_logs"),
        ("file:///data/lake", "/data/lake", "/data/lake"),
        ("s3://bucket/lake", "s3://bucket/lake", "bucket/lake"),
        ("s3://bucket/lake//", "s3://bucket/lake", "bucket/lake"),
        ("s3a://bucket", "s3://bucket", "bucket"),
        ("s3://bucket/a://b", "s3://bucket/a://b", "bucket/a://b"),
    ],
)
def test_where_a_warehouse_is(warehouse: str, uri: str, root: str) -> None:
    location = Location.of(warehouse, S3)
    is_local = warehouse[0] == "/" or warehouse.startswith("file:")
    assert (location.uri, location.root, location.is_local, location.storage) == (uri, root, is_local, S3)
    assert location.storage_options == (None if is_local else {"AWS_REGION": "eu"})
    assert isinstance(location.filesystem, pafs.LocalFileSystem if is_local else pafs.S3FileSystem)
    assert location.folder.full("x") == f"{root}/x"
    table = location.table(TablePath("db", "t"))
    assert (table.uri, table.storage) == (f"{uri}/db/t", S3)


def test_a_relative_path_is_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location.of("lake", Passthrough()).uri == str(tmp_path / "lake")


@pytest.mark.parametrize(
    ("warehouse", "what"),
    [
        ("/data/a%20b", "'%20'"),
        ("/data/a%2Fb", "'%2F'"),
        ("/data/a\\b", r"'\\\\'"),
        ("/data/a\nb", r"'\\n'"),
        ("/data/a\x7fb", r"'\\x7f'"),
        ("/data/_delta_log/x", "'_delta_log'"),
        ("/data/_delta_log", "'_delta_log'"),
        ("s3://bucket/a?b", r"'\?'"),
        ("s3://bucket/a#b", "'#'"),
        ("s3://bucket/a%20b", "'%20'"),
        ("s3://bucket/_delta_log", "'_delta_log'"),
    ],
)
def test_a_place_that_delta_rs_would_look_for_elsewhere_is_refused(warehouse: str, what: str) -> None:
    with pytest.raises(ConfigError, match=f"has {what} in its path") as told:
        Location.of(warehouse, Passthrough())
    assert told.value.where == "lake.warehouse"


@pytest.mark.parametrize("warehouse", ["gs://bucket/lake", "hdfs://host/lake", "abfss://c@a/lake"])
def test_a_store_that_is_not_reached_is_refused_by_its_name(warehouse: str) -> None:
    with pytest.raises(ConfigError, match=f"is on {warehouse.partition(':')[0]}://"):
        Location.of(warehouse, Passthrough())


@pytest.mark.parametrize("path", [TablePath("_delta_log", "t"), TablePath("db", "_delta_log")], ids=str)
def test_the_name_of_logs_is_no_table_s(path: TablePath) -> None:
    with pytest.raises(ConfigError, match="not a name for a database or table") as told:
        Location.of("/data", Passthrough()).table(path)
    assert told.value.where == str(path)
