"""What the plugin decides by metadata alone, one by one: histories, changes, folders, splits, bounds, names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io import load_file_io
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import MetadataLogEntry, SnapshotLogEntry
from pyiceberg.typedef import Record

from laketier.spi import (
    CorruptTable,
    FeatureNotSupported,
    OffsetsExpired,
    RolledBack,
    ScanRequest,
    SnapshotNotFound,
    TableInfo,
    Token,
    UnknownOutcome,
    VersionBounds,
    Watermark,
)
from laketier_iceberg import metrics
from laketier_iceberg.changes import Chain
from laketier_iceberg.expiry import expired
from laketier_iceberg.history import COMMIT_ID, SEQUENCE, WATERMARK, History
from laketier_iceberg.listed_file import ListedFile
from laketier_iceberg.locations import Below
from laketier_iceberg.maintenance import _Folders
from laketier_iceberg.opening import open_with
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.plain import plain_files
from laketier_iceberg.plugin import IcebergPlugin
from laketier_iceberg.pointer import _local, metadata_bytes
from laketier_iceberg.private import keep_times
from laketier_iceberg.resolution import Resolution
from laketier_iceberg.splits import split_of
from laketier_iceberg.times import TOLERANCE_MS, _end_in_order, ahead, disorder, in_order, mended, newest, next_time
from laketier_iceberg.types import to_arrow

DAY = 86_400_000


def metadata(
    snapshots: Mapping[int, int | None] | None = None,
    *,
    head: int | None = None,
    location: str = "/lake/db/t",
    version: int = 2,
    properties: Mapping[str, str] | None = None,
    commits: Mapping[int, str] | None = None,
    spec: list[dict[str, Any]] | None = None,
    logged: list[int] | None = None,
    at: Mapping[int, int] | None = None,
    **more: Any,
) -> TableMetadata:
    """``snapshots``: id → parent. The id is the sequence number as well; ``at`` says otherwise than one day each."""
    given = snapshots or {}
    times = {i: (at or {}).get(i, i * DAY) for i in given}
    document: dict[str, Any] = {
        "format-version": version,
        "table-uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "location": location,
        "last-sequence-number": max(given, default=0),
        "last-updated-ms": max(times.values(), default=0),
        "last-column-id": 3,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {"id": 1, "name": "id", "required": False, "type": "long"},
                    {"id": 2, "name": "s", "required": False, "type": "string"},
                    {"id": 3, "name": "day", "required": False, "type": "date"},
                ],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": spec or []}],
        "last-partition-id": 1000 + len(spec or []),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": dict(properties or {}),
        "snapshots": [
            {
                "snapshot-id": i,
                "sequence-number": i,
                "timestamp-ms": times[i],
                "manifest-list": f"{location}/metadata/snap-{i}.avro",
                "schema-id": 0,
                "summary": {"operation": "append", **({COMMIT_ID: commits[i]} if i in (commits or {}) else {})},
            }
            | ({} if parent is None else {"parent-snapshot-id": parent})
            for i, parent in given.items()
        ],
        "snapshot-log": [{"snapshot-id": i, "timestamp-ms": times[i]} for i in logged or []],
        "metadata-log": [],
        **more,
    }
    if version == 1:
        document |= {"schema": document["schemas"][0], "partition-spec": []}
    if head is not None:
        document |= {"current-snapshot-id": head, "refs": {"main": {"snapshot-id": head, "type": "branch"}}}
        document["refs"] |= more.get("refs", {})
    return TableMetadataUtil.parse_obj(document)


def table_of(found: TableMetadata, location: str = "/lake/db/t/metadata/1.metadata.json") -> Table:
    catalog: Any = None
    return Table(("db", "t"), found, location, load_file_io({}), catalog)


CHAIN = {1: None, 2: 1, 3: 2, 4: 3}


def watermarked(snapshot: int | None, sequence: str | None) -> dict[str, str]:
    carried = replace(Watermark(Token("p", "run", 7), "c"), snapshot_id=snapshot)
    return {WATERMARK + "p": carried.to_json()} | ({} if sequence is None else {SEQUENCE + "p": sequence})


@pytest.mark.parametrize(
    ("snapshots", "head", "snapshot", "sequence", "is_there"),
    [
        (CHAIN, 4, 4, "4", True),
        (CHAIN, 4, 2, "2", True),
        (CHAIN, 4, 1, None, True),
        (CHAIN, 4, None, None, True),
        (CHAIN, 4, None, "9", True),  # it names no snapshot
        (CHAIN, 2, 3, "3", False),  # rolled back
        (CHAIN, 2, 3, None, False),  # as older versions left it, or others removed the number: its snapshot has one
        ({4: 3, 3: None}, 4, 2, None, True),  # nobody knows
        (CHAIN, None, 2, "2", False),  # no main
        ({4: 3, 3: None}, 4, 2, "2", True),  # expired
        ({4: 3, 3: None}, 4, 3, "3", True),
        ({3: 1, 2: 1, 1: None}, 3, 2, "2", False),  # a branch beside it
        ({5: 4, 4: None, 2: None}, 5, 2, "2", True),  # retained, and 3 may have led to it
        ({5: 4, 4: 3, 3: None, 2: None}, 5, 2, "2", False),  # retained, and nothing leads to it
        ({2: None}, 2, 9, "2", False),  # the chain ends at its number
        ({3: None}, 3, 9, "2", True),
    ],
)
def test_a_watermark_is_there_as_long_as_its_snapshot_is_of_the_history(
    snapshots: dict[int, int | None], head: int | None, snapshot: int | None, sequence: str | None, is_there: bool
) -> None:
    history = History(metadata(snapshots, head=head, properties=watermarked(snapshot, sequence)))
    assert history.watermark("another") is None
    if is_there:
        found = history.watermark("p")
        assert found is not None
        assert (found.token.epoch, found.snapshot_id) == (7, snapshot)
    else:
        with pytest.raises(RolledBack, match=f"snapshot {snapshot}, which carried epoch 7"):
            history.watermark("p")


@pytest.mark.parametrize("text", ["x", "-1", "1.0", ""])
def test_a_sequence_number_that_is_none_is_damage(text: str) -> None:
    with pytest.raises(CorruptTable, match="is no number"):
        History(metadata(CHAIN, head=4, properties=watermarked(4, text))).watermark("p")


@pytest.mark.parametrize(
    ("snapshots", "since", "landed"),
    [
        (CHAIN, None, True),
        ({2: None, 3: 2}, 1, True),
        ({1: None, 3: 1, 4: 3}, 2, False),  # what came since is all there
        ({1: None, 3: 1, 4: 3}, 1, None),  # 2 may have been it
        ({1: None, 3: 1, 4: 3}, None, None),
        ({1: None, 3: 1}, 2, False),
        ({1: None}, None, False),
        ({}, None, False),
        ({}, 0, False),
    ],
)
def test_whether_a_batch_landed(snapshots: dict[int, int | None], since: int | None, landed: bool | None) -> None:
    history = History(metadata(snapshots, head=max(snapshots, default=None), commits={2: "c", 4: "d"}))
    if landed is None:
        with pytest.raises(UnknownOutcome, match="commit c is in no retained snapshot"):
            history.landed("c", since)
    else:
        assert history.landed("c", since) is landed


def test_a_snapshot_without_a_summary_is_of_nobody() -> None:
    found = metadata(CHAIN, head=4, commits={4: "d"})
    bare = [found.snapshots[0].model_copy(update={"summary": None}), *found.snapshots[1:]]
    assert History(found.model_copy(update={"snapshots": bare})).landed("d", 0)


def test_the_first_snapshot_may_have_been_it() -> None:
    with pytest.raises(UnknownOutcome):
        History(metadata({2: None}, head=2)).landed("c", None)


def chain(snapshots: dict[int, int | None] = CHAIN, head: int | None = 4, **more: Any) -> Chain:
    return Chain.of(metadata(snapshots, head=head, **more), "db.t")


def test_versions_are_those_of_main_that_are_left() -> None:
    assert chain().bounds == VersionBounds(earliest=1, latest=5, latest_at=4 * DAY)
    assert chain(head=2).bounds == VersionBounds(earliest=1, latest=3, latest_at=2 * DAY)
    assert chain({4: 3, 3: None}).bounds == VersionBounds(earliest=3, latest=5, latest_at=4 * DAY)
    assert chain({}, None).bounds == VersionBounds(earliest=1, latest=1)
    with pytest.raises(FeatureNotSupported, match="version 1, whose snapshots have no sequence numbers"):
        chain({}, None, version=1)


def test_what_was_current_at_a_version() -> None:
    assert [chain({1: None, 3: 1, 4: 3}).at(version) for version in (0, 1, 2, 3, 4)] == [None, 1, 1, 3, 4]
    assert chain({}, None).at(0) is None
    for none, version, last in ((chain({}, None), 1, 0), (chain(), 5, 4), (chain(), 9, 4), (chain(head=2), 3, 2)):
        with pytest.raises(SnapshotNotFound, match=f"sequence number {version}, or not any more") as told:
            none.at(version)
        assert told.value.fix == f"The newest one has {last}."
    late = chain({4: 3, 3: None})
    assert late.at(3) == 3
    with pytest.raises(SnapshotNotFound, match="sequence number 2 has expired") as told:
        late.at(2)
    assert told.value.fix == "The oldest one has 3."


def test_the_stamp_of_a_version() -> None:
    """Of a snapshot that main has, or had before a rollback; of no other branch's, and of none that is gone."""
    assert [chain().stamp(version) for version in range(6)] == [None, "1", "2", "3", "4", None]
    assert [chain(head=2, logged=[1, 2, 3]).stamp(version) for version in (2, 3, 4)] == ["2", "3", None]
    assert chain({}, None).stamp(1) is None


