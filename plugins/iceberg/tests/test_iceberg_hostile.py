"""Tables that share a location, and metadata that names files of others."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from laketier.spi import AddColumn, FeatureNotSupported, OutsideTable, Passthrough, TableNotFound, TablePath
from laketier_conformance.outside import everything, touched
from laketier_iceberg import neighbours
from laketier_iceberg.locations import Below
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.removal import delete_old_metadata, drop

EVER = 1 << 53


def maintenance(table: Any) -> Any:
    return table.storage.maintenance(table.storage.catalog().load_table(table.info.path))


def second_at(events: Any, location: str, name: str = "second") -> Any:
    """Another table of the same catalog, as any other tool makes one, at a location of its choice."""
    catalog = events.table().catalog
    catalog.create_table(("db", name), events.table().schema(), location=location)
    info = events.storage.catalog().load_table(TablePath("db", name))
    return type(events)(events.storage, info, events.storage.tiering_factory(info))


@pytest.mark.parametrize("below", ["", "/data/inner", "/metadata/inner"])
def test_two_tables_at_one_location_lose_nothing(events: Any, below: str) -> None:
    """Each takes the other's live files for orphans of its own."""
    events.round(events.token(0), events.batch(0, 10))
    second = second_at(events, events.info.location + below)
    for epoch in range(5):
        second.round(second.token(epoch), second.batch(epoch, epoch + 1))
    before = everything(Path(events.info.location))
    for table in (events, second) if not below else (events,):
        with pytest.raises(FeatureNotSupported, match="location"):
            maintenance(table).orphans(EVER)
    assert touched(before, everything(Path(events.info.location))) == []
    assert (events.ids(), second.ids()) == (list(range(10)), list(range(5)))


def test_a_table_of_another_catalog_is_known_by_its_metadata(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    second = second_at(events, events.info.location)
    second.round(second.token(0), second.batch(0, 1))
    events.table().catalog.drop_table(("db", "second"))  # and now only another catalog might know it
    with pytest.raises(FeatureNotSupported, match=r"metadata\.json below the table's location is not the table's"):
        maintenance(events).orphans(EVER)


def test_a_table_beside_it_hinders_nothing(events: Any, make: Any) -> None:
    other = make(name="events_more")
    other.round(other.token(0), other.batch(0, 1))
    events.round(events.token(0), events.batch(0, 10))
    staged = events.stage(events.batch(0, 1))
    time.sleep(0.01)
    assert [file.path for file in maintenance(events).orphans(EVER)] == [staged.files[0].path]


def test_a_drop_takes_no_other_table_s_files(events: Any) -> None:
    events.round(events.token(0), events.batch(0, 10))
    second = second_at(events, events.info.location)
    second.round(second.token(0), second.batch(0, 1))
    events.storage.catalog().drop_table(events.info.path)
    assert second.ids() == [0]


@pytest.mark.parametrize("below", ["", "/data/inner", "/sub"])
def test_a_drop_takes_no_files_of_another_catalog(events: Any, below: str, tmp_path: Path) -> None:
    events.round(events.token(0), events.batch(0, 10))
    theirs = SqlCatalog("theirs", uri=f"sqlite:///{tmp_path}/theirs.db", warehouse=str(tmp_path / "theirs"))
    theirs.create_namespace("x")
    other = theirs.create_table(("x", "o"), events.table().schema(), location=events.info.location + below)
    other.append(other.scan().to_arrow().schema.empty_table())
    before = everything(Path(events.info.location))
    events.storage.catalog().drop_table(events.info.path)
    mark, folder = touched(before, everything(Path(events.info.location)))
    assert (mark.rpartition(".")[2], folder) == ("dropped", "metadata")
    assert not events.storage.catalog().list_tables()


@pytest.mark.parametrize("damage", ['{"format-version": 4}', "{", "[]", '{"location": 7}'])
def test_a_drop_takes_no_files_of_a_table_that_can_not_be_read(events: Any, damage: str, tmp_path: Path) -> None:
    """It says nowhere that its data is here and its metadata elsewhere, as it can't be read."""
    events.round(events.token(0), events.batch(0, 10))
    second = second_at(events, str(tmp_path / "second"))
    data = Path(events.info.location, "data", "second.parquet")
    data.write_text("theirs")
    Path(second.table().metadata_location.removeprefix("file://")).write_text(damage)
    events.storage.catalog().drop_table(events.info.path)
    assert data.exists()


def test_a_newer_table_elsewhere_is_no_reason_to_keep_files(events: Any, tmp_path: Path) -> None:
    """pyiceberg can't parse version 4, and the file says all the same where the table is."""
    events.round(events.token(0), events.batch(0, 10))
    second = second_at(events, str(tmp_path / "second"))
    path = Path(second.table().metadata_location.removeprefix("file://"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "format-version": 4}))
    events.storage.catalog().drop_table(events.info.path)
    assert not Path(events.info.location).exists()


