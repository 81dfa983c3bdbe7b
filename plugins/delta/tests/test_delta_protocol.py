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

from laketier.spi import (
    AddColumn,
    CorruptTable,
    IncompatibleData,
    IncompatibleTable,
    ScanRequest,
    TableDescriptor,
    WriteMode,
)


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


def delete_all_rows(lake, vector):
    """As another tool does in place."""
    entry = Path(lake.uri, "_delta_log", f"{1:020}.json")
    actions = [json.loads(line) for line in entry.read_bytes().splitlines()]
    for action in actions:
        if "add" in action:
            told = {"storageType": "i", "pathOrInlineDv": vector, "sizeInBytes": 36, "cardinality": 2}
            action["add"]["deletionVector"] = told
    entry.write_text("\n".join(map(json.dumps, actions)))


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


def test_a_table_that_can_not_be_written_has_a_state(lake, support):
    lake.create()
    lake.epoch(0)
    DeltaTable(lake.uri).alter.add_constraint({"positive": "id >= 0"})
    with pytest.raises(IncompatibleTable):
        lake.factory()
    state = lake.storage.state(lake.table)
    assert state.watermark("p").token.epoch == 0
    assert (state.snapshot_id, state.pipelines()) == (2, ["p"])


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


@pytest.mark.parametrize(
    ("change", "named"),
    [(with_configuration("delta.columnMapping.mode", "name"), "column mapping"),
     (with_protocol(1, 7, "rowTracking", "domainMetadata"), "rowTracking")], ids=["mapped", "tracked"],
)  # fmt: skip
def test_no_column_is_added_to_a_table_that_delta_rs_can_not_write(lake, support, change, named):
    """It ended in an error of delta-rs."""
    lake.create()
    edit_log(lake, change)
    with pytest.raises(IncompatibleTable, match=named):
        lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("more", pa.int64()))])


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
    delete_all_rows(lake, both_rows_deleted())
    with pytest.raises(IncompatibleTable, match="deletion vectors"):
        lake.read()


def test_deletion_vectors_that_nobody_declared_are_refused_too(lake, support):
    """A reader that goes by the protocol alone gives rows that were deleted."""
    lake.create()
    lake.append(support.ids(1, 2))
    delete_all_rows(lake, both_rows_deleted())
    with pytest.raises(IncompatibleTable, match="deletion vectors"):
        lake.read()


def test_damaged_deletion_vectors_are_told(lake, support):
    lake.create()
    lake.append(support.ids(1, 2))
    delete_all_rows(lake, both_rows_deleted()[::-1])
    with pytest.raises(CorruptTable, match="deletion vector of the table can't be read"):
        lake.read()


DECLARED_AS = "__CHAR_VARCHAR_TYPE_STRING"


def texts(*values):
    return pa.table({"id": range(len(values)), "v": pa.array(values, pa.string())})


def declare(lake, number, declared):
    def change(action):
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][number]["metadata"][DECLARED_AS] = declared
            action["metaData"]["schemaString"] = json.dumps(schema)

    edit_log(lake, change)


@pytest.mark.parametrize("declared", ["char(3)", "varchar(3)", "VARCHAR(3)"])
def test_char_and_varchar_take_what_delta_spark_takes(lake, declared):
    """delta-spark 4.4.0 on Spark 4.1.4: code points count, blanks at the end too, and nothing is padded."""
    lake.create()
    declare(lake, 1, declared)
    lake.append(texts("abc", "a", "", None, "\U0001f600\U0001f600\U0001f600"))
    assert DeltaTable(lake.uri).to_pyarrow_table()["v"].to_pylist()[1] == "a"
    for bad in ("abcd", "abc ", "éééé"):
        with pytest.raises(IncompatibleData, match=r"'v' has a value of 4 characters, and it is \w+\(3\)"):
            lake.append(texts("ok", bad))
    assert lake.read().num_rows == 5


@pytest.mark.parametrize("declared", ["array<char(3)>", "map<varchar(2),char(2)>", "struct<x:varchar(2)>", "char(?)"])
def test_char_inside_columns_is_refused_by_name(lake, declared):
    lake.create()
    declare(lake, 1, declared)
    with pytest.raises(IncompatibleTable, match=r"CHAR or VARCHAR inside a column \(v is "):
        lake.factory()
    assert lake.storage.source(lake.table).plan(ScanRequest()).splits == (), "reading is right all the same"


