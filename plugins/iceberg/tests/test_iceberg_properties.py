"""Properties of tables, and what others write into snapshots: refused, or passed over, before they do harm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.avro import codecs
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from laketier.spi import AddColumn, ConfigError
from laketier_iceberg.connection import _without_secrets
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.snapshots import _snapshot_info
from laketier_iceberg.table_properties import check_properties, manifest_codec

NUMBERS = {
    "write.target-file-size-bytes": 1,
    "history.expire.max-snapshot-age-ms": 0,
    "history.expire.min-snapshots-to-keep": 0,
    "history.expire.max-ref-age-ms": 0,
    "commit.manifest.target-size-bytes": 1,
    "commit.manifest.min-count-to-merge": 0,
    "write.metadata.previous-versions-max": 0,
    "write.summary.partition-limit": 0,
}
SWITCHES = [
    "commit.manifest-merge.enabled",
    "write.metadata.delete-after-commit.enabled",
    "write.object-storage.enabled",
    "write.object-storage.partitioned-paths",
]
CODEC = "write.avro.compression-codec"
PLACES = ("write.data.path", "write.metadata.path")
MORE = pa.field("more", pa.int64())
BAD = [
    *((key, text) for key, least in NUMBERS.items() for text in (str(least - 1), "5 days", "", "1.5")),
    *((key, "maybe") for key in SWITCHES),
    *((CODEC, text) for text in ("lzma", "")),
    *(
        (key, text)
        for key in PLACES
        for text in ("", "elsewhere", "./rows", "../rows", "~/rows", "file:rows", "s3:rows")
    ),
]
GOOD = [
    *((key, str(number)) for key, least in NUMBERS.items() for number in (least, 10**15)),
    *((key, text) for key in SWITCHES for text in ("true", "FALSE", "1")),
    *((CODEC, text) for text in ("gzip", "GZIP", "zstd", "deflate", "uncompressed", "null")),
    *(
        (key, text)
        for key in PLACES
        for text in ("/lake/rows", "file:/lake/rows", "file:///lake/rows", "s3://lake/rows", "http://[x/rows")
    ),
    ("what.nobody-reads", "x"),
]


@pytest.mark.parametrize(("key", "text"), BAD)
def test_what_commits_would_stumble_over_is_refused(key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"property {key} is {text!r}") as told:
        check_properties({key: text}, "db.t")
    assert (told.value.where, bool(told.value.why), bool(told.value.fix)) == ("db.t", True, True)


@pytest.mark.parametrize("key", PLACES)
@pytest.mark.parametrize("text", ["http://[x", "odd://x"])
def test_a_place_where_no_file_can_be_opened(make: Any, key: str, text: str) -> None:
    """It was an error of Python's, in a task or once the data was written."""
    with pytest.raises(ConfigError, match=re.escape(f"{key} is {text!r}")):
        make(properties={key: text})


@pytest.mark.parametrize("text", ["{}", "no JSON", "[1]", ""])
def test_a_new_table_gets_no_names_that_nobody_can_read(make: Any, text: str) -> None:
    """It was made, and could not be read."""
    with pytest.raises(ConfigError, match="name-mapping") as told:
        make(properties={"schema.name-mapping.default": text})
    assert told.value.why
    assert "field ids" in (told.value.fix or "")


def test_no_code_that_metadata_names_is_imported() -> None:
    with pytest.raises(ConfigError, match=r"'evil\.Provider'") as told:
        check_properties({"write.py-location-provider.impl": "evil.Provider"}, "db.t")
    assert "import it" in str(told.value)


@pytest.mark.parametrize(("key", "text"), GOOD)
def test_what_commits_understand_is_taken(key: str, text: str) -> None:
    check_properties({key: text}, "db.t")


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("commit.manifest.min-count-to-merge", IcebergOptions()),
        ("history.expire.max-snapshot-age-ms", IcebergOptions(expire_in_commit=True)),
    ],
)
def test_it_is_told_at_each_door(make: Any, key: str, options: IcebergOptions) -> None:
    """A commit that ended in the middle would be one whose outcome nobody knows."""
    bad = {key: "5 days"}
    with pytest.raises(ConfigError, match="'5 days'"):
        make(name="other", properties=bad)
    events = make(options=options)
    committer = events.committer()
    with events.table().transaction() as change:
        change.set_properties(bad)
    before = sorted(Path(events.info.location).rglob("*"))
    doors: list[Any] = [
        lambda: events.storage.tiering_factory(events.storage.catalog().load_table(events.info.path)),
        committer.open,
    ]
    if not options.expire_in_commit:  # a change of columns expires nothing
        doors.append(lambda: events.storage.catalog().alter_table(events.info.path, [AddColumn(MORE)]))
    for attempt in doors:
        with pytest.raises(ConfigError, match="'5 days'"):
            attempt()
    assert sorted(Path(events.info.location).rglob("*")) == before


