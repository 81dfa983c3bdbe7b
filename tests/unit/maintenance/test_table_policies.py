"""Policies that a table carries in a property."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from laketier.maintenance.index_policy import IndexPolicy
from laketier.maintenance.table_policies import INDEXES, entry_of, policies_of_table, with_those_of_the_table
from laketier.spi import ConfigError, IndexKind, IndexResources, IndexSpec, TableDescriptor, TableInfo, TablePath

WORDS = IndexPolicy(IndexSpec("text_idx", "text", IndexKind.INVERTED, {"stem": False}), 10, 60.0, 2)
IDS = IndexPolicy(IndexSpec("ids", "id", IndexKind.BTREE))
SAID = [
    {
        "column": "text",
        "kind": "inverted",
        "options": {"stem": False},
        "max-unindexed-rows": 10,
        "max-unindexed-age": "1 min",
        "max-segments": 2,
    },
    {"column": "id", "kind": "btree", "name": "ids"},
]


def table(text: str | None) -> TableInfo:
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    properties = {} if text is None else {INDEXES: text}
    return TableInfo(TablePath("db", "t"), TableDescriptor(schema, properties=properties), "u", "/t.lance", 1)


def test_a_property_gives_what_a_file_gives() -> None:
    assert policies_of_table(table(json.dumps(SAID))) == (WORDS, IDS)
    assert policies_of_table(table(None)) == ()
    assert policies_of_table(table("[]")) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("column: text", "it is no JSON"),
        ('{"column": "text"}', "it is no list of indexes"),
        ("[1]", "it is no list of indexes"),
        (json.dumps([{"column": "id", "kind": "btre"}]), "Did you mean 'btree'"),
        (json.dumps([{"column": "id", "kind": "btree", "max-segment": 2}]), "max-segments"),
        (json.dumps([SAID[1], SAID[1]]), "it has 'ids' twice"),
        (json.dumps([SAID[1], SAID[1] | {"name": "more"}]), "ids and more are of one kind, btree, and one column, id"),
    ],
)
def test_what_can_not_be_read_is_refused_with_the_table(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        policies_of_table(table(text))
    assert says in str(refused.value)
    assert "property laketier.indexes of db.t" in str(refused.value)


def test_a_file_counts_more_than_a_property() -> None:
    other = replace(WORDS, max_segments=9)
    assert with_those_of_the_table([], [WORDS, IDS]) == ((WORDS, IDS), ())
    assert with_those_of_the_table([other], [WORDS, IDS]) == ((other, IDS), ("text_idx",))
    assert with_those_of_the_table([WORDS], [WORDS]) == ((WORDS,), ())
    same_place = replace(WORDS, spec=replace(WORDS.spec, name="own_name"))
    assert with_those_of_the_table([same_place], [WORDS, IDS]) == ((same_place, IDS), ("text_idx",))


def test_an_entry_of_a_policy_gives_that_policy() -> None:
    entries = [entry_of(WORDS), entry_of(replace(IDS, resources=IndexResources(2, 64 << 20, None, "/spill")))]
    assert [entry_of(each) for each in policies_of_table(table(json.dumps(entries)))] == entries


@pytest.mark.parametrize("seconds", [20 * 86400.0, 1234567.0, 0.25])
def test_an_age_is_read_as_it_was_written(seconds: float) -> None:
    policy = replace(IDS, max_unindexed_seconds=seconds)
    assert policies_of_table(table(json.dumps([entry_of(policy)]))) == (policy,)
