"""`LakeCatalog.table_version`: what is kept of a table is served as long as the name of its state stays."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.spi import AddColumn, Feature, LakeCatalog, SetProperty, WriteMode
from laketier_conformance.expect import expect
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_conformance.outside import local_folder

EXTRA = pa.field("extra", pa.string())


def _version(table: Table, known: str | None = None) -> str | None:
    return table.lake.storage.catalog().table_version(table.path, known)


def _changed(table: Table, before: list[str | None], what: str) -> None:
    """The state has a name that it never had, whatever the caller knew. A format that can't tell it says None."""
    now = _version(table)
    assert now is None or now not in before, f"{what}, and its version has the name that it had before"
    for known in before:
        expect(_version(table, known), now, f"{what}: the version that is told to who knew an earlier one")
    before.append(now)


def test_the_version_of_a_table_stays_while_nothing_changes(table: Table) -> None:
    table.append(0)
    table.info  # noqa: B018 - whoever looks may settle what the commit left
    version = _version(table)
    expect(_version(table), version, "the version of a table that did not change, from a catalog opened again")
    expect(_version(table, version), version, "the version of a table that did not change, to who knew it")
    catalog = table.lake.storage.catalog()
    first = catalog.load_table(table.path)
    expect(catalog.table_version(table.path), version, "the version of a table that was loaded, and did not change")
    expect(first, catalog.load_table(table.path), "a table of one version, loaded twice")


def test_a_commit_gives_a_table_another_version(table: Table) -> None:
    seen = [_version(table)]
    for epoch in range(2):
        table.append(epoch)
        _changed(table, seen, "rows were appended to the table")


def test_dates_of_files_name_no_state(table: Table, unproven: Callable[[str, str], None]) -> None:
    """Two commits may share one date: a clock of files ticks some hundred times a second, and may be put back."""
    root, seen = local_folder(table.lake.location), [_version(table)]
    if root is None:
        unproven("versions beside dates of files", "the warehouse is no local folder")
        return
    for epoch in range(2):
        dates = _dates(root)
        table.append(epoch)
        for path in _dates(root):
            date = dates.get(path, max(dates.values()))
            with suppress(FileNotFoundError):  # a thread of the format's own may tidy up
                os.utime(path, ns=(date, date), follow_symlinks=False)
        _changed(table, seen, "rows were appended to the table, and its files and folders have the dates of before")


def _dates(root: Path) -> dict[Path, int]:
    """When each file and folder was changed, in ns."""
    found = {}
    for path in (root, *root.rglob("*")):
        with suppress(FileNotFoundError):
            found[path] = path.lstat().st_mtime_ns
    return found


@pytest.mark.needs(Feature.OVERWRITE)
def test_an_overwrite_gives_a_table_another_version(table: Table) -> None:
    table.append(0)
    seen = [_version(table)]
    table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    _changed(table, seen, "the table was overwritten")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_new_column_gives_a_table_another_version(table: Table) -> None:
    seen = [_version(table)]
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(EXTRA)])
    _changed(table, seen, "a column was added to the table")


@pytest.mark.needs(Feature.SET_PROPERTY)
def test_a_changed_property_gives_a_table_another_version(table: Table) -> None:
    """Some of them say how a table is read or written."""
    seen = [_version(table)]
    for value, before in (("one", None), ("two", "one"), (None, "two")):
        table.lake.storage.catalog().alter_table(table.path, [SetProperty("acme.note", value, before)])
        _changed(table, seen, f"a property of the table became {value!r}")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_that_is_made_anew_has_another_version(lake: Lake) -> None:
    """With as many commits as the dropped one had, so that a count alone does not tell them apart."""
    seen: list[str | None] = []
    for run in range(3):
        table = lake.create()
        _changed(table, seen, "the table was dropped and made anew")
        table.append(0, [run])
        _changed(table, seen, "the table was dropped, made anew, and as many rows were appended")
        lake.storage.catalog().drop_table(table.path)
        expect(_version(table, seen[-1]), None, "the version of a table that was dropped, to who knew it")


