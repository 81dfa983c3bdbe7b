"""Tables whose pointer in the embedded catalog is lost, with their rows still there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from laketier.spi import CorruptTable, StorageError, TableNotFound, TablePath, new_attempt_id
from laketier_conformance.outside import everything, touched
from laketier_iceberg import lost, removal


def _is_refused(events: Any) -> None:
    catalog, path = events.storage.catalog(), events.info.path
    for look in (catalog.load_table, lambda _: catalog.create_table(path, events.info.descriptor)):
        with pytest.raises(CorruptTable, match="the catalog does not know the table, and its files are there"):
            look(path)


def test_a_table_that_the_catalog_lost_is_not_made_anew(events: Any, warehouse: Path) -> None:
    """By the file of the catalog that is gone, or by its row. One without rows can be made again."""
    catalog, info = events.storage.catalog(), events.info
    warehouse_file = Path(warehouse, "catalog.db")
    first = events.table()
    first.catalog.drop_table(first.name())
    with pytest.raises(TableNotFound):
        catalog.load_table(info.path)
    first.catalog.register_table(first.name(), first.metadata_location)
    events.round(events.token(0), events.batch(0, 3))
    table = events.table()
    folder = Path(table.location())
    before = everything(folder)
    aside = warehouse_file.rename(warehouse_file.with_name("aside"))
    _is_refused(events)
    assert not warehouse_file.exists()
    aside.rename(warehouse_file)
    table.catalog.drop_table(table.name())
    _is_refused(events)
    assert touched(before, everything(folder)) == []
    table.catalog.register_table(table.name(), table.metadata_location)
    assert events.ids() == [0, 1, 2]


def test_a_mark_that_can_not_be_made_is_told_as_a_failure_of_the_storage(
    events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is there still."""
    events.round(events.token(0), events.batch(0, 3))

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(lost, "fsync_file", full)
        with pytest.raises(StorageError, match="refused while a table was dropped, because no space left on device"):
            events.storage.catalog().drop_table(events.info.path)
    assert events.ids() == [0, 1, 2]


def test_a_handle_that_is_asked_for_again_is_fresh(events: Any) -> None:
    seen = [events.storage.load(events.info.path).metadata.current_snapshot_id]
    for epoch in range(2):
        events.round(events.token(epoch), events.batch(epoch, epoch + 1))
        seen.append(events.storage.load(events.info.path).metadata.current_snapshot_id)
    assert len(set(seen)) == 3


def test_a_drop_that_was_killed_at_its_start_hides_no_later_loss(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 3))
    table = events.table()
    mark = lost.mark_of_drop(Path(table.location()), str(table.metadata.table_uuid), table.metadata_location)
    assert mark == lost.mark_of_drop(Path(table.location()), str(table.metadata.table_uuid), table.metadata_location)
    assert lost.lost_metadata(Path(table.location())) is None
    events.round(events.token(1), events.batch(3, 6))
    table = events.table()
    table.catalog.drop_table(table.name())
    _is_refused(events)


def test_what_a_driver_leaves_that_commits_beside_a_drop_is_no_lost_table(events: Any) -> None:
    """Nothing before its own metadata is there. A file that is cut short is of no table either."""
    events.round(events.token(0), events.batch(0, 3))
    events.round(events.token(1), events.batch(3, 6))
    table = events.table()
    newest = Path(table.metadata_location)
    content = newest.read_bytes()
    events.storage.catalog().drop_table(events.info.path)
    newest.parent.mkdir(parents=True)
    newest.write_bytes(content)
    newest.with_name(f"00009-{new_attempt_id()}.metadata.json").write_bytes(content[:100])
    with pytest.raises(TableNotFound):
        events.storage.catalog().load_table(events.info.path)
    newest.with_name(Path(table.metadata.metadata_log[-1].metadata_file).name).touch()
    _is_refused(events)


