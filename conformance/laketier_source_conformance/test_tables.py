"""The tables of a source: their names, and what is told of each."""

from __future__ import annotations

from contextlib import suppress

import pytest

from laketier.spi import ConfigError, StorageError, TableNotFound
from laketier_conformance.expect import expect, refused
from laketier_source_conformance.reads import carried, read_range, read_splits, whole
from laketier_source_conformance.system import ORIGIN, CannotBe, System, Table, ordered

_ALIKE = ("orders", "orders2", "Orders", "order s", "orders.eu", "größe")
_LONG = "a_name_that_is_longer_than_the_63_letters_of_an_identifier_in_postgresql"
_TAKEN = ("orders_", "orders%", "orders[2]", "orders?", "*", "gro\u0308ße", f"{_LONG}_1", f"{_LONG}_2")
"""Patterns that fit the names of others, another spelling of one, and names that are alike until late."""


def test_tables_are_listed(system: System) -> None:
    made = [system.table(name).listed for name in ("b", "a")]
    found = system.source().list_tables()
    expect(found, sorted(found), "`list_tables` gives names in order")
    expect(len(set(found)), len(found), "`list_tables` gives each name once")
    assert set(made) <= set(found), f"`list_tables` leaves out a table: expected {made}, found {found}"


def test_tables_of_names_alike_are_each_listed(system: System) -> None:
    """A listing that goes on behind a name has to compare names as its system does."""
    made: dict[str, Table] = {}
    for name in (*_ALIKE, "Z", "a", "B1", "b0", "orders ", *_TAKEN):
        with suppress(ValueError):
            made[name] = system.table(name)
    found = system.source().list_tables()
    listed = sorted(table.listed for table in made.values())
    expect([name for name in listed if name not in found], [], "of names alike, those that are not listed")
    expect(found, sorted(found), "`list_tables` gives names in order")
    asked = {name: table for name, table in made.items() if name in (*_ALIKE[:2], *_TAKEN)}
    for count, table in enumerate(asked.values(), 1):  # so no two have as many rows
        table.append(count)
    for name, table in asked.items():
        table.expect_rows(read_range(table.log()).rows, f"a table {name!r} is read beside others of names alike")


def test_each_listed_table_opens(system: System) -> None:
    for name in ("b", "a"):
        system.table(name).append(1)
    source = system.source()
    for name in source.list_tables():
        log = source.open(name, system.harness.table_options)
        system.closes(log)
        expect(log.table.name, name, "the table of a log has the name by which it was opened")


def test_a_table_that_is_made_later_is_listed_by_the_same_source(system: System) -> None:
    system.table("a")
    source = system.source()
    source.list_tables()
    system.table("b").append(1)
    found = source.list_tables()
    assert system.harness.listed("b") in found, f"a table was made after a source was opened: found {found}"


@pytest.mark.parametrize("name", ["nowhere", "t2", "T", "t ", "t/", "../t", "", "."])
def test_an_unknown_table_is_not_found(system: System, table: Table, name: str) -> None:
    table.append(1)
    source = system.source()
    before = source.list_tables()
    for again in ("", ", once more"):  # who asks for it must not make it
        with refused((TableNotFound, ConfigError), f"a source without a table {name!r} opens it{again}"):
            source.open(system.harness.listed(name), system.harness.table_options)
    expect(source.list_tables(), before, f"`list_tables` after a table {name!r} was asked for, which is not there")


def test_a_table_that_is_dropped_is_told(system: System, table: Table) -> None:
    """A round that is under way may lose it, and a union read asks for its identity in each of its tasks."""
    table.append(3)
    source, log = system.source(), table.log()
    bounds, wanted = log.bounds(), whole(log.bounds())
    splits = list(log.plan(wanted))
    table.ask("drop_table")
    for doing, one in (("the same source", source), ("a source that was opened anew", system.source())):
        assert table.listed not in one.list_tables(), f"a table was dropped: {doing} still lists {table.listed!r}"
        with refused((TableNotFound, ConfigError), f"a table that was dropped is opened by {doing}"):
            one.open(table.listed, system.harness.table_options)
    for doing, ask, whole_one in (
        ("`bounds` is asked for", log.bounds, bounds),
        ("a range is planned and read", lambda: ordered(read_range(log, wanted).rows), ordered(table.rows)),
        ("a split is read", lambda: ordered(read_splits(carried(log), splits).rows), ordered(table.rows)),
    ):
        try:
            found = ask()
        except Exception:  # noqa: BLE001 - any error will do
            continue
        expect(found, whole_one, f"{doing} of a table that was dropped, without an error")
    told = "`TableLog.identify` of a table that was dropped: expected None or TableNotFound"
    try:
        identity = carried(log.log).identify()
    except (TableNotFound, StorageError):  # who can't tell it from a system that does not answer is asked once more
        return
    except Exception as error:
        raise AssertionError(f"{told}, found {type(error).__name__}({str(error)[:200]})") from error
    assert identity is None, f"{told}, found {identity!r}"


