"""The cache of tables' metadata on all formats: what it saves, and that it never hides what is newer."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from keyed_lines import KeyedLines
from laketier.config import LakeConfig
from laketier.registry import Lake, configure, open_lake
from laketier.rounds.log_engine import LocalEngine
from laketier.spark.batch_writer import LakeBatchWriter
from laketier.spi import AddColumn, LaketierError, ScanRequest, TableInfo, TableNotFound
from laketier.tables import described, metadata_cache, open_source, opened, prepare_table
from laketier.tables.metadata import MetadataCache, forget_process_cache
from laketier.tables.metadata.disk import Usage
from laketier.tables.scan import scan
from laketier_verification.lakes import SCHEMA, append, ids, lake_at, rows_of
from laketier_verification.lines import LinesTable
from poisoned import poisoned
from table_loads import Loads, counted_loads

EXTRA = pa.field("extra", pa.string())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MetadataCache]:
    """One of the test's own."""
    monkeypatch.setenv("LAKETIER_CACHE_DIR", str(tmp_path / "cache"))
    forget_process_cache()
    made = metadata_cache()
    yield made
    made.flush()
    forget_process_cache()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch, lake_config: LakeConfig) -> Loads:
    return counted_loads(monkeypatch, lake_config.format)


@pytest.fixture
def lake(lake_config: LakeConfig) -> Lake:
    """With a table of one row."""
    append(open_lake(replace(lake_config, pipeline=None)), rows_of(1))
    return open_lake(lake_config)


