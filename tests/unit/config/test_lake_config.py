"""Keys of the core: where they come from, what is refused, and that nothing is silently ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.config import LakeConfig, from_environment, from_spark_options, lake_reference, load_config
from laketier.spi import BucketSpec, ConfigError, PartitionField, TablePath, Transform

BASE = {"lake.format": "one", "lake.warehouse": "/w", "lake.table": "db.t"}
FORMATS = ("one", "two")


def load(values: dict[str, Any], **sources: Any) -> LakeConfig:
    return load_config(values, formats=FORMATS, environment=sources.pop("environment", {}), **sources)


def refusal(values: dict[str, Any], **sources: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(values, **sources)
    return str(caught.value)


def test_flat_and_nested_mappings_mean_the_same() -> None:
    nested = {"lake": {"format": "one", "warehouse": "/w", "table": "db.t", "one": {"storage": {"Key": "v"}}}}
    flat = {**BASE, "lake.one.storage.Key": "v"}
    assert load(nested) == load(flat)
    assert dict(load(flat).format_options) == {"storage.Key": "v"}


def test_every_key_is_typed() -> None:
    config = load(
        {
            **BASE,
            "lake.pipeline": "orders-v1",
            "lake.epoch": "7",
            "lake.partition-by": "region, day(ts), bucket(4, id)",
            "lake.bucket-by": "iceberg:bucket(16, id, sub)",
            "mergeSchema": "true",
            "lake.snapshot-id": 12,
        }
    )
    assert config.table == TablePath("db", "t")
    assert (config.pipeline, config.epoch, config.snapshot_id) == ("orders-v1", 7, 12)
    assert config.merge_schema is True
    assert config.partition_by == (
        PartitionField("region"),
        PartitionField("ts", Transform.DAY),
        PartitionField("id", Transform.BUCKET, 4),
    )
    assert config.bucket_by == BucketSpec(16, ("id", "sub"), "iceberg")


def test_code_wins_over_the_environment_which_wins_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lake.yaml"
    file.write_text("lake: {format: one, warehouse: /file, table: file.t, pipeline: from-file}\n")
    environment = {"LAKETIER_WAREHOUSE": "/env", "LAKETIER_TABLE": "env.t", "LAKETIER_ONE__TARGET_ROWS": "5"}
    config = load({"LAKE.TABLE": "code.t"}, file=file, environment=environment)
    assert (str(config.table), config.warehouse, config.pipeline) == ("code.t", "/env", "from-file")
    assert dict(config.format_options) == {"target-rows": "5"}


def test_failpoints_are_not_a_key() -> None:
    assert from_environment({"LAKETIER_FAILPOINTS": "publish.before=kill", "OTHER": "x"}) == {}


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("lake.fromat", "lake.format"),
        ("lake.Pipelin", "lake.pipeline"),
        ("lake.partition_by", "lake.partition-by"),
        ("lakeformat", "lake.format"),
        ("lake_table", "lake.table"),
        ("mergeshema", "mergeSchema"),
    ],
)
def test_a_near_miss_names_what_was_meant(key: str, meant: str) -> None:
    assert f"Did you mean '{meant}'?" in refusal({**BASE, key: "x"})


@given(st.sampled_from([row.key for row in lake_reference()]), st.data())
def test_no_misspelt_key_passes(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
    misspelt = name[:place] + letter + name[place + 1 :]
    if misspelt.lower() != name.lower():
        assert "unknown key" in refusal({**BASE, misspelt: "1"})


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"lake.epoch": "seven", "lake.pipeline": "p"}, "lake.epoch = 'seven' is not an integer"),
        ({"lake.epoch": "-1", "lake.pipeline": "p"}, "lake.epoch = -1 is negative"),
        ({"lake.epoch": "1"}, "lake.epoch is set without lake.pipeline"),
        ({"lake.pipeline": "a/b"}, "is not a pipeline id"),
        ({"lake.pipeline": ""}, "is not a pipeline id"),
        ({"lake.pipeline": "laketier-orphans"}, "is reserved for orphan collection"),
        ({"mergeSchema": "perhaps"}, "mergeSchema = 'perhaps' is not true or false"),
        ({"lake.table": "orders"}, "'orders' names no database"),
        ({"lake.table": "db/../x.t"}, "is not a name for a database or table"),
        ({"lake.partition-by": "week(ts)"}, "'week(ts)' is not a partition field"),
        ({"lake.partition-by": "bucket(id)"}, "has width None"),
        ({"lake.bucket-by": "id"}, "is not a bucketing"),
        ({"lake.snapshot-id": 1, "lake.as-of": 2}, "lake.snapshot-id and lake.as-of are both set"),
        ({"lake.three.x": 1}, "unknown key 'lake.three.x'"),
        ({"lake.pipeline": None}, "lake.pipeline has no value"),
    ],
)
def test_what_can_not_be_meant_is_refused(values: dict[str, Any], says: str) -> None:
    assert says in refusal({**BASE, **values})


def test_missing_keys_are_all_named() -> None:
    message = refusal({"lake.format": "one"})
    assert "lake.warehouse and lake.table must be set" in message


def test_sections_of_other_installed_formats_may_stay() -> None:
    config = load({**BASE, "lake.two.x": 1, "lake.one.y": 2})
    assert dict(config.format_options) == {"y": "2"}


def test_spark_options_ignore_case_and_take_the_path_as_the_table() -> None:
    options = {
        "LAKE.FORMAT": "one",
        "lake.warehouse": "/w",
        "path": "db.t",
        "checkpointlocation": "/c",
        "MERGESCHEMA": "true",
    }
    config = from_spark_options(options, formats=FORMATS)
    assert (str(config.table), config.merge_schema) == ("db.t", True)


def test_spark_options_that_are_nobodys_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown key 'compression'"):
        from_spark_options({**BASE, "compression": "zstd"}, formats=FORMATS)


def test_two_tables_in_spark_options_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'lake/a/b' by the path of load, save or start, and .* by lake\.table"):
        from_spark_options({**BASE, "path": "lake/a/b"}, formats=FORMATS)
    assert from_spark_options({**BASE, "path": BASE["lake.table"]}, formats=FORMATS).table.table


@pytest.mark.parametrize(
    ("text", "says"),
    [("lake: [", "is not YAML"), ("- a\n", "top level is not a mapping"), (b"\xff\xfe\x00", "can't be read")],
)
def test_a_bad_file_is_named_with_the_place(tmp_path: Path, text: str | bytes, says: str) -> None:
    file = tmp_path / "lake.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    message = refusal({}, file=file)
    assert says in message
    assert str(file) in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "does not exist" in refusal({}, file=tmp_path / "none.yaml")


def test_values_of_a_format_section_never_show() -> None:
    config = load({**BASE, "lake.one.storage.secret_key": "hunter2"})
    assert "hunter2" not in repr(config)