def test_the_snapshots_of_a_range() -> None:
    assert [each.snapshot_id for each in chain().between(2, 4, "db.t")] == [2, 3]
    assert [each.snapshot_id for each in chain().between(1, 5, "db.t")] == [1, 2, 3, 4]
    assert chain().between(3, 3, "db.t") == []
    with pytest.raises(OffsetsExpired, match="sequence number"):
        chain({4: 3, 3: None}).between(2, 4, "db.t")
    with pytest.raises(SnapshotNotFound):
        chain().between(2, 6, "db.t")


@pytest.mark.parametrize(
    ("snapshots", "head", "logged", "start", "rolled_back"),
    [
        (CHAIN, 4, [1, 2, 3, 4], 4, False),
        (CHAIN, 4, [1, 2, 3, 4], 1, False),
        ({1: None, 2: 1, 3: 1}, 3, [1, 2, 1, 3], 3, True),
        ({1: None, 2: 1, 3: 1}, 3, [1, 3], 3, False),  # it was of another branch
        ({1: None, 3: 1}, 3, [1, 3], 3, True),  # gone, and older ones are there
        ({3: None}, 3, [3], 3, False),
    ],
)
def test_whether_what_was_read_was_taken_back(
    snapshots: dict[int, int | None], head: int, logged: list[int], start: int, rolled_back: bool
) -> None:
    assert chain(snapshots, head, logged=logged).is_rolled_back(start) is rolled_back


