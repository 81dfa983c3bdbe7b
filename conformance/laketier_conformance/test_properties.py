"""Properties of tables that are there: changed by who saw their value, beside rounds."""

from __future__ import annotations

import pytest

from laketier.spi import Conflict, Feature, SetProperty, TableChanged, TableInfo, Watermark
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import Lake, Table, ids_of, token

NAME = "acme.note"
STAYS = {"acme.other": "stays", f"{NAME}.more": "stays", NAME[:-1]: "stays"}
"""Some of them have names that begin alike."""


@pytest.fixture
def noted(lake: Lake) -> Table:
    """Two properties, and an epoch of rows."""
    table = lake.create(name="db.noted", properties={NAME: "one", **STAYS})
    table.append(0)
    return table


def _set(table: Table, value: str | None, before: str | None) -> TableInfo:
    return table.lake.storage.catalog().alter_table(table.path, [SetProperty(NAME, value, before)])


@pytest.mark.needs(Feature.SET_PROPERTY)
def test_a_property_is_changed_alone(noted: Table) -> None:
    schema, mark = noted.info.schema_fingerprint, noted.watermark()
    for before, value in (("one", "two"), ("two", ""), ("", None), (None, 'ü "quoted" {}')):
        wanted = STAYS if value is None else {NAME: value, **STAYS}
        expect(dict(_set(noted, value, before).descriptor.properties), wanted, "the properties that a change returned")
        expect(dict(noted.info.descriptor.properties), wanted, "the properties after one was changed")
    expect(noted.ids, ids_of(0), "rows after a property was changed")
    expect(noted.watermark(), mark, "the watermark after a property was changed")
    expect(noted.info.schema_fingerprint, schema, "the fingerprint of the schema after a property was changed")
    noted.append(1)
    expect(noted.ids, ids_of(0) + ids_of(1), "rows of the round after a property was changed")
    expect(noted.info.descriptor.properties[NAME], 'ü "quoted" {}', "a changed property after a round")


@pytest.mark.needs(Feature.SET_PROPERTY)
def test_a_property_that_another_one_changed_is_left(noted: Table) -> None:
    _set(noted, "two", "one")
    for value, before in (("three", "one"), ("three", None), (None, "one")):
        with refused(TableChanged, "a property is changed by who saw another value"):
            _set(noted, value, before)
    with refused(TableChanged, "two properties are changed in one step, by who saw another value of the second"):
        changes = [SetProperty(NAME, "three", "two"), SetProperty("acme.other", "three", "two")]
        noted.lake.storage.catalog().alter_table(noted.path, changes)
    with refused(TableChanged, "a property that is not there is changed by who saw an empty one"):
        noted.lake.storage.catalog().alter_table(noted.path, [SetProperty("acme.new", "three", "")])
    expect(dict(noted.info.descriptor.properties), {NAME: "two", **STAYS}, "the properties after changes were refused")
    snapshot = noted.info.snapshot_id
    expect(_set(noted, "two", "one").snapshot_id, snapshot, "the snapshot after a change was made twice")
    both = {NAME: "four", "acme.other": None}
    changes = [SetProperty(name, value, noted.info.descriptor.properties[name]) for name, value in both.items()]
    noted.lake.storage.catalog().alter_table(noted.path, changes)
    found = {name: noted.info.descriptor.properties.get(name) for name in both}
    expect(found, both, "two properties that were changed in one step, the second of which was removed")


@pytest.mark.needs(Feature.SET_PROPERTY)
def test_a_round_that_began_before_keeps_a_changed_property(noted: Table) -> None:
    """It may be refused, as any round that was outrun. It must not bring the old value back."""
    committer = noted.committer()
    state = committer.open()
    _set(noted, "two", "one")
    landed = ids_of(1)
    try:
        committer.publish(state, [noted.staged(ids_of(1))], Watermark(token(1), "began-before"))
    except Conflict:
        landed = []
    committer.close()
    expect(noted.info.descriptor.properties[NAME], "two", "a changed property after a round that began before")
    expect(noted.ids, ids_of(0) + landed, "rows after a round that began before a property was changed")