def test_of_two_drops_the_second_leaves_no_mark(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It made one again, after the first had deleted its own."""
    events.round(events.token(0), events.batch(0, 3))
    table = events.table()
    catalog, folder = events.storage.catalog(), Path(table.location())

    def late(place: Path, table_uuid: str, metadata: str) -> str | None:
        monkeypatch.undo()
        catalog.drop_table(events.info.path)
        assert lost.mark_of_drop(place, table_uuid, metadata) is None
        (place / "metadata").mkdir(parents=True)
        return lost.mark_of_drop(place, table_uuid, metadata)

    monkeypatch.setattr(removal, "mark_of_drop", late)
    with pytest.raises(TableNotFound):
        catalog.drop_table(events.info.path)
    assert not folder.exists()


def test_a_table_that_got_another_name_is_not_lost(events: Any) -> None:
    """Its files stay in the folder of its first name, which is free for another table."""
    events.round(events.token(0), events.batch(0, 3))
    table, catalog, path = events.table(), events.storage.catalog(), events.info.path
    renamed = TablePath(path.database, "renamed")
    table.catalog.rename_table(table.name(), (renamed.database, renamed.table))
    with pytest.raises(TableNotFound):
        catalog.load_table(path)
    assert catalog.create_table(path, events.info.descriptor).snapshot_id is None
    catalog.drop_table(path)
    info = catalog.load_table(renamed)
    assert type(events)(events.storage, info, events.storage.tiering_factory(info)).ids() == [0, 1, 2]
    table.catalog.drop_table((renamed.database, renamed.table))
    _is_refused(events)
    table.catalog.register_table((renamed.database, renamed.table), info.handle.metadata_location)
    catalog.drop_table(renamed)
    with pytest.raises(TableNotFound):
        catalog.load_table(path)


def test_a_drop_that_leaves_the_files_frees_the_name(events: Any, warehouse: Path) -> None:
    """Other tools spell the place of a table in another way."""
    events.round(events.token(0), events.batch(0, 3))
    path = TablePath("db", "theirs")
    place = warehouse / "db" / "theirs"
    theirs = events.table().catalog.create_table(("db", "theirs"), events.table().schema(), location=f"file:{place}")
    theirs.append(events.table().scan().to_arrow())
    events.storage.catalog().drop_table(path)
    assert list(place.rglob("*.metadata.json"))
    assert events.storage.catalog().create_table(path, events.info.descriptor).snapshot_id is None


@pytest.mark.parametrize("epochs", [1, 3])
def test_what_a_killed_commit_left_keeps_no_name_of_a_table_whose_files_stay(
    events: Any, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    """Its metadata are newer than those that were dropped, and name a snapshot with rows."""
    for epoch in range(epochs):
        events.round(events.token(epoch), events.batch(0, 3))
    table, path = events.table(), events.info.path
    table.transaction().set_properties({"gc.enabled": "false"}).commit_transaction()
    write = SqlCatalog._write_metadata

    def killed(**arguments: Any) -> None:
        write(**arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(SqlCatalog, "_write_metadata", staticmethod(killed))
    with pytest.raises(KeyboardInterrupt):
        events.round(events.token(epochs), events.batch(3, 6))
    monkeypatch.undo()
    last = events.table()
    catalog, place = events.storage.catalog(), Path(last.location())
    catalog.drop_table(path)
    left = [f for f in place.glob("metadata/*.metadata.json") if f.name > Path(last.metadata_location).name]
    assert left
    with pytest.raises(TableNotFound):
        catalog.load_table(path)
    assert catalog.create_table(path, events.info.descriptor).snapshot_id is None
    catalog.drop_table(path)
    # What is committed once somebody has registered it again is not meant by the mark.
    last.catalog.register_table(last.name(), last.metadata_location)
    events.round(events.token(epochs), events.batch(3, 6))
    last.catalog.drop_table(last.name())
    _is_refused(events)


def test_a_drop_of_a_table_of_another_place_marks_nothing_there(events: Any, tmp_path: Path) -> None:
    theirs = events.table().catalog.create_table(
        ("db", "theirs"), events.table().schema(), location=str(tmp_path / "elsewhere")
    )
    before = everything(Path(theirs.location()))
    events.storage.catalog().drop_table(TablePath("db", "theirs"))
    assert touched(before, everything(Path(theirs.location()))) == []


def test_of_the_marks_of_a_table_that_was_registered_again_the_latest_counts(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 3))
    table = events.table()
    metadata = Path(table.location(), "metadata")
    for digits in range(1, 10):
        (metadata / f"{table.metadata.table_uuid}-{'0' * digits}.dropped").touch()
    table.catalog.drop_table(table.name())
    _is_refused(events)
    lost.mark_of_drop(Path(table.location()), str(table.metadata.table_uuid), table.metadata_location)
    with pytest.raises(TableNotFound):
        events.storage.catalog().load_table(events.info.path)


def test_a_drop_needs_no_hard_links(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite and Iceberg need none, and some mounted disks have none."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError("no links here")

    events.round(events.token(0), events.batch(0, 3))
    monkeypatch.setattr(os, "link", refused)
    events.storage.catalog().drop_table(events.info.path)
    assert not Path(events.info.location).exists()