def test_a_table_that_is_not_there_has_no_version(lake: Lake) -> None:
    lake.create(name="db.other")
    missing = lake.table("db.missing")
    expect(_version(missing), None, "the version of a table that is not there")
    expect(_version(missing, _version(lake.table("db.other"))), None, "the same, to who knew another table's version")


def test_a_format_that_names_states_names_each(table: Table) -> None:
    """One that has a `table_version` of its own, and says None of a table at rest, has it loaded again for each look:
    nothing that is kept of it is ever served."""
    catalog = table.lake.storage.catalog()
    if type(catalog).table_version is LakeCatalog.table_version:
        return
    for epoch in range(3):
        table.info  # noqa: B018 - whoever looks may settle what the commit left
        assert _version(table) is not None, f"after {epoch} rounds, all of which went well, the table has no version"
        table.append(epoch)


def test_what_a_handle_takes_is_told_of_each_handle(table: Table) -> None:
    """By a format that has a `handle_bytes` of its own: a handle of unknown size is not kept."""
    catalog = table.lake.storage.catalog()
    if type(catalog).handle_bytes is LakeCatalog.handle_bytes:
        return
    table.append(0)
    loaded = catalog.load_table(table.path)
    assert loaded.handle is None or catalog.handle_bytes(loaded), "the bytes of a table's handle are not known, or 0"


def test_what_a_handle_takes_is_a_number_or_unknown(table: Table) -> None:
    for epoch in range(2):
        catalog = table.lake.storage.catalog()
        size = catalog.handle_bytes(catalog.load_table(table.path))
        assert size is None or (type(size) is int and size >= 0), f"the bytes of a handle are {size!r}"
        size = catalog.handle_bytes(pickle.loads(pickle.dumps(table.info)))  # noqa: S301 - as engines do
        assert size in (None, 0), f"a description that was pickled has no handle, and its bytes are {size!r}"
        table.append(epoch)


def test_a_version_that_was_never_told_is_none(table: Table) -> None:
    """A cache may hold what another release wrote, or half of it. It is no version, and no error: the right one is
    told."""
    table.append(0)
    table.info  # noqa: B018 - whoever looks may settle what the commit left
    now = _version(table)
    for known in ("", " ", "/", "0", "../x", "x" * 300, "0" * 40, "\n", *_mangled(now or "1/2/3")):
        if known != now:
            expect(_version(table, known), now, f"the version of a table, to who says that it knew {known!r}")


def _mangled(version: str) -> list[str]:
    """Texts that are nearly a version: parts left out, doubled and cut, and another table or number."""
    found = [version[1:], version[:-1], version * 2]
    for separator in "/:.-":
        parts = version.split(separator)
        for at in range(len(parts) if len(parts) > 1 else 0):
            found += [separator.join([*parts[:at], *other, *parts[at + 1 :]]) for other in ([], [parts[at], parts[at]])]
        found += [separator.join([*parts[:1], "x" * 9, *parts[2:]]), separator.join(["x" * 9, *parts[1:]])]
    return found


def test_a_table_at_its_newest_version_is_that_version(table: Table) -> None:
    """Whoever holds the newest state says so, though a commit by others was made through another catalog, and is told
    of each that comes."""
    table.append(0)
    catalog = table.lake.storage.catalog()
    for epoch in range(1, 4):
        loaded = catalog.load_table(table.path)
        version = catalog.table_version(table.path)
        table.append(epoch)
        now = catalog.load_table(table.path)
        then = catalog.table_version(table.path, version)
        assert version is None or then != version, (
            f"epoch {epoch} was published: who knew snapshot {loaded.snapshot_id} is told that it is the newest, and "
            f"it is {now.snapshot_id}"
        )