BRANCH = {"snapshot-id": 2, "type": "branch"}
TAG = {"snapshot-id": 2, "type": "tag"}
BESIDE = {**CHAIN, 5: 4, 6: 2}
"""5 is the head; 6 is of nobody, and young."""


AGE, LEAST, REF_AGE = (
    f"history.expire.{name}" for name in ("max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms")
)


@pytest.mark.parametrize(
    ("properties", "refs", "ids", "names"),
    [
        ({}, {}, [], []),
        ({AGE: str(2 * DAY)}, {}, [1, 2, 3], []),
        ({AGE: str(3 * DAY)}, {}, [1, 2], []),
        ({AGE: "0"}, {}, [1, 2, 3, 4], []),
        ({AGE: "0", LEAST: "3"}, {}, [1, 2], []),
        ({AGE: "0", LEAST: "0"}, {}, [1, 2, 3, 4], []),
        ({AGE: "0", "gc.enabled": "FALSE"}, {}, [], []),
        ({AGE: "0"}, {"t": TAG}, [1, 3, 4], []),
        ({AGE: "0"}, {"b": BRANCH}, [1, 3, 4], []),
        ({AGE: "0"}, {"b": {**BRANCH, "min-snapshots-to-keep": 2}}, [3, 4], []),
        ({AGE: "0"}, {"b": {**BRANCH, "max-snapshot-age-ms": 5 * DAY}}, [3, 4], []),
        ({REF_AGE: str(4 * DAY)}, {"t": TAG}, [], []),
        ({REF_AGE: str(4 * DAY - 1)}, {"t": TAG}, [], ["t"]),
        ({}, {"t": {**TAG, "max-ref-age-ms": DAY}}, [], ["t"]),
        ({REF_AGE: "1"}, {"t": {**TAG, "max-ref-age-ms": 9 * DAY}}, [], []),
        ({REF_AGE: "1"}, {"t": {**TAG, "snapshot-id": 99}}, [], []),
    ],
)  # fmt: skip
def test_what_a_commit_expires(
    properties: dict[str, str], refs: dict[str, Any], ids: list[int], names: list[str]
) -> None:
    """On the sixth day: of a table without settings nothing that is five days old."""
    assert expired(metadata(BESIDE, head=5, properties=properties, refs=refs), 6 * DAY) == (ids, names)


def test_a_branch_has_limits_of_its_own() -> None:
    """Younger than the table's limit, and still not kept by it: they are of a branch with one of its own."""
    refs = {"main": {"snapshot-id": 5, "type": "branch", "max-snapshot-age-ms": 1}}
    assert expired(metadata(BESIDE, head=5, refs=refs), 6 * DAY) == ([1, 2, 3, 4], [])
    tagged = metadata(BESIDE, head=5, refs={**refs, "t": TAG})
    assert expired(tagged, 6 * DAY) == ([1, 3, 4], []), "a tag is of one snapshot"
    old = metadata(BESIDE, head=5, refs={**refs, "t": {**TAG, "max-ref-age-ms": DAY}})
    assert expired(old, 6 * DAY) == ([1, 2, 3, 4], ["t"])