def test_what_another_tool_left_where_nobody_reads_it_hinders_nothing(make: Any) -> None:
    events = make(options=IcebergOptions(target_file_bytes=1 << 20))
    with events.table().transaction() as change:
        change.set_properties({"history.expire.max-snapshot-age-ms": "5d", "write.target-file-size-bytes": "512MB"})
    events.factory = events.storage.tiering_factory(events.storage.catalog().load_table(events.info.path))
    events.round(events.token(0), events.batch(0, 3))
    events.storage.catalog().alter_table(events.info.path, [AddColumn(MORE)])
    assert events.ids() == [0, 1, 2]


@pytest.mark.parametrize(
    ("codec", "found"),
    [(None, "deflate"), ("gzip", "deflate"), ("zstd", "zstandard"), ("uncompressed", "null"), ("Deflate", "deflate")],
)
def test_manifests_are_in_the_tables_own_codec(make: Any, codec: str | None, found: str) -> None:
    properties = {} if codec is None else {CODEC: codec}
    assert manifest_codec(properties, "db.t") == found
    events = make(properties=properties)
    events.round(events.token(0), events.batch(0, 3))
    assert events.ids() == [0, 1, 2]
    for path in Path(events.info.location, "metadata").glob("*.avro"):
        assert b"avro.codec" + bytes([2 * len(found)]) + found.encode() in path.read_bytes()


def test_a_codec_whose_library_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        @staticmethod
        def compress(_: bytes) -> Any:
            raise ImportError("please install it")

    monkeypatch.setitem(codecs.KNOWN_CODECS, "snappy", Missing)  # type: ignore[misc]
    with pytest.raises(ConfigError, match="is 'snappy'"):
        check_properties({CODEC: "snappy"}, "db.t")


@pytest.mark.parametrize(
    ("written", "rows", "epoch"),
    [
        ({"added-records": "7", "laketier.epoch": "3"}, 7, 3),
        ({"added-records": "many", "laketier.epoch": "-1"}, None, None),
        ({"added-records": "", "laketier.epoch": "1.0"}, None, None),
        ({}, None, None),
    ],
)
def test_a_history_passes_over_numbers_that_are_none(
    written: dict[str, str], rows: int | None, epoch: int | None
) -> None:
    summary = Summary(Operation.APPEND, **{"laketier.pipeline": "p", **written})
    info = _snapshot_info(_snapshot(summary))
    assert (info.rows, info.epoch, info.pipeline, info.operation) == (rows, epoch, "p", "append")
    assert (info.snapshot_id, info.committed_at) == (5, 1_000)


def test_a_snapshot_without_a_summary() -> None:
    info = _snapshot_info(_snapshot(None))
    assert (info.rows, info.epoch, info.pipeline, info.operation) == (None, None, None, "unknown")


def _snapshot(summary: Summary | None) -> Snapshot:
    given = {"snapshot-id": 5, "timestamp-ms": 1_000, "manifest-list": "x", "summary": summary}
    return Snapshot.model_validate(given)


@pytest.mark.parametrize(
    ("properties", "text", "shown"),
    [
        ({"user": "admin", "password": "admin123"}, "login admin123 of admin", "login *** of ***"),
        ({"password": "admin123", "user": "admin"}, "login admin123 of admin", "login *** of ***"),
        ({"type": "sql"}, "a sql error", "a sql error"),
        ({"token": "abcd"}, json.dumps({"at": "abcdabcd"}), '{"at": "******"}'),
        ({}, "nothing", "nothing"),
    ],
)
def test_no_part_of_a_secret_is_told(properties: dict[str, str], text: str, shown: str) -> None:
    assert _without_secrets(text, properties) == shown
