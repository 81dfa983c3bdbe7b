"""Lake and log as one, on every format."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import laketier
from laketier.bucketing import assigner_for
from laketier.config import LakeConfig
from laketier.registry import Lake, load_format, open_lake, open_log_source
from laketier.rounds import LogRound
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import (
    BucketSpec,
    ConfigError,
    CorruptTable,
    Feature,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    Leaf,
    OffsetsExpired,
    Op,
    ScanRequest,
    TableDescriptor,
    TableInfo,
    TableLog,
    support_of,
)
from laketier.union_read import planning as union_module
from laketier.union_read.merge_read import MergeSplit
from laketier.union_read.planning import plan_union, union_batches
from laketier_verification.lines import LinesTable


@dataclass
class Both:
    source: LinesTable
    config: LakeConfig
    engine: LocalEngine

    def log(self) -> TableLog:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        return source.open(self.source.name)

    def tier(self) -> None:
        made = LogRound(self.log(), self.config)
        made.finish(self.engine.run(made.plan()))

    def tier_nothing(self) -> None:
        """A round that dies before its commit: the table is there, and empty."""
        LogRound(self.log(), self.config).plan()

    def rows(self, **request: Any) -> list[dict[str, Any]]:
        _, batches = union_batches(self.config, self.log(), ScanRequest(**request))
        return [row for batch in batches for row in batch.to_pylist()]

    def ids(self, **request: Any) -> list[int]:
        return sorted(row["id"] for row in self.rows(**request))


@pytest.fixture
def both(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> Both:
    return Both(LinesTable(tmp_path / "logs", "t").create(buckets=2), lake_config, engine)


def test_before_the_first_round_the_log_is_all(both: Both) -> None:
    both.source.append(1, 2)
    assert both.ids() == [1, 2]


def test_a_table_that_was_created_and_never_written_is_empty(both: Both) -> None:
    both.source.append(1, 2)
    both.tier_nothing()
    assert both.ids() == [1, 2]


def test_what_is_not_tiered_yet_comes_from_the_log(both: Both) -> None:
    both.source.append(1, 2)
    both.source.append(10, bucket=1)
    both.tier()
    both.source.append(3)
    (both.source.folder / "2.jsonl").write_text("")
    both.source.append(20, bucket=2)
    planned = plan_union(both.config, both.log())
    assert sorted(s.bucket for s in planned.log_splits) == ["0", "2"]
    assert both.ids() == [1, 2, 3, 10, 20]


def test_a_round_that_commits_after_the_plan_changes_nothing(both: Both) -> None:
    both.source.append(1, 2)
    both.tier()
    both.source.append(3)
    planned = plan_union(both.config, both.log())
    both.tier()
    both.source.append(4)
    seen = Counter(i for split in planned.splits for batch in planned.read(split) for i in batch["id"].to_pylist())
    assert seen == {1: 1, 2: 1, 3: 1}
    assert both.ids() == [1, 2, 3, 4]


def test_expired_offsets_that_the_lake_holds_do_not_matter(both: Both) -> None:
    both.source.append(1, 2)
    both.tier()
    both.source.append(3)
    both.source.expire(below=2)
    assert both.ids() == [1, 2, 3]
    both.source.expire(below=3)
    with pytest.raises(OffsetsExpired):
        both.ids()


def test_columns_filters_and_limits_reach_both_halves(both: Both) -> None:
    both.source.append(1, 2, 3)
    both.tier()
    both.source.append(4, 5, 6)
    above = (Leaf("id", Op.GT, 2),)
    assert both.rows(columns=("text",), filters=above, limit=None) == [{"text": f"row {i}"} for i in (3, 4, 5, 6)]
    assert len(both.rows(filters=above, limit=2)) == 2
    assert len(both.rows(columns=(), limit=5)) == 5


def test_a_column_that_the_lake_has_not_yet(both: Both) -> None:
    both.source.append(1)
    both.tier()
    both.source.describe(columns={"id": "int64", "text": "string", "more": "double"})
    both.source.append_raw('{"id": 2, "text": "b", "more": 0.5}')
    assert sorted((row["id"], row["more"]) for row in both.rows()) == [(1, None), (2, 0.5)]
    assert both.ids(filters=(Leaf("more", Op.GT, 0.1),)) == [2]
    with pytest.raises(ConfigError, match="no columns"):
        both.rows(columns=("other",))


def test_a_bad_record_is_an_error_unless_the_lake_leaves_it_out(both: Both) -> None:
    both.source.append(1)
    both.source.append_raw("poison")
    with pytest.raises(IncompatibleData):
        both.rows()
    _, batches = union_batches(both.config, both.log(), tolerant=True)
    assert [i for batch in batches for i in batch["id"].to_pylist()] == [1]


def test_files_that_vanish_between_plan_and_read_are_an_error_that_names_them(both: Both, tmp_path: Path) -> None:
    """As a clean-up without retention would do, once rounds, or somebody, have rewritten them."""
    both.source.append(1, 2)
    both.tier()
    planned = plan_union(both.config, both.log())
    gone = [path for ending in ("parquet", "lance") for path in (tmp_path / "lake").rglob(f"*.{ending}")]
    gone = [path for path in gone if path.is_file()]
    for path in gone:
        path.unlink()
    with pytest.raises(CorruptTable, match="is missing") as told:
        [rows for split in planned.splits for rows in planned.read(split)]
    assert any(path.name in str(told.value) for path in gone)
    assert told.value.fix is not None


def test_a_column_that_has_a_wider_type_or_another_name_in_the_log_by_now(both: Both) -> None:
    both.source.describe(columns={"id": "int32", "text": "string"})
    both.source.append(1, 2)
    both.tier()
    both.source.describe(columns={"id": "int64", "said": "string"}, former_names={"said": ["text"]})
    both.source.append_raw(f'{{"id": {2**40}, "said": "new"}}')
    rows = sorted(both.rows(), key=lambda row: row["id"])
    assert rows == [{"id": 1, "said": "row 1"}, {"id": 2, "said": "row 2"}, {"id": 2**40, "said": "new"}]
    assert both.ids(filters=(Leaf("id", Op.LT, 2**40),)) == [1, 2]
    assert both.ids(filters=(Leaf("said", Op.EQ, "row 2"),)) == [2]
    assert both.rows(columns=("said",), filters=(Leaf("id", Op.EQ, 1),), limit=1) == [{"said": "row 1"}]


def test_a_column_that_the_table_gets_between_two_looks(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that keeps no handle tells its schema before its snapshot: a round between them may bring a column, with
    values."""
    both.source.append(1)
    both.tier()

    @dataclass(frozen=True)
    class Late(Lake):
        def load_table(self) -> TableInfo:
            table = super().load_table()
            if "more" not in table.schema.names:
                both.source.describe(columns={"id": "int64", "text": "string", "more": "double"})
                both.source.append_raw('{"id": 2, "text": "b", "more": 0.5}')
                both.tier()
            return replace(table)  # without its handle

    real = open_lake
    monkeypatch.setattr(union_module, "open_lake", lambda config: Late(**vars(real(config))))
    assert sorted((row["id"], row.get("more")) for row in both.rows()) == [(1, None), (2, 0.5)]


