"""What a write is told about its options, where Spark calls the data source: before any job, and on no Spark here."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from laketier.spark.data_source import LakeDataSource
from laketier.spark.union_read import UnionOptions
from laketier.spi import ConfigError, LaketierError, PluginNotFound

ROWS = StructType([StructField("id", LongType())])


def test_good_options(tmp_path: Path) -> None:
    write({"lake.pipeline": "nightly", "lake.epoch": "0"}, tmp_path)
    assert (tmp_path / "warehouse" / "db" / "events").is_dir()


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"lake.pipline": "x"}, ConfigError, "lake.pipeline"),
        ({"mergeschema ": "true"}, ConfigError, "mergeSchema"),
        ({"lake.format": "localfiles"}, PluginNotFound, "localfile"),
        ({"lake.table": "events"}, ConfigError, "default.events"),
        ({"lake.pipeline": "nightly"}, ConfigError, "without lake.epoch"),
        ({"lake.epoch": "0"}, ConfigError, "lake.pipeline"),
        ({"lake.pipeline": "nightly", "lake.epoch": "one"}, ConfigError, "lake.epoch"),
        ({"lake.localfile.target-file-row": "5"}, ConfigError, "target-file-rows"),
        ({"lake.snapshot-id": "3"}, ConfigError, "for reading"),
        ({"lake.partition-by": "nme"}, ConfigError, "'nme' is not a column"),
    ],
)
def test_bad_options(options: dict[str, str], kind: type[LaketierError], says: str, tmp_path: Path) -> None:
    with pytest.raises(kind) as refusal:
        write(options, tmp_path)
    assert says in str(refusal.value)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"union": "perhaps"}, "union = 'perhaps' is not true or false"),
        ({}, "a union read needs lake.service"),
        ({"lake.service": "s.yaml"}, "a union read needs lake.table"),
        ({"lake.servce": "x"}, "'lake.servce' is not for a union read"),
        ({"lake.format": "delta"}, "because the service file says which lake table"),
        ({"servce": "s.yaml", "path": "a.b"}, "unknown key 'servce'"),
        ({"merge": "true", "path": "a.b"}, "unknown key 'merge'"),
        ({"unions": "true"}, "Did you mean 'union'?"),
    ],
)
def test_bad_options_of_a_union(options: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        UnionOptions.of({"union": "true", **options})
    assert says in str(refusal.value)


def test_a_union_ignores_case_and_what_spark_adds() -> None:
    options = {"UNION": " TRUE ", "Lake.Service": "s.yaml", "PATH": "a.b", "checkpointLocation": "/c", "spark.x": "y"}
    assert UnionOptions.of(options) == UnionOptions("s.yaml", "a.b")
    assert UnionOptions.of({"union": "false", "lake.format": "delta"}) is None
    assert UnionOptions.of({"lake.format": "delta"}) is None


def write(options: dict[str, str], folder: Path) -> None:
    """As far as Spark goes before the first task."""
    keys = {"lake.format": "localfile", "lake.warehouse": str(folder / "warehouse"), "lake.table": "db.events"}
    LakeDataSource(keys | options).writer(ROWS, overwrite=False)