def test_what_lies_behind_an_old_snapshot_goes_with_it() -> None:
    """By a clock that was wrong, it may be younger."""
    found = metadata(BESIDE, head=5, properties={AGE: str(4 * DAY)}, at={3: 0})
    assert expired(found, 6 * DAY) == ([1, 2, 3], [])


def test_what_nobody_refers_to_goes_with_its_age() -> None:
    assert expired(metadata(BESIDE, head=5), 11 * DAY) == ([1, 2, 3, 4], [])
    assert expired(metadata(BESIDE, head=5), 11 * DAY + 1) == ([1, 2, 3, 4, 6], [])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("data/a.parquet", "data"),
        ("data/x=1/a.orc", "data"),
        ("data/_x=1/a.avro", "data"),
        ("data/a.puffin", "data"),
        ("data/.a.parquet", None),
        ("data/_a.parquet", None),
        ("data/_x/a.parquet", None),
        ("data/.x/a.parquet", None),
        ("data/a.txt", None),
        ("metadata/1.metadata.json", "metadata"),
        ("metadata/1.metadata.json.gz", "metadata"),
        ("metadata/snap-1.avro", "manifest-list"),
        ("metadata/m0.avro", "manifest"),
        ("metadata/a.stats", "statistics"),
        ("metadata/a.puffin", "statistics"),
        ("metadata/partition-stats-1.parquet", "statistics"),
        ("metadata/a.parquet", None),
        ("metadata/x/m0.avro", "manifest"),
        ("metadata/x/a.parquet", None),
        ("metadata/version-hint.text", None),
        ("other/a.parquet", "data"),
    ],
)
def test_what_a_file_is_for(path: str, kind: str | None) -> None:
    assert folders().kind(path) == kind


def folders(**paths: str) -> _Folders:
    properties = {f"write.{name}.path": path for name, path in paths.items()}
    current = f"{paths.get('metadata', '/lake/db/t/metadata')}/1.metadata.json"
    return _Folders(table_of(metadata(properties=properties), current), Below("/lake/db/t"))


def test_where_files_are_looked_for(caplog: pytest.LogCaptureFixture) -> None:
    assert folders().roots == ["data", "metadata"]
    assert folders(data="/lake/db/t/files").roots == ["data", "files", "metadata"]
    assert folders(data="/lake/db/t/data/files").roots == ["data", "metadata"]
    assert folders(data="/lake/db/t").roots == [""]
    assert caplog.text == ""
    assert folders(data="/elsewhere").roots == ["data", "metadata"]
    assert "write.data.path leads out of /lake/db/t" in caplog.text
    both = folders(data="/lake/db/t/both", metadata="/lake/db/t/both")
    assert [both.kind(f"both/{name}") for name in ("a.parquet", "m0.avro", "a.stats")] == [
        "data", "manifest", "statistics",
    ]  # fmt: skip


@pytest.mark.parametrize("location", ["/lake/db/t/1.metadata.json", "/copied/metadata/1.metadata.json", ""])
def test_metadata_where_the_table_writes_none_may_be_a_copy(location: str) -> None:
    with pytest.raises(FeatureNotSupported, match="may share its folders") as told:
        _Folders(table_of(metadata(), location), Below("/lake/db/t"))
    assert (location or "not known") in str(told.value)


SPEC = [
    {"source-id": 2, "field-id": 1000, "transform": "identity", "name": "s"},
    {"source-id": 3, "field-id": 1001, "transform": "day", "name": "day_day"},
    {"source-id": 1, "field-id": 1002, "transform": "bucket[4]", "name": "id_bucket"},
    {"source-id": 9, "field-id": 1003, "transform": "void", "name": "gone"},
]


def data_file(*partition: Any, **more: Any) -> DataFile:
    given: dict[str, Any] = {
        "content": DataFileContent.DATA,
        "file_path": "/lake/db/t/data/a.parquet",
        "file_format": FileFormat.PARQUET,
        "partition": Record(*partition),
        "record_count": 7,
        "file_size_in_bytes": 99,
        "column_sizes": {1: 1, 2: 1, 3: 1},
        **more,
    }
    made = DataFile.from_args(**given)
    made.spec_id = 0
    return made


def split(file: DataFile, *deletes: DataFile, plain: bool = True, buckets: str | None = None, spec: Any = None) -> Any:
    found = metadata(spec=spec, properties={} if buckets is None else {"laketier.bucket-field": buckets})
    schema = found.schema()
    resolution = Resolution(found, schema, to_arrow(schema), "db.t")
    known = frozenset([file.file_path] if plain else [])
    return split_of(3, FileScanTask(file, set(deletes)), resolution, known)


