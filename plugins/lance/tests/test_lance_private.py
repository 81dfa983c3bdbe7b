"""What `laketier_lance.private` relies on in pylance. A failure here means that pylance has changed."""

from __future__ import annotations

from datetime import UTC

import pyarrow as pa
import pytest

from laketier.spi import PluginBroken
from laketier_lance.lance_schema import field_ids
from laketier_lance.private import data_path, moment_of, with_metadata, with_plain_paths


def test_a_schema_is_pickled_as_its_metadata_and_a_message_for_each_field(table):
    from lance.schema import LanceSchema

    table.open().add_columns(pa.schema([pa.field("more", pa.struct([("x", pa.int64())]))]))
    schema = table.open().lance_schema
    rebuild, (metadata, *fields) = schema.__reduce__()
    assert rebuild == LanceSchema._from_protos
    assert isinstance(metadata, str)
    assert len(fields) == len(field_ids(schema)), "one for each field, at every level"
    assert field_ids(rebuild(metadata, *fields)) == field_ids(schema)


def test_another_way_of_keeping_schemas_fails_closed(table):
    class Other:
        def __reduce__(self):
            return (dict, ("{}",))

        def to_pyarrow(self):
            return table.schema

    with pytest.raises(PluginBroken, match="Nothing was committed"):
        with_metadata(Other(), {})


def test_schema_metadata_may_hold_any_text(table):
    kept = with_metadata(table.open().lance_schema, {b"a": "ü\n\"'\\".encode(), b"": b""})
    assert kept.to_pyarrow().metadata == {b"a": "ü\n\"'\\".encode(), b"": b""}
    assert field_ids(kept) == field_ids(table.open().lance_schema)


def test_the_path_of_a_data_file_is_the_one_that_pylance_tells(table):
    table.append(0, 1, 2)
    files = [file for fragment in table.open().get_fragments() for file in fragment.metadata.files]
    assert files
    assert [data_path(file) for file in files] == [file.path for file in files]


def test_a_commit_takes_files_that_tell_their_paths_as_plain_text(table):
    table.append(0, 1, 2)
    told = [fragment.metadata for fragment in table.open().get_fragments()]
    plain = with_plain_paths(fragment.metadata for fragment in table.open().get_fragments())
    files = [file for fragment in plain for file in fragment.files]
    assert [type(file.path) for file in files] == [str] * len(files)
    assert [fragment.to_json() for fragment in plain] == [fragment.to_json() for fragment in told]
    table.append(1, 3)
    now = {file.path for fragment in table.open().get_fragments() for file in fragment.metadata.files}
    assert {file.path for file in files} < now


def test_the_moment_of_a_commit_is_the_one_that_pylance_tells(table):
    told = table.open().get_version()["timestamp"]
    assert moment_of(table.open()) == told.astimezone(UTC)