def test_a_drop_leaves_the_files_where_the_table_says_so(events: Any, caplog: pytest.LogCaptureFixture) -> None:
    events.round(events.token(0), events.batch(0, 10))
    with events.table().transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    before = everything(Path(events.info.location))
    events.storage.catalog().drop_table(events.info.path)
    *marks, folder = touched(before, everything(Path(events.info.location)))
    assert folder == "metadata"
    assert [mark.rpartition(".")[2] for mark in marks] == ["dropped"]
    assert "gc.enabled is false" in caplog.text
    assert events.storage.catalog().create_table(events.info.path, events.info.descriptor).snapshot_id is None


def test_a_drop_that_leaves_the_files_reads_none_of_them(make: Any, tmp_path: Path) -> None:
    """Those that others keep may be gone already."""
    theirs = IcebergOptions(catalog=Passthrough({"type": "sql", "uri": f"sqlite:///{tmp_path}/theirs.db"}))
    events = make(options=theirs, properties={"gc.enabled": "false"})
    events.round(events.token(0), events.batch(0, 10))
    Path(events.table().current_snapshot().manifest_list.removeprefix("file://")).unlink()
    before = everything(Path(events.info.location))
    events.storage.catalog().drop_table(events.info.path)
    assert touched(before, everything(Path(events.info.location))) == []
    with pytest.raises(TableNotFound):
        events.storage.catalog().load_table(events.info.path)


def test_the_server_drops_a_table_of_its_own(events: Any) -> None:
    """It knows what lies where, and takes the table out of its list."""
    asked: list[tuple[str, ...]] = []
    server: Any = SimpleNamespace(purge_table=asked.append)
    before = everything(Path(events.info.location))
    drop(server, events.table(), own_folder=None)
    assert asked == [("db", "events")]
    assert touched(before, everything(Path(events.info.location))) == []


def test_neighbours_are_looked_for_without_loading_tables(
    events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        second_at(events, str(tmp_path / name), name)
    events.round(events.token(0), events.batch(0, 10))
    table = events.table()
    read: list[str] = []
    stored = neighbours.document
    monkeypatch.setattr(neighbours, "document", lambda *given: (read.append(given[1]), stored(*given))[1])
    with monkeypatch.context() as patched:
        patched.setattr(type(table.catalog), "load_table", None)
        for _ in range(3):
            assert neighbours.neighbour(table.catalog, table, Below(table.location())) is None
    assert len(read) == 3
    second_at(events, f"{events.info.location}/data/inner", "d")
    assert neighbours.neighbour(table.catalog, table, Below(table.location())) == "db.d"


def test_old_metadata_is_deleted_below_the_table_alone(events: Any, tmp_path: Path) -> None:
    """The metadata log of a table names files that are deleted after a commit: any, if somebody else wrote it."""
    events.round(events.token(0), events.batch(0, 1))
    table = events.table()
    canaries = [tmp_path / "canary", tmp_path / "v1.metadata.json", Path(table.location()) / "data" / "canary"]
    for canary in canaries:
        canary.write_text("theirs")
    linked = Path(table.location()) / "metadata" / "linked"
    linked.symlink_to(tmp_path)
    own = Path(table.location()) / "metadata" / "00000-old.metadata.json"
    own.write_text("{}")
    entry = type(table.metadata.metadata_log[0])
    named = [
        *map(str, canaries),
        f"{linked}/v1.metadata.json",
        f"{table.location()}/metadata/../../../../canary",
        str(own),
    ]
    forged = table.metadata.model_copy(
        update={"metadata_log": [entry(metadata_file=name, timestamp_ms=1) for name in named]}
    )
    clean = table.metadata.model_copy(update={"metadata_log": []})
    delete_old_metadata(table.io, forged, clean)
    assert [canary.read_text() for canary in canaries] == ["theirs"] * 3
    assert not own.exists()
    current = Path(table.metadata_location)
    stored = json.loads(current.read_text())
    stored["metadata-log"] = [{"metadata-file": name, "timestamp-ms": 1} for name in named]
    stored["properties"]["write.metadata.previous-versions-max"] = "1"
    current.write_text(json.dumps(stored))
    events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("more", pa.int64()))])
    assert [entry.metadata_file for entry in events.table().metadata.metadata_log] == [str(current)]
    assert [canary.read_text() for canary in canaries] == ["theirs"] * 3, "so it is when the schema changes"


def test_a_link_in_the_place_of_the_data_folder_is_refused(events: Any, make: Any) -> None:
    other = make(name="other")
    other.round(other.token(0), other.batch(0, 1))
    events.round(events.token(0), events.batch(0, 1))
    data, theirs = (Path(table.info.location) / "data" for table in (events, other))
    staged = events.stage(events.batch(1, 2))
    data.rename(data.with_name("aside"))
    data.symlink_to(theirs)
    before = everything(theirs)
    with pytest.raises(OutsideTable, match="symbolic link"):
        events.round_of(events.token(1), staged)
    committer = events.committer()
    committer.discard([staged])
    assert touched(before, everything(theirs)) == []
    assert json.loads(Path(other.table().metadata_location).read_text())["table-uuid"] == other.info.table_uuid