def test_a_split_says_what_its_file_is() -> None:
    found = split(data_file())
    assert (found.index, found.rows, found.bytes, found.bucket, found.partition) == (3, 7, 99, -1, ())
    assert found.files == (found.plain_parquet,) == ("/lake/db/t/data/a.parquet",)
    assert found.payload == ListedFile("/lake/db/t/data/a.parquet")
    assert split(data_file(), plain=False).plain_parquet is None


@pytest.mark.parametrize(
    ("values", "shown", "bucket"),
    [
        (("a", 20_000, 2, None), ("a", "2024-10-04", "2", None), 2),
        (("", 0, 0, 1), ("", "1970-01-01", "0", None), 0),
        ((None, None, None, None), (None, None, None, None), -1),
        (("a", 2**31 - 1, 1, None), ("a", str(2**31 - 1), "1", None), 1),
    ],
)
def test_a_split_tells_its_partition_and_bucket(values: Any, shown: Any, bucket: int) -> None:
    found = split(data_file(*values), spec=SPEC, buckets="id_bucket")
    assert found.partition == tuple(zip(("s", "day_day", "id_bucket", "gone"), shown, strict=True))
    assert found.bucket == bucket
    assert split(data_file(*values), spec=SPEC).bucket == -1


def test_rows_that_were_deleted_are_not_counted_and_no_plain_file_has_them() -> None:
    deletes = data_file(content=DataFileContent.POSITION_DELETES, file_path="/lake/db/t/data/d.parquet")
    found = split(data_file(), deletes)
    assert (found.rows, found.plain_parquet, found.payload.deletes) == (None, None, ("/lake/db/t/data/d.parquet",))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: split(data_file(file_format=FileFormat.ORC)), "other files than Parquet"),
        (lambda: split(data_file(file_format=FileFormat.AVRO)), "other files than Parquet"),
        (lambda: split(data_file(key_metadata=b"")), "encrypted"),
        (lambda: split(data_file(), data_file(file_format=FileFormat.PUFFIN)), "deletion vectors"),
        (lambda: split(data_file(), data_file(file_format=FileFormat.AVRO)), "deletes in other files than Parquet"),
    ],
)
def test_what_is_not_read_is_refused(make: Callable[[], Any], what: str) -> None:
    with pytest.raises(FeatureNotSupported, match=what):
        make()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ("truncate", 16)),
        ({"default": "none"}, ("none", None)),
        ({"default": " COUNTS "}, ("counts", None)),
        ({"default": "full"}, ("full", None)),
        ({"default": "truncate(3)"}, ("truncate", 3)),
        ({"default": "Truncate(0)"}, ("truncate", 1)),
        ({"default": "truncate(-1)"}, ("truncate", 16)),
        ({"default": "odd"}, ("truncate", 16)),
        ({"default": ""}, ("truncate", 16)),
        ({"default": "none", "column.a": "full"}, ("full", None)),
        ({"default": "none", "column.b": "full"}, ("none", None)),
    ],
)
def test_what_a_table_wants_to_know_of_a_column(given: dict[str, str], found: tuple[str, int | None]) -> None:
    properties = {f"write.metadata.metrics.{key}": text for key, text in given.items()}
    assert metrics.mode(properties, "a") == found
    assert metrics.metrics_properties({**properties, "write.metadata": "x", "other": "y"}) == properties