@pytest.mark.parametrize("name", _ALIKE[1:])
def test_tables_of_names_alike_have_their_own_rows(system: System, name: str) -> None:
    first = system.table(_ALIKE[0])
    try:
        second = system.table(name)
    except ValueError as error:
        raise CannotBe(f"a table {name!r}: {error}") from error
    first.append(3)
    second.append(4)
    first.expect_rows(read_range(first.log()).rows, f"a table is read beside one named {name!r}")
    second.expect_rows(read_range(second.log()).rows, f"a table {name!r} is read beside one named {_ALIKE[0]!r}")


def test_a_table_is_the_same_whoever_opens_it(table: Table) -> None:
    before = table.log().table
    table.append()
    after = table.log().table
    expect(after.table_id, before.table_id, "`table_id` after rows were appended")
    expect(after.schema, before.schema, "the columns of a table after rows were appended")
    expect(after, before, "`TableLog.table` after rows were appended")


@pytest.mark.parametrize("what", ["add_bucket", "compact", "expire", "rename_column", "leave_gap", "update_rows"])
def test_a_table_stays_the_same_whatever_becomes_of_its_rows(table: Table, what: str) -> None:
    """A table of another identity counts as one that was dropped and made again."""
    table.append(12)
    before = table.log().table.table_id
    table.ask(what)
    expect(table.log().table.table_id, before, f"`table_id` of a table after `{what}` of the harness")


def test_rows_have_the_columns_of_the_table(table: Table) -> None:
    rows = table.append(2)
    expect(set(table.log().table.schema.names), set(rows[0]), "the columns of a table are those of its rows")


def test_keys_and_partitions_are_columns_of_the_table(table: Table) -> None:
    """As the columns are spelt: the lake table is made of them."""
    table.append(2)
    described = table.log().table
    names, buckets = set(described.schema.names), described.buckets
    change = () if described.change_column is None else (described.change_column,)
    for what, named in {
        "primary_key": described.primary_key,
        "partition_by": [each.column for each in described.partition_by],
        "buckets": () if buckets is None else buckets.keys,
        "change_column": change,
        "former_names": described.former_names,
    }.items():
        expect(sorted(set(named) - names), [], f"`{what}` of a table names its columns: those that it has not")
    keys = [tuple(row[name] for name in described.primary_key) for row in read_range(table.log()).rows]
    nulls = [key for key in keys if None in key]
    expect(nulls, [], "keys of rows that are null")


def test_tables_have_identities_of_their_own(system: System) -> None:
    ids = {name: system.table(name).log().table.table_id for name in ("a", "b")}
    assert ids["a"] != ids["b"], f"two tables have the same `table_id`: {ids['a']!r}"


def test_an_unknown_option_is_refused(system: System, table: Table) -> None:
    table.append(1)
    source = system.source()
    with refused(ConfigError, "a table is opened with an option that the source has not"):
        source.open(table.listed, {**system.harness.table_options, "no-such-option": "1"})
    with refused(ConfigError, "a source is opened with an option that it has not"):
        _opened(system)


def _opened(system: System) -> None:
    from laketier.registry import open_log_source

    options = {**system.harness.source_options, "no-such-option": "1"}
    open_log_source(system.kind, options, name="tested", origin=ORIGIN).close()


def test_a_log_keeps_the_table_that_it_was_opened_with(table: Table) -> None:
    log = table.log()
    before = log.log.table
    table.append()
    log.bounds()
    expect(log.log.table, before, "`TableLog.table` is the table as it was when the log was opened")