def test_char_in_a_primary_key_is_refused_as_spark_pads_it(lake, support):
    columns = pa.schema({"id": pa.int64(), "v": pa.string()})
    lake.storage.catalog().create_table(support.PATH, TableDescriptor(columns, primary_key=("v",)))
    declare(lake, 1, "varchar(3)")
    lake.factory()
    declare(lake, 1, "char(3)")
    with pytest.raises(IncompatibleTable, match=r"CHAR in its primary key \(v\)"):
        lake.factory()


@pytest.mark.parametrize(
    ("feature", "reader", "named"),
    [
        ("foo", True, r"reader feature 'foo'.*Write to a table without it"),
        ("foo", False, r"writer features \['foo'\].*Write to a table without it"),
        ("geospatial", True, r"reader feature 'geospatial'"),
        ("catalogManaged", True, "belongs to a catalog"),
        ("v2Checkpoint", True, r"DROP FEATURE v2Checkpoint TRUNCATE HISTORY"),
        ("checkpointProtection", False, r"DROP FEATURE checkpointProtection TRUNCATE HISTORY"),
        ("clustering", False, r"writer features \['clustering'\].*Write to a table without it"),
        ("rowTracking", False, r"DROP FEATURE rowTracking\."),
        ("vacuumProtocolCheck", True, r"DROP FEATURE vacuumProtocolCheck"),
    ],
)
def test_a_healthy_table_with_a_feature_of_others_is_named_and_not_called_damaged(lake, feature, reader, named):
    lake.create()

    def change(action):
        if "protocol" in action:
            action["protocol"] = {
                "minReaderVersion": 3 if reader else 1,
                "minWriterVersion": 7,
                **({"readerFeatures": [feature]} if reader else {}),
                "writerFeatures": [feature],
            }

    edit_log(lake, change)
    with pytest.raises(IncompatibleTable, match=f"(?s){named}"):
        lake.factory()


@pytest.mark.parametrize("feature", ["appendOnly", "invariants", "checkConstraints", "generatedColumns",
    "changeDataFeed", "timestampNtz", "deletionVectors"])  # fmt: skip
def test_a_feature_that_is_let_through_is_one_that_delta_rs_has(lake, feature, support):
    lake.create()
    readers = [feature] if feature in ("timestampNtz", "deletionVectors") else []

    def change(action):
        if "protocol" in action:
            features = {"readerFeatures": readers, "writerFeatures": [feature]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}

    edit_log(lake, change)
    lake.epoch(0, support.ids(1))
    assert support.values(lake.read()) == [1]


def test_a_newer_protocol_is_no_damage(lake):
    lake.create()
    edit_log(lake, with_protocol(4, 8))
    with pytest.raises(IncompatibleTable, match="newer protocol of Delta"):
        lake.factory()


@pytest.mark.parametrize(
    "change",
    [with_metadata("__COLLATIONS", {"v": "spark.UTF8_LCASE"}),
     with_configuration("delta.universalFormat.enabledFormats", "hudi")], ids=["collation", "UniForm"],
)  # fmt: skip
def test_what_else_a_writer_would_pass_over(lake, change, request):
    lake.create()
    edit_log(lake, change)
    with pytest.raises(IncompatibleTable, match=request.node.callspec.id):
        lake.factory()


def with_type(name):
    def change(action):
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][1]["type"] = name
            action["metaData"]["schemaString"] = json.dumps(schema)

    return change


def test_a_void_column_is_refused_by_name(lake):
    lake.create()
    edit_log(lake, with_type("void"))
    with pytest.raises(IncompatibleTable, match="a column of type void"):
        lake.factory()


NESTED = {"type": "array", "elementType": "variant", "containsNull": True}


@pytest.mark.parametrize("kind", ["variant", NESTED], ids=["column", "nested"])
def test_a_variant_is_refused_by_its_feature(lake, kind):
    lake.create()
    names = ["variantType"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}
    edit_log(lake, with_type(kind))
    edit_log(lake, lambda action: action.update(protocol=protocol) if "protocol" in action else None)
    with pytest.raises(IncompatibleTable, match=r"(?s)reader features \['variantType'\].*Write to a table without it"):
        lake.factory()


def test_a_property_that_delta_rs_sets_shuts_no_table(lake):
    """It names the feature of variants then, on a table that names features as its times without a zone ask for."""
    lake.create(pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))]))
    DeltaTable(lake.uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    named = DeltaTable(lake.uri).protocol()
    assert "variantType" in (named.reader_features or ())
    rows = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us"))})
    lake.epoch(0, rows)
    assert lake.read().equals(rows)