def test_a_round_between_the_look_and_the_plan(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a handle, schema, snapshot and offsets are of one look: a later round changes neither half."""
    both.source.append(1)
    both.tier()

    @dataclass(frozen=True)
    class Late(Lake):
        def load_table(self) -> TableInfo:
            table = super().load_table()
            both.source.append(2, 3)
            both.tier()
            return table

    real = open_lake
    monkeypatch.setattr(union_module, "open_lake", lambda config: Late(**vars(real(config))))
    planned = plan_union(both.config, both.log())
    assert planned.offsets.start["0"] == 1, "the lake's half ends where it was seen"
    read = [row for split in planned.splits for batch in planned.read(split) for row in batch["id"].to_pylist()]
    assert sorted(read) == [1, 2, 3]


@pytest.fixture
def keyed(both: Both) -> Both:
    """A log of changes of three columns, with a key."""
    if not support_of(load_format(both.config.format).features, Feature.UPSERT).full:
        pytest.skip(f"{both.config.format} does not merge by key")
    columns = {"op": "string", "id": "int64", "text": "string"}
    both.source.describe(columns=columns, primary_key=["id"], change_column="op")
    return both


def change(both: Both, *changes: tuple[str, int, str | None], bucket: int = 0) -> None:
    rows = [{"op": op, "id": key, "text": text} for op, key, text in changes]
    both.source.append_raw(*map(json.dumps, rows), bucket=bucket)


def pairs(both: Both, **request: Any) -> list[tuple[int, str]]:
    return sorted((row["id"], row["text"]) for row in both.rows(**request))


def test_of_each_key_the_newest_row_wins(keyed: Both) -> None:
    change(keyed, ("+I", 1, "a"), ("+I", 2, "b"), ("+U", 1, "A"), ("+I", 3, "c"))
    change(keyed, ("+I", 10, "x"), bucket=1)
    assert pairs(keyed) == [(1, "A"), (2, "b"), (3, "c"), (10, "x")], "of the log alone"
    keyed.tier()
    assert pairs(keyed) == [(1, "A"), (2, "b"), (3, "c"), (10, "x")], "of the lake alone"
    change(keyed, ("-U", 2, "b"), ("+U", 2, "B"), ("-D", 3, None), ("+I", 4, "d"))
    planned = plan_union(keyed.config, keyed.log())
    assert pairs(keyed) == [(1, "A"), (2, "B"), (4, "d"), (10, "x")]
    keyed.tier()
    change(keyed, ("+I", 3, "C"))
    assert pairs(keyed) == [(1, "A"), (2, "B"), (3, "C"), (4, "d"), (10, "x")]
    read = [row for split in planned.splits for batch in planned.read(split) for row in batch.to_pylist()]
    assert sorted((row["id"], row["text"]) for row in read) == [(1, "A"), (2, "B"), (4, "d"), (10, "x")]


def test_a_newer_row_hides_the_older_one_from_filters_and_limits(keyed: Both) -> None:
    change(keyed, *(("+I", key, "old") for key in range(6)))
    keyed.tier()
    change(keyed, *(("+U", key, "new") for key in range(4)), ("-D", 4, None))
    assert keyed.rows(columns=("id",), filters=(Leaf("text", Op.EQ, "old"),)) == [{"id": 5}]
    assert keyed.rows(columns=("text",), filters=(Leaf("id", Op.GE, 3),), limit=9) == [{"text": "old"}, {"text": "new"}]
    assert len(keyed.rows(columns=(), limit=5)) == 5
    assert len(keyed.rows(limit=2)) == 2


def test_a_bucket_that_the_lake_does_not_know_wins_over_its_rows(keyed: Both) -> None:
    change(keyed, ("+I", 1, "a"), ("+I", 2, "b"))
    keyed.tier()
    (keyed.source.folder / "7.jsonl").write_text("")
    change(keyed, ("+U", 1, "A"), bucket=7)
    assert pairs(keyed) == [(1, "A"), (2, "b")]


def test_buckets_that_are_the_logs_are_merged_one_by_one(keyed: Both) -> None:
    """Each bucket of the lake reads the changes of its own bucket of the log only."""
    if not support_of(load_format(keyed.config.format).features, Feature.BUCKETING).full:
        pytest.skip(f"{keyed.config.format} has no buckets")
    spec = BucketSpec(2, ("id",), "iceberg" if keyed.config.format == "iceberg" else "fluss")
    keyed.source.describe(buckets={"count": 2, "keys": ["id"], "function": spec.function})
    assigner = assigner_for(TableDescriptor(pa.schema([("id", pa.int64())]), buckets=spec))
    place = assigner.assign(pa.record_batch({"id": pa.array(range(20), pa.int64())})).to_pylist()
    for bucket in (0, 1):
        change(keyed, *(("+I", key, "old") for key in range(20) if place[key] == bucket), bucket=bucket)
    keyed.tier()
    for bucket in (0, 1):
        change(keyed, *(("+U", key, "new") for key in range(5) if place[key] == bucket), bucket=bucket)
    planned = plan_union(keyed.config, keyed.log())
    merges = [split for split in planned.splits if isinstance(split, MergeSplit)]
    assert [sorted({each.bucket for each in merge.log}) for merge in merges] == [["0"], ["1"]]
    assert [{each.bucket for each in merge.lake} for merge in merges] == [{0}, {1}]
    assert pairs(keyed) == [(key, "new" if key < 5 else "old") for key in range(20)]


def test_a_table_that_was_tiered_without_a_key_is_refused(both: Both) -> None:
    both.source.append(1)
    both.tier()
    both.source.describe(primary_key=["id"])
    with pytest.raises(IncompatibleTable, match="primary key"):
        both.rows()


def test_changes_without_a_key_are_refused(both: Both) -> None:
    both.source.describe(columns={"op": "string", "id": "int64"}, change_column="op")
    with pytest.raises(FeatureNotSupported, match="no key"):
        both.rows()


def test_a_key_that_the_service_file_names(tmp_path: Path) -> None:
    log = LinesTable(tmp_path / "logs", "t").create()
    log.append(1, 2)
    log.append_raw('{"id": 1, "text": "newer"}')
    document = {
        "state": f"sqlite:///{tmp_path}/state.db",
        "sources": {"lines": {"type": "lines", "options": {"path": str(log.root)}}},
        "defaults": {"sink": {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "lake")}},
        "tables": [{"source": "lines", "primary-key": ["id"]}],
    }
    service = tmp_path / "service.yaml"
    service.write_text(json.dumps(document))
    assert laketier.read_union("lines.t", service=str(service)).read_all().to_pydict() == {
        "id": [2, 1],
        "text": ["row 2", "newer"],
    }
    for limit in (0, 1, 2, 9):
        assert laketier.read_union("lines.t", service=str(service), limit=limit).read_all().num_rows == min(limit, 2)
    newer = laketier.read_union("lines.t", service=str(service), filters=[Leaf("text", Op.EQ, "newer")], limit=1)
    assert newer.read_all()["id"].to_pylist() == [1], "a limit counts rows that fulfil the filter"