@pytest.fixture
def lines(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> KeyedLines:
    columns = {"id": "int64", "name": "string", "op": "string"}
    return KeyedLines(LinesTable(tmp_path / "logs", "t").create(columns, buckets=2), lake_config, engine)


def same(found: TableInfo, lake: Lake) -> bool:
    now = lake.load_table()
    return found == now and found.schema.equals(now.schema, check_metadata=True)


def other_process(config: LakeConfig) -> Lake:
    """What another process has of the table: nothing in memory."""
    assert metadata_cache().flush()
    forget_process_cache()
    return open_lake(config)


# -- what it saves -----------------------------------------------------------------------------------------------------


def test_a_table_that_did_not_change_is_loaded_once(lake: Lake, loads: Loads, cache: MetadataCache) -> None:
    first = opened(lake)
    loads.reset()
    found = [opened(open_lake(lake.config)) for _ in range(3)] + [described(lake)]
    assert loads.figures == (0, 0, 0)
    assert all(each is first for each in found)
    assert first.handle is not None
    assert cache.counts.memory_hits == 4
    assert same(first, lake)


def test_another_process_of_the_host_loads_nothing(lake: Lake, loads: Loads) -> None:
    opened(lake)
    other = other_process(lake.config)
    loads.reset()
    found = described(other)
    assert loads.figures == (0, 0, 0)
    assert metadata_cache().counts.disk_hits == 1
    assert same(found, lake)


def test_another_process_needs_no_engine(lake: Lake, tmp_path: Path) -> None:
    """Which takes longer to import than all else."""
    opened(lake)
    assert metadata_cache().flush()
    program = (
        "import sys; from laketier.registry import *; from laketier.tables import *; "
        f"lake = open_lake(configure({dict(_keys(lake))!r}, environment={{}})); "
        "print(described(lake).schema.names, metadata_cache().counts.disk_hits, "
        "sorted({'deltalake', 'pyiceberg', 'lance', 'sqlalchemy'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == f"{SCHEMA.names} 1 []"


def _keys(lake: Lake) -> list[tuple[str, str]]:
    config = lake.config
    return [("lake.format", config.format), ("lake.warehouse", config.warehouse), ("lake.table", str(config.table))]


def test_it_can_be_turned_off(lake: Lake, loads: Loads, cache: MetadataCache) -> None:
    off = open_lake(replace(lake.config, metadata_cache=False))
    loads.reset()
    opened(off), described(off)
    assert loads.counted["driver"] == 2
    assert cache.statistics().tables == 0
    assert cache.disk.usage() == Usage(0, 0)


def test_one_warehouse_has_one_key_by_all_its_names(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each caller is told the location that a load through its name tells."""
    warehouse = Path(lake.config.warehouse)
    (tmp_path / "link").symlink_to(warehouse)
    (tmp_path / "up").mkdir()
    monkeypatch.chdir(warehouse)
    names = (f"{warehouse}/", f"file://{warehouse}", f"{tmp_path}/up/../lake", f"{tmp_path}/link", "../link/", ".")
    for name in (str(warehouse), *names, *names):
        other = open_lake(configure({**dict(_keys(lake)), "lake.warehouse": name}, environment={}))
        assert described(other) == other.load_table()
        assert opened(other) == other.load_table()
    assert metadata_cache().statistics().tables == 1
    assert metadata_cache().flush()
    assert metadata_cache().disk.usage().files == 1


def test_a_reader_loads_once_less(lake: Lake, loads: Loads) -> None:
    opened(lake)
    loads.reset()
    source = open_source(lake.config)
    assert loads.figures == (0, 0, 0)
    assert source is not None


# -- what it never hides -----------------------------------------------------------------------------------------------


def test_commits_and_columns_of_others_are_seen(lake: Lake) -> None:
    other = lake_at(Path(lake.config.warehouse), lake.config.format)
    before = opened(lake), described(lake)
    append(other, rows_of(2))
    assert same(opened(lake), lake)
    assert opened(lake).snapshot_id != before[0].snapshot_id
    other.storage.catalog().alter_table(other.config.table, [AddColumn(EXTRA)])
    for found in (described(lake), opened(lake)):
        assert same(found, lake)
        assert found.schema.names == [*SCHEMA.names, "extra"]


def test_commits_are_seen_through_the_disk(lake: Lake) -> None:
    opened(lake)
    lake.storage.catalog().alter_table(lake.config.table, [AddColumn(EXTRA)])
    found = described(other_process(lake.config))
    assert same(found, lake)
    assert "extra" in found.schema.names


def test_a_dropped_table_is_gone_and_one_made_anew_is_another(lake: Lake) -> None:
    old = opened(lake)
    for _ in range(3):
        lake.storage.catalog().drop_table(lake.config.table)
        for look in (opened, described):
            with pytest.raises(TableNotFound):
                look(lake)
        with pytest.raises(TableNotFound):
            described(other_process(lake.config))
        append(open_lake(replace(lake.config, pipeline=None)), rows_of(1))
        assert opened(lake).table_uuid != old.table_uuid
        assert same(described(lake), lake)
        assert same(described(other_process(lake.config)), lake)


def test_only_who_asks_for_it_is_served_unchecked(lake: Lake) -> None:
    """And never by a round, nor after this process changed the table."""
    patient = open_lake(replace(lake.config, metadata_cache_max_age=3600))
    before = described(patient)
    in_other = lake_at(Path(lake.config.warehouse), lake.config.format, **{"lake__metadata-cache": "false"})
    in_other.storage.catalog().alter_table(lake.config.table, [AddColumn(EXTRA)])
    assert described(patient).schema == before.schema
    assert described(lake).schema.names[-1] == "extra"
    assert opened(patient).schema.names[-1] == "extra"
    prepare_table(
        open_lake(replace(patient.config, merge_schema=True)), pa.schema([*SCHEMA, EXTRA, ("more", pa.int64())])
    )
    assert described(patient).schema.names[-1] == "more"


def test_one_thread_loads_and_others_wait(lake: Lake, loads: Loads, cache: MetadataCache) -> None:
    barrier = threading.Barrier(8)

    def look(_: int) -> TableInfo:
        mine = open_lake(lake.config)
        barrier.wait()
        return opened(mine)

    loads.reset()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(look, range(8)))
    assert loads.counted["driver"] == 1
    assert len({id(each) for each in found}) == 1
    assert len(cache.tiers.turns) == 0


def test_what_was_looked_at_just_before_is_checked_and_not_loaded(
    lake: Lake, loads: Loads, cache: MetadataCache
) -> None:
    """One thread looks at the table, another one finds nothing kept, and then the first keeps what it saw."""
    of = cache.tiers.turns.of

    @contextmanager
    def another_first(key: str) -> Iterator[bool]:
        patch.undo()
        opened(open_lake(lake.config))
        entry = cache.tiers.memory.get(key)
        assert entry is not None
        entry.checked_at -= 3600
        with of(key) as mine:
            yield mine

    loads.reset()
    patch = pytest.MonkeyPatch()
    patch.setattr(cache.tiers.turns, "of", another_first)
    assert opened(lake).handle is not None
    assert loads.counted["driver"] == 1


# -- a cache that is wrong all the same costs an attempt, never a row --------------------------------------------------


def tried(attempt: object, *, times: int = 3) -> int:
    """How many attempts failed before one did not."""
    for failed in range(times):
        try:
            attempt()  # type: ignore[operator]
        except LaketierError:
            continue
        return failed
    raise AssertionError(f"it failed {times} times")


def changed_by_others(config: LakeConfig, how: str) -> TableInfo:
    """Change the table behind the back of the cache. Returns what it was before."""
    other = open_lake(replace(config, metadata_cache=False))
    old = other.load_table()
    catalog = other.storage.catalog()
    if how == "a column":
        catalog.alter_table(config.table, [AddColumn(EXTRA)])
    else:
        catalog.drop_table(config.table)
        catalog.create_table(config.table, old.descriptor)
    return old


@pytest.mark.parametrize("how", ["a column", "made anew"])
def test_an_upsert_by_a_wrong_description_ends_right(lines: KeyedLines, how: str) -> None:
    lines.append(("+I", 1, "one"), ("+I", 2, "two"))
    lines.round()
    old = changed_by_others(lines.config, how)
    if how == "made anew":
        lines.expected = {}
        lines.source.describe(id="another")  # whoever drops the table begins the log anew, too
        for bucket in range(2):
            (lines.source.folder / f"{bucket}.jsonl").write_bytes(b"")
    lines.append(("+U", 1, "uno"), ("+I", 3, "three"))
    with poisoned(lines.config, old):
        failed = tried(lines.round)
    lines.append(("-D", 3, ""), ("+I", 4, "four"))
    lines.round()
    assert failed <= 1
    assert lines.is_exact


def test_an_upsert_by_an_older_snapshot_ends_right(lines: KeyedLines) -> None:
    """Another worker published in between: the older watermark would have the round read its range again."""
    lines.append(("+I", 1, "one"), ("+I", 2, "two"))
    lines.round()
    old = open_lake(lines.config).load_table()
    lines.append(("+U", 1, "uno"), ("+I", 3, "three"))
    lines.round()
    lines.append(("-D", 2, ""), ("+I", 4, "four"))
    with poisoned(lines.config, old):
        failed = tried(lines.round)
    tried(lines.round)
    assert failed <= 1
    assert lines.is_exact


def batch_of(config: LakeConfig, *values: int, overwrite: bool = False) -> None:
    """A batch of Spark's, planned and committed here."""
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
    writer = LakeBatchWriter(config, schema, overwrite=overwrite)
    try:
        message = writer.write(iter([rows_of(*values)]))
    except BaseException:
        writer.abort([None])  # as Spark does
        raise
    writer.commit([message])


@pytest.mark.parametrize("epoch", [None, 1])
@pytest.mark.parametrize("how", ["a column", "made anew"])
def test_a_batch_by_a_wrong_description_ends_right(lake: Lake, how: str, epoch: int | None) -> None:
    """Also one that is idempotent: of a table that was made anew, the dropped one's watermark says nothing."""
    config = replace(lake.config, pipeline=None if epoch is None else "p", epoch=epoch)
    for n in range(2 if epoch is not None else 0):
        batch_of(replace(config, epoch=n), 10 + n)
    before = ids(lake)
    old = changed_by_others(config, how)
    left = before
    if how == "made anew":
        left = []
        if epoch is not None:
            batch_of(replace(config, epoch=0, metadata_cache=False), 10)
            left = [10]
    with poisoned(config, old):
        again = replace(config, epoch=None if epoch is None else (1 if how == "made anew" else 2))
        failed = tried(lambda: batch_of(again, 99))
    assert failed <= 1
    assert ids(lake) == sorted([*left, 99])


def test_an_overwrite_by_an_older_snapshot_ends_right(lake: Lake) -> None:
    config = replace(lake.config, pipeline=None)
    old = open_lake(config).load_table()
    batch_of(replace(config, metadata_cache=False), 2, 3)
    with poisoned(config, old):
        assert tried(lambda: batch_of(config, 7, overwrite=True)) <= 1
    assert ids(lake) == [7]


def test_a_reader_with_an_older_snapshot_on_the_disk_reads_what_is_there(lake: Lake) -> None:
    old = open_lake(lake.config).load_table()
    append(open_lake(replace(lake.config, pipeline=None, metadata_cache=False)), rows_of(2, 3))
    with poisoned(lake.config, old):
        source = open_source(lake.config)
    _, batches = scan(source, ScanRequest())
    assert sorted(value for batch in batches for value in batch["id"].to_pylist()) == [1, 2, 3]
