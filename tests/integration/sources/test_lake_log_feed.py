"""Delta tables with a change feed as logs of changes: merged by key they are the source's table after each round."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from followed import FOLLOWED, FollowedDelta
from laketier.config import LakeConfig
from laketier.kit.failpoints import observed
from laketier.rounds import LogRound
from laketier.rounds.keyed import KeyedLog
from laketier.rounds.log_engine import LocalEngine
from laketier.service.schedule import is_retryable
from laketier.spi import (
    ConfigError,
    FeatureNotSupported,
    IncompatibleTable,
    LogOffsets,
    LogRange,
    OffsetsExpired,
    RowsChanged,
    ScanRequest,
    TableLog,
)
from laketier.tiering import RoundOutcome, failpoints
from laketier.union_read.planning import union_batches
from laketier_verification.lakes import SCHEMA, lake_at, read_all

FEED = {"delta.enableChangeDataFeed": "true"}
Row = tuple[int, str | None]


class FedDelta(FollowedDelta):
    """Written to by deltalake only."""

    @property
    def table(self) -> Any:
        return self._open()

    def make(self, *partitions: str, feed: bool = True) -> FedDelta:
        from deltalake import DeltaTable

        path = self.warehouse / "db" / "s"
        path.parent.mkdir(parents=True)
        settings = FEED if feed else {}
        DeltaTable.create(str(path), SCHEMA, partition_by=list(partitions) or None, configuration=settings)
        return self

    def write(self, *rows: Row, **how: Any) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.location, _rows(*rows), **({"mode": "append"} | how))

    def merge(self, *rows: Row) -> None:
        """Rows of these ids are replaced, or deleted where the name is null, and new ones inserted."""
        merger = self.table.merge(_rows(*rows), "s.id = t.id", source_alias="s", target_alias="t")
        merger.when_matched_delete("s.name is null").when_matched_update_all().when_not_matched_insert_all().execute()

    @property
    def rows(self) -> list[Row]:
        return _tuples(pa.table(self.table.to_pyarrow_table()))

    def feed(self, key: tuple[str, ...] | None = None, **options: str) -> TableLog:
        log = self.log(changes="feed", **options)
        return log if key is None else KeyedLog.of(log, key, None)


def _rows(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([{"id": number, "name": name} for number, name in rows], schema=SCHEMA)


def _tuples(table: pa.Table) -> list[Row]:
    return sorted((row["id"], row["name"]) for row in table.to_pylist())


def _changes(log: TableLog, start: int, end: int) -> list[tuple[str, int, str | None]]:
    """In the order of the log."""
    wanted = LogRange(LogOffsets({"table": start}), LogOffsets({"table": end}))
    there, splits = pickle.loads(pickle.dumps((log, log.plan(wanted))))  # noqa: S301 - as Spark does
    rows = [row for split in splits for batch in there.read(split) for row in batch.to_pylist()]
    return [(row["_change_type"], row["id"], row["name"]) for row in rows]


STEPS: dict[str, Callable[[FedDelta], object]] = {
    "append": lambda source: source.write((4, "four"), (5, "five")),
    "append to a partition": lambda source: source.write((9, "four")),
    "compact": lambda source: source.table.optimize.compact(),
    "update": lambda source: source.table.update(updates={"name": "'new'"}, predicate="id in (1, 4)"),
    "delete": lambda source: source.table.delete("id = 2"),
    "merge": lambda source: source.merge((1, "merged"), (3, None), (6, "six")),
    "change a key": lambda source: source.table.update(updates={"id": "id + 10"}, predicate="id = 4"),
    "swap keys": lambda source: source.table.update(
        updates={"id": "case when id = 5 then 6 else 5 end"}, predicate="id in (5, 6)"
    ),
    "replace some": lambda source: source.write((1, "again"), mode="overwrite", predicate="id = 1"),
    "by laketier": lambda source: source.append(20, 21),
    "replace all": lambda source: source.write((6, "over"), (7, "over"), mode="overwrite"),
    "restore": lambda source: source.table.restore(3),
    "delete all": lambda source: source.table.delete(),
    "append again": lambda source: source.write((1, "last")),
}


@pytest.fixture
def source(tmp_path: Path) -> FedDelta:
    made = FedDelta(tmp_path / "from").make()
    made.write((1, "one"), (2, "two"), (3, "three"))
    return made


class Copy:
    def __init__(self, source: FedDelta, config: LakeConfig, engine: LocalEngine) -> None:
        self.source, self.config, self.engine = source, config, engine
        self.key: tuple[str, ...] | None = ("id",)

    def round(self) -> RoundOutcome | None:
        made = LogRound(self.source.feed(self.key), self.config)
        return made.finish(self.engine.run(made.plan())).outcome

    @property
    def rows(self) -> list[Row]:
        return _tuples(read_all(lake_at(Path(self.config.warehouse), self.config.format, str(self.config.table))))

    @property
    def union(self) -> list[Row]:
        schema, batches = union_batches(self.config, self.source.feed(self.key), ScanRequest())
        return _tuples(pa.Table.from_batches(batches, schema=schema))


@pytest.fixture(params=["localfile", "iceberg", "lance", "delta"])
def copy(request: pytest.FixtureRequest, source: FedDelta, tmp_path: Path, engine: LocalEngine) -> Copy:
    lake = lake_at(tmp_path / "to", request.param, "db.t", lake__pipeline="tests.src.s")
    return Copy(source, lake.config, engine)


def test_the_copy_is_the_table_after_each_round(copy: Copy) -> None:
    assert copy.round() is RoundOutcome.PUBLISHED
    assert copy.rows == copy.source.rows
    for name, step in STEPS.items():
        step(copy.source)
        assert copy.union == copy.source.rows, name
        copy.round()
        assert copy.rows == copy.source.rows, name


def test_many_commits_in_one_round(source: FedDelta, tmp_path: Path, engine: LocalEngine) -> None:
    copy = Copy(source, lake_at(tmp_path / "to", "localfile", "db.t", lake__pipeline="tests.src.s").config, engine)
    copy.round()
    for step in list(STEPS.values())[:-3]:
        step(source)
    copy.round()
    assert copy.rows == source.rows


def test_a_killed_round_is_read_again(copy: Copy) -> None:
    copy.round()
    STEPS["merge"](copy.source)
    for point in (failpoints.PUBLISH_BEFORE, failpoints.PUBLISH_AFTER):

        def crash(passed: str, at: str = point) -> None:
            if passed == at:
                raise KeyboardInterrupt

        with observed(crash), pytest.raises(KeyboardInterrupt):
            copy.round()
        assert copy.union == copy.source.rows
    assert copy.round() is None, "it had landed"
    assert copy.rows == copy.source.rows


def test_without_a_key_the_changes_are_a_column(source: FedDelta, tmp_path: Path, engine: LocalEngine) -> None:
    copy = Copy(source, lake_at(tmp_path / "to", "localfile", "db.t", lake__pipeline="tests.src.s").config, engine)
    copy.key = None
    copy.round()
    source.table.update(updates={"name": "'new'"}, predicate="id = 1")
    with pytest.raises(FeatureNotSupported, match="union read"):
        copy.union  # noqa: B018
    copy.round()
    found = read_all(lake_at(tmp_path / "to", "localfile", "db.t")).to_pylist()
    assert sorted((row["id"], row["_change_type"], row["name"]) for row in found) == [
        (1, "+I", "one"),
        (1, "+U", "new"),
        (1, "-D", "one"),
        (2, "+I", "two"),
        (3, "+I", "three"),
    ]


_TYPES = {"insert": "+I", "update_preimage": "-D", "update_postimage": "+U", "delete": "-D"}


@pytest.mark.every(2)
@pytest.mark.parametrize("partitions", [(), ("name",)])
def test_each_version_has_what_deltalake_says(tmp_path: Path, partitions: tuple[str, ...]) -> None:
    source = FedDelta(tmp_path / "from").make(*partitions)
    source.write((1, "one"), (2, "two"), (3, "three"), (8, None))
    for number, (name, step) in enumerate(STEPS.items()):
        step(source)
        assert source.latest == number + 3, name
    log, latest = source.feed(), source.latest
    together = []
    for version in range(1, latest):
        found = _changes(log, version, version + 1)
        kinds = [kind for kind, _, _ in found]
        assert kinds == sorted(kinds, key=lambda kind: kind != "-D"), "what went comes first"
        said = source.table.load_cdf(starting_version=version, ending_version=version).read_all()
        rows = pa.table(said).to_pylist()
        expected = [(_TYPES[row["_change_type"]], row["id"], row["name"]) for row in rows]
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), version
        together += found
    assert _changes(log, 1, latest) == together
    assert _changes(log, 1, latest) == together, "the same again"


def test_partitions_whose_folders_are_encoded(tmp_path: Path) -> None:
    """Which `load_cdf` of deltalake 1.6 does not find."""
    source = FedDelta(tmp_path / "from").make("name")
    odd = "a b/c%=é"
    source.write((1, odd), (2, odd))
    source.table.delete("id = 1")
    source.table.update(updates={"name": "'x/y'"}, predicate="id = 2")
    source.table.delete()
    assert _changes(source.feed(), 1, 5) == [
        ("+I", 1, odd),
        ("+I", 2, odd),
        ("-D", 1, odd),
        ("-D", 2, odd),
        ("+U", 2, "x/y"),
        ("-D", 2, "x/y"),
    ]


def test_columns_and_none(source: FedDelta) -> None:
    STEPS["update"](source)
    STEPS["append"](source)
    log = source.feed()
    for start in (0, 2):
        wanted = LogRange(LogOffsets({"table": start}), LogOffsets({"table": source.latest}))
        for columns in ([], ["name"], ["_change_type"], ["_change_type", "id"]):
            batches = [batch for split in log.plan(wanted) for batch in log.read(split, columns=columns)]
            assert sum(batch.num_rows for batch in batches) == (5 if start == 0 else 4)
            assert all(batch.schema.names == columns for batch in batches)


def test_the_feed_must_be_on(tmp_path: Path) -> None:
    source = FedDelta(tmp_path / "from").make(feed=False)
    source.write((1, "one"))
    with pytest.raises(ConfigError, match="keeps no change feed") as refused:
        source.feed()
    assert not is_retryable(refused.value)


def test_versions_from_before_the_feed(tmp_path: Path) -> None:
    source = FedDelta(tmp_path / "from").make(feed=False)
    source.write((1, "one"))
    source.write((2, "two"))
    source.table.alter.set_table_properties(FEED)
    source.write((3, "three"))
    log = source.feed()
    for _ in range(2):
        with pytest.raises(
            IncompatibleTable, match="version 2 was committed while the table kept no change feed"
        ) as no:
            _changes(log, 2, 5)
        assert not is_retryable(no.value)
        assert _changes(log, 3, 5) == [("+I", 3, "three")]
    assert len(_changes(log, 0, 4)) == 2
    source.table.alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    source.write((4, "four"))
    source.table.alter.set_table_properties(FEED)
    for _ in range(2):
        with pytest.raises(IncompatibleTable, match="version 5 "):
            _changes(log, 4, 8)
    assert _changes(log, 7, 8) == []


def test_files_of_changes_that_went(source: FedDelta) -> None:
    STEPS["update"](source)
    for path in Path(source.location).glob("_change_data/*"):
        path.unlink()
    with pytest.raises(OffsetsExpired, match="can't be read any more"):
        _changes(source.feed(), 2, 3)


def test_without_the_option_changes_are_refused(source: FedDelta) -> None:
    STEPS["update"](source)
    with pytest.raises(RowsChanged):
        source.ids(2, 3)


@pytest.mark.parametrize("format", ["iceberg", "lance", "localfile"])
def test_other_formats_have_no_feed(format: str, tmp_path: Path) -> None:
    followed = FOLLOWED[format](tmp_path / "from").create()
    with pytest.raises(FeatureNotSupported, match=rf"^{format} does not support change-feed"):
        followed.log(changes="feed")


def test_options_that_do_not_fit(source: FedDelta) -> None:
    with pytest.raises(ConfigError, match="contradict"):
        source.feed(skip_changes="true")
    with pytest.raises(ConfigError, match="changes"):
        source.log(changes="all")


def test_a_column_of_that_name(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    source = FedDelta(tmp_path / "from").make()
    write_deltalake(
        str(source.warehouse / "db" / "x"),
        pa.table({"id": [1], "_change_type": ["odd"]}),
        configuration=FEED,
    )
    with pytest.raises(ConfigError, match="has a column '_change_type'"):
        source.open().open("db.x", {"changes": "feed"})
