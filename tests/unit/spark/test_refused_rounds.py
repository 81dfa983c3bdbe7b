"""A round that a new table refuses makes no table: whoever looks there would take the empty one for the right one."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from laketier.config import LakeConfig
from laketier.registry import configure, open_lake
from laketier.spark.batch_writer import LakeBatchWriter
from laketier.spark.stream_writer import LakeStreamWriter
from laketier.spark.streaming import _token_at
from laketier.spi import TableNotFound, Token, WatermarkLost
from laketier.tables import prepare_table

SCHEMA = StructType([StructField("id", LongType())])


def lake_config(warehouse: Path, format_name: str, **keys: object) -> LakeConfig:
    named = {f"lake.{key}": str(value) for key, value in keys.items()}
    return configure({"lake.format": format_name, "lake.warehouse": str(warehouse), "lake.table": "db.t", **named})


def checkpoint_at(folder: Path, epoch: int) -> str:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": "the-query"}))
    for number in range(epoch + 1):
        (folder / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"rate":{number}}}')
    return str(folder)


@pytest.mark.parametrize("format_name", ["delta", "iceberg", "lance", "localfile"])
def test_a_later_epoch_than_the_first_makes_no_table(tmp_path: Path, format_name: str) -> None:
    config = lake_config(tmp_path / "lake", format_name, pipeline="p", epoch=3)
    lake = open_lake(config)
    with pytest.raises(WatermarkLost, match="there is no table, but this is epoch 3 of its pipeline"):
        prepare_table(lake, pa.schema([("id", pa.int64())]), token=Token("p", "batch", 3))
    with pytest.raises(WatermarkLost, match="this is epoch 3 of it"):
        LakeBatchWriter(config, SCHEMA, overwrite=False)
    with pytest.raises(TableNotFound):
        lake.load_table()
    assert not (tmp_path / "lake" / "db").exists()
    LakeBatchWriter(lake_config(tmp_path / "lake", format_name, pipeline="p", epoch=0), SCHEMA, overwrite=False)
    assert lake.load_table().schema.names == ["id"]


def test_nor_does_a_stream_whose_table_was_dropped(tmp_path: Path) -> None:
    config = lake_config(tmp_path / "lake", "delta", pipeline="p")
    checkpoint = checkpoint_at(tmp_path / "checkpoint", 4)
    writer = LakeStreamWriter(config, SCHEMA, overwrite=False, checkpoint=checkpoint)
    with pytest.raises(WatermarkLost, match="this is epoch 4 of it"):
        pickle.dumps(writer)
    assert _token_at(config, checkpoint) == Token("p", "the-query", 4)
    assert not (tmp_path / "lake").exists()


def test_a_new_checkpoint_or_one_that_is_not_seen_from_here_says_nothing(tmp_path: Path) -> None:
    config = lake_config(tmp_path / "lake", "delta", pipeline="p")
    assert _token_at(config, str(tmp_path / "none")) is None
    assert _token_at(config, "hdfs://elsewhere/checkpoint") is None
    assert _token_at(config, checkpoint_at(tmp_path / "begun", 0)) == Token("p", "the-query", 0)