@pytest.mark.parametrize(
    ("value", "least_above"),
    [
        ("a", "b"),
        ("ab\U0010ffff", "ac"),
        ("\U0010ffff\U0010ffff", None),
        ("\ud7ff", "\ue000"),
        ("a\x7f", "a\x80"),
        (b"a", b"b"),
        (b"a\xff\xff", b"b"),
        (b"\xff", None),
        (b"\xfe", b"\xff"),
    ],
)
def test_the_least_that_is_above_all_that_begin_so(value: Any, least_above: Any) -> None:
    kind = pa.string() if isinstance(value, str) else pa.binary()
    expected = least_above.encode() if isinstance(least_above, str) else least_above
    assert metrics._upper(kind, value + value[:1], len(value)) == expected
    assert metrics._upper(kind, value, len(value)) == (value.encode() if isinstance(value, str) else value)
    assert metrics._upper(kind, value * 2, None) == (value.encode() if isinstance(value, str) else value) * 2
    assert metrics._lower(kind, value * 2, 1) == (value[:1].encode() if isinstance(value, str) else value[:1])
    assert metrics._lower(kind, value * 2, None) == (value.encode() if isinstance(value, str) else value) * 2


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (pa.bool_(), True, "01"),
        (pa.bool_(), False, "00"),
        (pa.int32(), -2, "feffffff"),
        (pa.date32(), 1, "01000000"),
        (pa.int64(), 1, "0100000000000000"),
        (pa.timestamp("us"), -1, "ffffffffffffffff"),
        (pa.time64("us"), 1, "0100000000000000"),
        (pa.float32(), 1.0, "0000803f"),
        (pa.float64(), 1.0, "000000000000f03f"),
        (pa.string(), "é", "c3a9"),
        (pa.binary(), b"\x01", "01"),
        (pa.binary(64), b"\x01" * 64, "01" * 64),
        (pa.binary(65), b"\x01" * 65, None),
        (pa.decimal128(9, 2), 127, "7f"),
        (pa.decimal128(9, 2), 128, "0080"),
        (pa.decimal128(9, 2), -128, "80"),
        (pa.decimal128(9, 2), -129, "ff7f"),
        (pa.decimal128(9, 2), 0, "00"),
        (pa.int8(), 1, None),
    ],
)
def test_single_values_are_written_as_the_specification_says(kind: pa.DataType, value: Any, found: str | None) -> None:
    raw = metrics._single_value(kind, value)
    assert (None if raw is None else raw.hex()) == found
    assert metrics._unb64(metrics._b64(raw)) == raw


def test_times_out_of_order_are_those_that_java_refuses() -> None:
    edge, behind = TOLERANCE_MS, TOLERANCE_MS + 1
    for gap, found in ((edge, []), (behind, ["times in the snapshot log run backwards once"])):
        at = {1: DAY, 2: DAY - gap, 3: DAY - gap}
        one = metadata({1: None, 2: 1, 3: 2}, head=3, at=at, logged=[1, 2, 3])
        assert disorder(one.model_copy(update={"last_updated_ms": DAY})) == found
    twice = metadata(CHAIN, head=4, at={1: 3 * DAY, 2: 2 * DAY, 3: DAY, 4: DAY}, logged=[1, 2, 3, 4])
    assert disorder(twice) == ["times in the snapshot log run backwards 2 times"]
    for gap, found in ((edge, []), (behind, ["the last update is before the end of the snapshot log"])):
        last = metadata({1: None}, head=1, logged=[1]).model_copy(update={"last_updated_ms": DAY - gap})
        assert disorder(last) == found
    assert [ahead(last, last.last_updated_ms), ahead(last, DAY - edge), ahead(last, DAY - behind)] == [
        behind, 0, behind,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "is_location"),
    [
        ({}, True),
        ({"target-file-rows": "1"}, True),
        ({"catalog.type": "sql"}, True),
        ({"catalog.type": "in-memory"}, True),
        ({"catalog.uri": "sqlite:///x"}, True),
        ({"catalog.uri": "postgresql://x"}, True),
        ({"catalog.type": "rest", "catalog.uri": "https://x"}, False),
        ({"catalog-name": "mine"}, False),
        ({"catalog.type": "glue"}, False),
    ],
)
def test_where_a_warehouse_may_be_a_name(options: dict[str, str], is_location: bool) -> None:
    assert IcebergPlugin().warehouse_is_location("w", options) is is_location


@pytest.mark.parametrize("place", ["embedded", "another catalog", "a store"])
def test_lines_that_open_a_table(events: Any, tmp_path: Path, place: str) -> None:
    info: TableInfo = events.info
    if place == "another catalog":
        info = replace(info, location=str(tmp_path / "other" / "db" / "t"))
    elif place == "a store":
        info = replace(info, location="s3://bucket/db/t")
    lines = open_with(info)
    assert set(lines) == ({"pyiceberg", "Polars", "DuckDB", "Spark"} if place == "embedded" else {"pyiceberg", "Spark"})
    assert all(("<your catalog>" in line) is (place != "embedded") for line in lines.values())
    assert all("db.events" in line for line in lines.values())


@pytest.mark.parametrize(
    ("location", "found"),
    [("/a b/c", "/a b/c"), ("file:///a%20b", "/a b"), ("file:/a", "/a"), ("s3://b/c", None), ("abfss://c@a/x", None)],
)
def test_which_metadata_files_lie_here(location: str, found: str | None) -> None:
    assert _local(location) == found


def test_how_much_a_handle_holds_is_guessed_by_its_file(events: Any) -> None:
    table = events.storage.catalog().load_table(events.info.path)
    file = Path(events.table().metadata_location.removeprefix("file://"))
    assert metadata_bytes(table) == 10 * file.stat().st_size
    assert metadata_bytes(table.with_handle(None)) is None
    file.unlink()
    assert metadata_bytes(table) is None


