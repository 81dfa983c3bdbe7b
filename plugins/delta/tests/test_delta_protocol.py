"""Tables that ask for more than laketier can do are refused, and named."""

from __future__ import annotations

import base64
import json
import string
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures

from laketier.spi import IncompatibleTable, ScanRequest, WriteMode


def edit_log(lake, change):
    """What a JVM writer would have put into version 0; delta-rs offers no way to make these tables."""
    path = Path(lake.uri, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in path.read_bytes().splitlines()]
    for action in actions:
        change(action)
    path.write_text("\n".join(map(json.dumps, actions)))


def both_rows_deleted():
    """A deletion vector inside the log: a 64-bit roaring bitmap with one 32-bit one that holds 0 and 1, in Z85."""
    bitmap = struct.pack("<IQIIIHHIHH", 1681511377, 1, 0, 12346, 1, 0, 1, 16, 0, 1)
    rfc1924 = string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
    z85 = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
    return base64.b85encode(bitmap).decode().translate(str.maketrans(rfc1924, z85))


def with_protocol(reader, writer, *features):
    def change(action):
        if "protocol" in action:
            action["protocol"] = {
                "minReaderVersion": reader,
                "minWriterVersion": writer,
                **({"writerFeatures": list(features)} if writer == 7 else {}),
            }

    return change


def with_metadata(key, value):
    def change(action):
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"][key] = value
            action["metaData"]["schemaString"] = json.dumps(schema)

    return change


def with_configuration(key, value):
    def change(action):
        if "metaData" in action:
            action["metaData"]["configuration"][key] = value

    return change


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ([with_protocol(1, 4), with_metadata("delta.generationExpression", "v")], "generated column"),
        ([with_metadata("delta.invariants", '{"expression":{"expression":"id > 3"}}')], "invariant"),
        ([with_protocol(1, 6), with_metadata("delta.identity.start", 1)], "identity column"),
        ([with_protocol(1, 7, "rowTracking", "domainMetadata")], "rowTracking"),
        ([with_protocol(1, 7, "inCommitTimestamp")], "inCommitTimestamp"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rules_that_a_write_transaction_passes_over(lake, support, changes, named):
    lake.create()
    committer = lake.committer()
    for change in changes:
        edit_log(lake, change)
    with pytest.raises(IncompatibleTable, match=named):
        committer.open()


def test_check_constraints(lake, support):
    lake.create()
    DeltaTable(lake.uri).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(IncompatibleTable, match="positive"):
        lake.factory()


def test_column_mapping_is_refused_for_reading_too(lake, support):
    lake.create()
    source = lake.storage.source(lake.table)

    def change(action):
        with_protocol(2, 5)(action)
        with_configuration("delta.columnMapping.mode", "name")(action)
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"], 1):
                field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["configuration"]["delta.columnMapping.maxColumnId"] = "2"

    edit_log(lake, change)
    with pytest.raises(IncompatibleTable, match="column mapping"):
        source.plan(ScanRequest())
    with pytest.raises(IncompatibleTable, match="column mapping"):
        lake.factory()


def test_append_only_tables_take_appends_and_refuse_overwrites(lake, support):
    lake.create(delta__appendOnly="true")
    lake.epoch(0)
    with pytest.raises(IncompatibleTable, match="appendOnly"):
        lake.epoch(1, mode=WriteMode.OVERWRITE)
    assert support.values(lake.read()) == [0]


def test_a_change_data_feed_shows_appends_and_overwrites(lake, support):
    lake.create(delta__enableChangeDataFeed="true")
    lake.epoch(0, support.ids(1))
    lake.epoch(1, support.ids(2), mode=WriteMode.OVERWRITE)
    feed = pa.table(DeltaTable(lake.uri).load_cdf(starting_version=1).read_all())
    changes = sorted(zip(feed["id"].to_pylist(), feed["_change_type"].to_pylist(), strict=True))
    assert changes == [(1, "delete"), (1, "insert"), (2, "insert")]


def test_deletion_vectors_are_refused_where_they_matter(lake, support):
    lake.create()
    lake.append(support.ids(1, 2))
    DeltaTable(lake.uri).alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    lake.epoch(0, support.ids(3))
    assert support.values(lake.read()) == [1, 2, 3], "no file has one"
    with pytest.raises(IncompatibleTable, match="deletion vectors"):
        lake.epoch(1, mode=WriteMode.OVERWRITE)
    entry = Path(lake.uri, "_delta_log", f"{1:020}.json")
    actions = [json.loads(line) for line in entry.read_bytes().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["deletionVector"] = {
                "storageType": "i",
                "pathOrInlineDv": both_rows_deleted(),
                "sizeInBytes": 36,
                "cardinality": 2,
            }
    entry.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(IncompatibleTable, match="deletion vectors"):
        lake.read()
