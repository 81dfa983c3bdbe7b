"""A table's metadata choose no code, server or account by which its files are opened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyiceberg.io
import pytest
from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.update import SetPropertiesUpdate

from laketier.spi import ConfigError, PluginBroken, TablePath
from laketier_iceberg.connection import connect
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.private import by_catalog_alone
from laketier_iceberg.table_properties import refuse_opening

FILE_IO = "py-io-impl"
NAMES_OF_PYICEBERG = sorted(
    text
    for name, text in vars(pyiceberg.io).items()
    if name.startswith(("AWS_", "S3_", "HDFS_", "ADLS_", "GCS_", "HF_", "PY_IO_IMPL")) and isinstance(text, str)
    if not name.endswith("_DEFAULT")
)
MODULE = "strangers_code"
HOSTILE = '''"""What a stranger would like to run."""
from pyiceberg.io.pyarrow import PyArrowFileIO as FileIO
from pyiceberg.table.locations import SimpleLocationProvider as Provider
'''


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that can be imported, and that nobody should."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / f"{MODULE}.py").write_text(HOSTILE)
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    return MODULE


def write_properties(events: Any, properties: dict[str, str]) -> None:
    """As another tool that has the catalog does, which knows nothing of laketier."""
    own = connect(events.storage._settings)
    theirs = SqlCatalog(own.name, **{key: text for key, text in own.properties.items() if key != FILE_IO})
    table = theirs.load_table(str(events.info.path))
    theirs.commit_table(table, (), (SetPropertiesUpdate(updates=properties),))
    theirs.close()
    sys.modules.pop(MODULE, None)  # their commit has imported it


def of_sql(tmp_path: Path) -> IcebergOptions:
    return IcebergOptions(catalog={"type": "sql", "uri": f"sqlite:///{tmp_path}/theirs.db"})


@pytest.mark.parametrize("embedded", [True, False])
def test_a_table_that_names_a_class_is_refused_before_it_is_imported(
    make: Any, tmp_path: Path, stranger: str, embedded: bool
) -> None:
    events = make(options=None if embedded else of_sql(tmp_path))
    staged = events.stage(events.batch(0, 3))
    committer = events.committer()
    write_properties(events, {FILE_IO: f"{stranger}.FileIO"})
    catalog = events.storage.catalog()
    doors: dict[str, Callable[[], Any]] = {
        "load": lambda: catalog.load_table(events.info.path),
        "again": lambda: catalog.load_table(events.info.path),
        "read": events.read,
        "write": lambda: events.storage.tiering_factory(events.info),
        "open": committer.open,
        "commit": lambda: events.round_of(events.token(0), staged),
        "state": lambda: events.storage.state(events.info),
        "maintenance": lambda: events.storage.maintenance(events.info).orphans(1 << 53),
        "drop": lambda: catalog.drop_table(events.info.path),
    }
    for door, attempt in doors.items():
        with pytest.raises(ConfigError, match=rf"property {FILE_IO} is '{stranger}\.FileIO'") as told:
            attempt()
        assert told.value.where, door
        assert told.value.fix, door
        assert stranger not in sys.modules, door
    assert catalog.list_tables() == [events.info.path]


def test_no_table_is_made_that_names_a_class(make: Any, stranger: str) -> None:
    for key in (FILE_IO, "write.py-location-provider.impl"):
        with pytest.raises(ConfigError, match=f"property {key} is"):
            make(name="other", properties={key: f"{stranger}.Provider"})
    assert stranger not in sys.modules


def test_no_commit_of_any_kind_imports_a_provider(events: Any, stranger: str) -> None:
    write_properties(events, {"write.py-location-provider.impl": f"{stranger}.Provider"})
    assert events.read().num_rows == 0
    table = events.table()
    with pytest.raises(ConfigError, match="py-location-provider"):
        table.catalog.commit_table(table, (), (SetPropertiesUpdate(updates={"a": "b"}),))
    assert stranger not in sys.modules


@pytest.mark.parametrize("key", [*NAMES_OF_PYICEBERG, "DEFAULT_SCHEME", "DEFAULT_NETLOC"])
def test_each_property_by_which_pyiceberg_opens_files_is_refused(key: str) -> None:
    """Also those of a newer pyiceberg, which this test would find."""
    with pytest.raises(ConfigError, match=f"property {key} ") as told:
        refuse_opening({"comment": "x", key: "hunter2"}, "db.t")
    assert told.value.where == "db.t"
    assert key == FILE_IO or "hunter2" not in str(told.value)


@pytest.mark.parametrize("key", ["client.name", "s3", "io-impl", "comment", "gc.enabled", "write.object-storage.path"])
def test_a_property_of_the_tables_own_is_none(key: str) -> None:
    refuse_opening({key: "x"}, "db.t")


def test_the_catalogs_options_are_honoured_and_no_other_property_arrives(make: Any, tmp_path: Path) -> None:
    """A signer of requests asks ``uri`` and ``token``, which people may have for properties of their own."""
    events = make(options=IcebergOptions(catalog={**of_sql(tmp_path).catalog, "s3.endpoint": "http://ours"}))
    write_properties(events, {"uri": "http://theirs", "token": "theirs", "header.x": "theirs"})
    found = events.table()
    assert found.metadata.properties["uri"] == "http://theirs"
    assert found.io.properties["s3.endpoint"] == "http://ours"
    assert "theirs" not in {text.removeprefix("http://") for text in found.io.properties.values()}
    assert set(found.io.properties) == set(found.catalog.properties)
    events.round(events.token(0), events.batch(0, 3))
    assert events.ids() == [0, 1, 2]


@pytest.mark.parametrize("name", ["_response_to_table", "_response_to_staged_table"])
def test_a_server_may_say_how_files_are_opened_and_a_table_behind_it_may_not(
    events: Any, name: str, stranger: str
) -> None:
    catalog: Any = RestCatalog.__new__(RestCatalog)
    catalog.name, catalog.properties, catalog._auth_manager = "r", {"uri": "http://ours"}, None
    by_catalog_alone(catalog)
    by_catalog_alone(catalog)

    def answer(properties: dict[str, str]) -> TableResponse:
        metadata = json.loads(events.table().metadata.model_dump_json(by_alias=True))
        told = {
            "metadata-location": events.table().metadata_location,
            "metadata": {**metadata, "properties": properties},
            "config": {"s3.access-key-id": "vended"},
        }
        return TableResponse.model_validate(told)

    with pytest.raises(ConfigError, match=FILE_IO):
        getattr(catalog, name)(("db", "t"), answer({FILE_IO: f"{stranger}.FileIO"}))
    assert stranger not in sys.modules
    table = getattr(catalog, name)(("db", "t"), answer({"uri": "http://theirs", "a": "b"}))
    assert table.io.properties == {"uri": "http://ours", "s3.access-key-id": "vended"}
    assert table.metadata.properties == {"uri": "http://theirs", "a": "b"}


def test_a_pyiceberg_without_that_place_is_refused(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.catalog import Catalog

    catalog = connect(events.storage._settings)
    vars(catalog).pop("_load_file_io")
    monkeypatch.delattr(Catalog, "_load_file_io")
    with pytest.raises(PluginBroken, match=r"pyiceberg \d.* opens files in a way"):
        by_catalog_alone(catalog)


def test_a_catalog_of_another_kind_is_left_alone() -> None:
    other: Any = type("Other", (), {})()
    by_catalog_alone(other)
    assert vars(other) == {}


def test_a_table_beside_a_hostile_one_is_used_as_ever(make: Any, stranger: str) -> None:
    hostile, events = make(name="hostile"), make()
    write_properties(hostile, {FILE_IO: f"{stranger}.FileIO"})
    events.round(events.token(0), events.batch(0, 3))
    events.storage.maintenance(events.storage.catalog().load_table(events.info.path)).orphans(1 << 53)
    events.storage.catalog().drop_table(TablePath("db", "events"))
    assert stranger not in sys.modules
