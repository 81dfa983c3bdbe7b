"""The lake table follows its source's table, or the round is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier.registry import Lake, configure, open_lake
from laketier.rounds.schema_sync import check_same, mode_of, prepared_table
from laketier.spi import (
    ConfigError,
    Feature,
    FeatureNotSupported,
    LogTable,
    SchemaChanged,
    TableChanged,
    UnsupportedType,
    WriteMode,
    unsupported,
)

SCHEMA = pa.schema([("id", pa.int64()), ("share", pa.float64()), ("op", pa.string())])
LOG = LogTable("orders", "id-1", SCHEMA)
KEYED = replace(LOG, primary_key=("id",), change_column="op")


def _lake(folder: Path) -> Lake:
    options = {"lake.format": "localfile", "lake.warehouse": str(folder), "lake.table": "db.orders"}
    return open_lake(configure(options, origin="the test"))


def test_a_table_that_is_the_same_is_read_on() -> None:
    check_same(LOG, replace(LOG, properties={"x": "y"}), where="db.orders")


@pytest.mark.parametrize(
    ("now", "error"),
    [
        ({"table_id": "id-2"}, TableChanged),
        ({"schema": SCHEMA.append(pa.field("more", pa.int8()))}, SchemaChanged),
        ({"schema": pa.schema(reversed(list(SCHEMA)))}, SchemaChanged),
        ({"former_names": {"id": ("number",)}}, SchemaChanged),
    ],
)
def test_a_table_that_changed_meanwhile_is_not_published(now: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(TableChanged, match=r"^db\.orders: .*'orders'") as caught:
        check_same(LOG, replace(LOG, **now), where="db.orders")
    assert type(caught.value) is error


def test_a_keyed_log_merges_and_its_change_types_are_no_column(tmp_path: Path) -> None:
    assert (mode_of(LOG), mode_of(KEYED)) == (WriteMode.APPEND, WriteMode.UPSERT)
    found = prepared_table(_lake(tmp_path), KEYED)
    assert (found.schema.names, found.descriptor.primary_key) == (["id", "share"], ("id",))
    plain = prepared_table(_lake(tmp_path / "plain"), LOG)
    assert (plain.schema.names, plain.descriptor.primary_key) == (SCHEMA.names, ())


def test_a_table_follows_its_log_whatever_the_user_set(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    prepared_table(lake, LOG)
    more = replace(LOG, schema=SCHEMA.append(pa.field("more", pa.int8())))
    assert prepared_table(lake, more).schema.names == more.schema.names


def test_a_key_that_can_not_be_compared_is_refused_before_a_table_is_made(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    with pytest.raises(UnsupportedType, match=r"^db\.orders: column 'share' is double"):
        prepared_table(lake, replace(KEYED, primary_key=("share",)))
    with pytest.raises(ConfigError, match=r"^db\.orders: the primary key has no column 'op'"):
        prepared_table(lake, replace(KEYED, primary_key=("op",)))
    assert lake.list_tables() == []


def test_a_format_that_can_not_merge_gets_no_keyed_table(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    kind = type(lake.plugin)

    class AppendsOnly(kind):  # type: ignore[misc, valid-type]
        features: ClassVar = {**kind.features, Feature.UPSERT: unsupported("files can't be replaced")}

    limited = replace(lake, plugin=AppendsOnly())
    with pytest.raises(FeatureNotSupported, match="localfile does not support upsert"):
        prepared_table(limited, KEYED)
    assert lake.list_tables() == []
    assert prepared_table(limited, LOG).schema.names == SCHEMA.names


def test_a_table_is_not_tiered_into_itself(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    found = prepared_table(lake, LOG)
    with pytest.raises(ConfigError, match=r"^db\.orders: the table would be tiered into itself"):
        prepared_table(lake, replace(LOG, table_id=found.table_uuid))