def entries(*given: tuple[int, int]) -> list[SnapshotLogEntry]:
    """(snapshot, time) of each."""
    return [SnapshotLogEntry(snapshot_id=i, timestamp_ms=at) for i, at in given]


@pytest.mark.parametrize(
    ("log", "before", "last"),
    [
        ([(1, 5), (2, 3)], [(1, 5)], 5),
        ([(1, 5), (2, 5)], [(1, 5)], 5),
        ([(1, 5), (2, 6)], [(1, 5)], 6),
        ([(1, 9), (2, 5), (3, 4)], [(1, 9), (2, 5)], 5),
        ([(1, 5), (2, 3)], [(1, 5), (2, 3)], 3),  # it was there
        ([(1, 5), (2, 3)], [(9, 3)], 5),
        ([(1, 5), (2, 3)], [(2, 4)], 5),
        ([(2, 3)], [], 3),
        ([(1, 5), (2, 3)], [], 5),
    ],
)
def test_the_newest_entry_is_no_older_than_the_one_before(
    log: list[tuple[int, int]], before: list[tuple[int, int]], last: int
) -> None:
    found = _end_in_order(entries(*log), entries(*before))
    assert found == entries(*log[:-1], (log[-1][0], last))
    assert _end_in_order(entries(), entries(*before)) == []


def files(*times: int) -> list[MetadataLogEntry]:
    return [MetadataLogEntry(metadata_file=f"{number}.json", timestamp_ms=at) for number, at in enumerate(times)]


def told(found: TableMetadata) -> tuple[list[int], list[int], int]:
    return (
        [entry.timestamp_ms for entry in found.snapshot_log],
        [entry.timestamp_ms for entry in found.metadata_log],
        found.last_updated_ms,
    )


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ([DAY], [5], 70)),
        ({"last_updated_ms": 60}, ([DAY], [5], DAY)),
        ({"metadata_log": files(5, 3)}, ([DAY], [5, 5], DAY)),
        ({"metadata_log": files(5, 2 * DAY), "last_updated_ms": 60}, ([DAY], [5, 2 * DAY], 2 * DAY)),
        ({"last_updated_ms": 3 * DAY}, ([DAY], [5], 3 * DAY)),
        ({"snapshot_log": entries((1, DAY), (2, 3)), "last_updated_ms": 3}, ([DAY, DAY], [5], DAY)),
        ({"snapshot_log": [], "last_updated_ms": 60}, ([], [5], 70)),
    ],
)
def test_a_commit_takes_no_time_before_those_that_were_there(
    changed: dict[str, Any], expected: tuple[list[int], list[int], int]
) -> None:
    base = metadata({1: None}, head=1, logged=[1])
    base = base.model_copy(update={"last_updated_ms": 70, "metadata_log": files(5)})
    assert told(in_order(base, base.model_copy(update=changed))) == expected


def test_a_next_time_is_past_all_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    base = metadata({1: None}, head=1).model_copy(update={"last_updated_ms": 7})
    for times, last in (
        ({"metadata_log": files(2 * DAY)}, 2 * DAY),
        ({"snapshot_log": entries((1, 3 * DAY))}, 3 * DAY),
        ({"last_updated_ms": 4 * DAY}, 4 * DAY),
        ({}, DAY),
    ):
        found = base.model_copy(update=times)
        assert newest(found) == last
        for now in (0, last, last + 1, last + 2):
            monkeypatch.setattr("laketier_iceberg.times.host_time", lambda now=now: now)
            assert next_time(found) == max(now, last + 1)


def test_mended_times_are_in_order_and_none_is_later_than_now() -> None:
    """Snapshots move with their first entries; one that is in no log, or has another time there, moves alone."""
    now = 10 * DAY
    late = now + TOLERANCE_MS + 1
    sick = metadata({1: None, 2: 1, 3: 2, 4: 3, 5: 4}, head=5, at={1: DAY, 2: late, 3: 2 * DAY, 4: late, 5: 9 * DAY})
    sick = sick.model_copy(
        update={
            "snapshot_log": entries((1, DAY), (2, late), (3, 2 * DAY), (1, 3 * DAY), (3, 4 * DAY), (5, 5)),
            "metadata_log": files(DAY, late, 2 * DAY, 3 * DAY, DAY),
            "last_updated_ms": late,
        }
    )
    found = mended(sick, now)
    log = [DAY, DAY, 2 * DAY, 3 * DAY, 4 * DAY, 4 * DAY]
    assert told(found) == (log, [DAY, DAY, 2 * DAY, 3 * DAY, 3 * DAY], now)
    assert [snapshot.timestamp_ms for snapshot in found.snapshots] == [DAY, DAY, 2 * DAY, now, 9 * DAY]
    assert [entry.snapshot_id for entry in found.snapshot_log] == [1, 2, 3, 1, 3, 5]
    edge = sick.model_copy(update={"snapshot_log": [], "metadata_log": files(now + TOLERANCE_MS)})
    at_edge = metadata({1: None}, head=1, at={1: now + TOLERANCE_MS}).model_copy(update={"metadata_log": files(1)})
    assert told(mended(edge, now))[1:] == ([now + TOLERANCE_MS], now + TOLERANCE_MS)
    assert mended(at_edge, now).snapshots[0].timestamp_ms == now + TOLERANCE_MS


