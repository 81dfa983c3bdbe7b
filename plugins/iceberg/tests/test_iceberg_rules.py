"""What a table may be made with, what a change gives up on, and what a drop leaves, case by case."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError

from laketier.spi import (
    AddColumn,
    BucketSpec,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleTable,
    LaketierError,
    PartitionField,
    TableDescriptor,
    TablePath,
    Transform,
)
from laketier_iceberg.catalog import _ALTER_ATTEMPTS, _properties
from laketier_iceberg.removal import _found, _remove_empty_folders
from laketier_iceberg.resolution import Resolution
from laketier_iceberg.spec import fields_of

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("other", pa.timestamp("us")), ("s", pa.string())])
PATH = TablePath("db", "events")


@pytest.mark.parametrize(
    ("properties", "error", "says"),
    [
        ({"laketier.watermark.p": "x"}, IncompatibleTable, r"\['laketier.watermark.p'\] are laketier's own"),
        ({"laketier": "x", "acme.laketier.": "y"}, None, ""),
        ({"format-version": "1"}, FeatureNotSupported, "format-version 1"),
        ({"format-version": "3"}, FeatureNotSupported, "format-version 3"),
        ({"format-version": "2"}, None, ""),
    ],
)
def test_properties_that_a_table_may_be_made_with(
    properties: dict[str, str], error: type[LaketierError] | None, says: str
) -> None:
    wanted = TableDescriptor(SCHEMA, properties=properties, comment="a note")
    if error is not None:
        with pytest.raises(error, match=says):
            _properties(wanted)
        return
    made = _properties(wanted)
    assert made.items() >= {**properties, "format-version": "2", "comment": "a note"}.items()
    assert "comment" not in _properties(TableDescriptor(SCHEMA))


def by(column: str, transform: Transform, width: int | None = None) -> PartitionField:
    return PartitionField(column, transform, width)


@pytest.mark.parametrize(
    ("fields", "twice"),
    [
        ((by("at", Transform.YEAR), by("at", Transform.DAY)), True),
        ((by("at", Transform.HOUR), by("at", Transform.MONTH)), True),
        ((by("at", Transform.DAY), by("other", Transform.DAY)), False),
        ((by("id", Transform.BUCKET, 4), by("id", Transform.BUCKET, 8)), True),
        ((by("id", Transform.BUCKET, 4), by("s", Transform.BUCKET, 4)), False),
        ((by("id", Transform.BUCKET, 4), by("id", Transform.TRUNCATE, 4)), False),
        ((by("s", Transform.IDENTITY), by("s", Transform.TRUNCATE, 1)), False),
    ],
)
def test_a_column_is_partitioned_once_by_a_kind_of_transform(fields: tuple[PartitionField, ...], twice: bool) -> None:
    if twice:
        with pytest.raises(ConfigError, match="is partitioned twice by"):
            fields_of(TableDescriptor(SCHEMA, fields))
    else:
        assert fields_of(TableDescriptor(SCHEMA, fields)) == fields


def test_the_buckets_of_a_table_are_its_last_partition() -> None:
    buckets = BucketSpec(8, ("id",), "iceberg")
    with pytest.raises(ConfigError, match="is partitioned twice by"):
        fields_of(TableDescriptor(SCHEMA, (by("id", Transform.BUCKET, 4),), buckets))
    assert fields_of(TableDescriptor(SCHEMA, (by("at", Transform.DAY),), buckets)) == (
        by("at", Transform.DAY),
        by("id", Transform.BUCKET, 8),
    )


def test_a_change_gives_up_where_others_always_come_first(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[object] = []

    def lost(table: Any) -> Any:
        tries.append(table)
        raise CommitFailedException("another came first")

    monkeypatch.setattr("laketier_iceberg.commit.schema_change", lost)
    with pytest.raises(CommitFailedException):
        events.storage.catalog().alter_table(PATH, [AddColumn(pa.field("more", pa.int32()))])
    assert len(tries) == _ALTER_ATTEMPTS
    assert len({id(table) for table in tries}) == _ALTER_ATTEMPTS, "each try is on the table as it is then"


@pytest.mark.parametrize("error", [NamespaceAlreadyExistsError("db"), RuntimeError("unique constraint")], ids=repr)
@pytest.mark.parametrize("is_there", [True, False])
def test_another_process_makes_the_namespace_first(
    make: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, is_there: bool
) -> None:
    catalog = make(name="first").storage.catalog()
    answers = [False, is_there]

    def lost(*_: object) -> None:
        raise error

    monkeypatch.setattr(
        "laketier_iceberg.embedded.EmbeddedCatalog.namespace_exists", lambda *_: not answers or answers.pop(0)
    )
    monkeypatch.setattr("laketier_iceberg.embedded.EmbeddedCatalog.create_namespace", lost)
    if is_there:
        catalog.create_table(PATH, TableDescriptor(SCHEMA))
        assert answers == []
    else:
        with pytest.raises(type(error)):
            catalog.create_table(PATH, TableDescriptor(SCHEMA))


def test_folders_that_are_empty_go_and_others_stay(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for path in ("a/b/c", "d", "e/f"):
        (root / path).mkdir(parents=True)
    (root / "e" / "kept").touch()
    _remove_empty_folders(str(root))
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["e", "e/kept"]
    (root / "e" / "kept").unlink()
    _remove_empty_folders(str(root))
    assert not root.exists()


def test_files_that_can_not_be_listed_are_unknown() -> None:
    def refused() -> Any:
        raise PermissionError("no")

    folder: Any = SimpleNamespace(files=refused)
    assert _found(folder) == ([], "it is unknown whether all are the table's: no")
    found: Any = SimpleNamespace(files=lambda: [SimpleNamespace(path="a"), SimpleNamespace(path="b")])
    assert _found(found) == (["a", "b"], None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.int32(), "x"), (pa.int32(), 2**40), (pa.int32(), b"x"), (pa.date32(), 2**60), (pa.string(), 7)],
    ids=repr,
)
def test_a_value_of_another_type_is_damage(kind: pa.DataType, value: Any) -> None:
    wanted = pa.schema([pa.field("c", kind, metadata={b"PARQUET:field_id": b"1"})])
    schema: Any = SimpleNamespace(find_column_name=lambda _: "c")
    with pytest.raises(CorruptTable, match="which files without column 'c' have there"):
        Resolution(None, schema, wanted, "db.events")._value(1, value)  # type: ignore[arg-type]
    assert Resolution(None, schema, wanted, "db.events")._value(1, None).as_py() is None  # type: ignore[arg-type]