def test_a_file_whose_columns_nobody_counted_is_not_plain() -> None:
    found = metadata()
    schema = found.schema()
    for sizes, plain in ((None, False), ({}, False), ({1: 1, 2: 1}, False), ({1: 1, 2: 1, 3: 1}, True)):
        file = data_file(column_sizes=sizes)
        assert plain_files(found, schema, [file], {}) == (frozenset([file.file_path]) if plain else frozenset())
    mapped = metadata(properties={"schema.name-mapping.default": "[]"})
    assert plain_files(mapped, schema, [data_file()], {}) == frozenset()


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 9, 10, 11, None])
def test_a_split_with_a_limit_gives_exactly_so_many_rows(make: Any, limit: int | None) -> None:
    """Also of a file with several row groups."""
    events = make(options=IcebergOptions(row_group_rows=4))
    events.round(events.token(0), events.batch(0, 10))
    source = events.storage.source(events.info)
    plan = source.plan(ScanRequest())
    [found] = [replace(each, limit=limit) for each in plan.splits]
    ids = [row["id"] for batch in source.read(found, plan.schema) for row in batch.to_pylist()]
    assert ids == list(range(10))[:limit]


def chunk(**more: Any) -> Any:
    """As a footer of Parquet tells of a column in one row group."""
    told = {"has_null_count": True, "null_count": 1, "has_min_max": True, "min_raw": 3, "max_raw": 7, **more}
    return SimpleNamespace(
        total_compressed_size=10,
        num_values=told.pop("num_values", 4),
        is_stats_set=told.pop("is_stats_set", True),
        statistics=SimpleNamespace(**told),
    )


THREE, SEVEN, NINE = (number.to_bytes(8, "little") for number in (3, 7, 9))


@pytest.mark.parametrize(
    ("chunks", "found"),
    [
        ([chunk()], (10, 4, 1, THREE, SEVEN)),
        ([chunk(), chunk(min_raw=5, max_raw=9, null_count=0)], (20, 8, 1, THREE, NINE)),
        ([chunk(is_stats_set=False)], (10, 4, None, None, None)),
        ([chunk(), chunk(is_stats_set=False)], (20, 8, None, None, None)),
        ([chunk(has_null_count=False)], (10, 4, None, None, None)),
        ([chunk(), chunk(has_min_max=False)], (20, 8, 2, None, None)),
        ([chunk(), chunk(has_min_max=False, null_count=4)], (20, 8, 5, THREE, SEVEN)),
        ([chunk(null_count=4)], (10, 4, 4, None, None)),
        ([], (0, 0, 0, None, None)),
    ],
)
def test_what_footers_vouch_for(chunks: list[Any], found: tuple[Any, ...]) -> None:
    told = metrics._column(metrics.Leaf(1, pa.int64(), "a", False), chunks, {}, set())
    assert (told.size, told.values, told.nulls, told.lower, told.upper) == found
    assert told.nans is None
    for leaf, mode in ((metrics.Leaf(1, pa.int64(), "a", True), {}), (metrics.Leaf(1, pa.int64(), "a", False), "none")):
        properties = {"write.metadata.metrics.default": mode} if mode else {}
        assert metrics._column(leaf, chunks, properties, set()) == metrics.ColumnMetrics(found[0])
    counts = metrics._column(
        metrics.Leaf(1, pa.int64(), "a", False), chunks, {"write.metadata.metrics.default": "counts"}, set()
    )
    assert counts == metrics.ColumnMetrics(*found[:3])


def test_bounds_of_floats_are_told_only_without_nan() -> None:
    leaf, footers = metrics.Leaf(1, pa.float64(), "a", False), [chunk(min_raw=1.0, max_raw=2.0)]
    clean = metrics._column(leaf, footers, {}, {1})
    assert (clean.nans, clean.lower is None, clean.upper is None) == (0, False, False)
    unknown = metrics._column(leaf, footers, {}, {2})
    assert (unknown.nulls, unknown.nans, unknown.lower, unknown.upper) == (1, None, None, None)


def test_a_server_s_catalog_keeps_times_itself() -> None:
    server: Any = object()
    assert keep_times(server) is False
