"""The cache itself, on a format that counts what is asked of it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from counting_catalog import Catalog, lake_of
from laketier.config import LakeConfig, parse_lake_config
from laketier.spi import ConfigError, TableInfo, TablePath
from laketier.tables.metadata import MetadataCache
from laketier.tables.metadata.background import Background
from laketier.tables.metadata.key import table_key
from laketier_verification.lakes import append, lake_at, rows_of


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    made.gate.set()
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def cache(clock: Clock) -> Iterator[MetadataCache]:
    made = MetadataCache(None, clock=clock)
    yield made
    assert made.flush(60)


def test_a_format_that_tells_no_version_is_loaded_each_time(cache: MetadataCache, catalog: Catalog) -> None:
    catalog.version = None
    for _ in range(3):
        cache.opened(lake_of(catalog)), cache.described(lake_of(catalog))
    assert catalog.loads == 6
    assert cache.statistics().tables == 0
    assert cache.counts.uncacheable == 6


def test_a_plugin_that_fails_to_tell_a_version_is_loaded_each_time(cache: MetadataCache, catalog: Catalog) -> None:
    cache.opened(lake_of(catalog))
    catalog.error = RuntimeError("a bug")
    assert cache.opened(lake_of(catalog)).handle == [2]
    assert catalog.loads == 2


def test_what_changed_while_it_was_loaded_is_not_kept(cache: MetadataCache, catalog: Catalog) -> None:
    """It may be of either version."""
    catalog.changes_while_loading = True
    cache.opened(lake_of(catalog))
    assert cache.statistics().tables == 0


def test_a_handle_of_unknown_size_is_not_kept(cache: MetadataCache, catalog: Catalog) -> None:
    catalog.handle = None
    assert cache.opened(lake_of(catalog)).handle == [1]
    assert cache.described(lake_of(catalog)).handle is None
    assert cache.opened(lake_of(catalog)).handle == [2]


def test_memory_stays_within_its_bytes(catalog: Catalog, clock: Clock) -> None:
    """The least recently used go first, and one handle that is too large is not kept at all."""
    catalog.handle = 10_000
    cache = MetadataCache(None, memory_bytes=100_000, clock=clock)
    for number in range(50):
        cache.opened(lake_of(catalog, f"db.t{number}"))
        cache.opened(lake_of(catalog, "db.t0"))
    found = cache.statistics()
    assert 5 <= found.tables <= 10
    assert found.bytes <= 100_000
    assert found.counts["evictions"] == 50 - found.tables
    loads = catalog.loads
    cache.opened(lake_of(catalog, "db.t0"))
    assert catalog.loads == loads
    catalog.handle = 90_000
    cache.opened(lake_of(catalog, "db.large"))
    assert cache.described(lake_of(catalog, "db.large")).handle is None


def test_an_old_description_is_loaded_behind_and_one_twice_as_old_at_once(
    cache: MetadataCache, catalog: Catalog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laketier.tables.metadata.look.open_lake", lambda config: lake_of(catalog))
    first = cache.opened(lake_of(catalog))
    clock.now += 3601
    catalog.gate.clear()
    assert cache.opened(lake_of(catalog)) is first  # while it is being loaded
    assert cache.opened(lake_of(catalog)) is first
    catalog.gate.set()
    assert cache.flush(60)
    assert (catalog.loads, cache.counts.refreshes) == (2, 1)
    assert cache.opened(lake_of(catalog)).handle == [2]
    clock.now += 7201
    assert cache.opened(lake_of(catalog)).handle == [3]


def test_no_table_waits_for_another(cache: MetadataCache, catalog: Catalog) -> None:
    other = Catalog()
    other.gate.set()
    catalog.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(cache.opened, lake_of(catalog, "db.slow"))
        assert cache.opened(lake_of(other, "db.quick")).handle == [1]
        assert not waiting.done()
        catalog.gate.set()
        assert waiting.result(60).handle == [1]


def test_who_waits_gets_what_was_loaded_or_loads_when_that_fails(cache: MetadataCache, catalog: Catalog) -> None:
    catalog.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(cache.opened, lake_of(catalog)) for _ in range(4)]
        catalog.gate.set()
        assert {id(each.result(60)) for each in waiting} == {id(cache.opened(lake_of(catalog)))}
    assert catalog.loads == 1


def test_a_load_that_looks_the_table_up_itself_does_not_wait_for_itself(cache: MetadataCache, catalog: Catalog) -> None:
    class Recursive(Catalog):
        def load_table(self, path: TablePath) -> TableInfo:
            if self.loads:
                return super().load_table(path)
            self.loads += 1
            return cache.opened(lake_of(self))

    recursive = Recursive(gate=catalog.gate)
    assert cache.opened(lake_of(recursive)).handle == [2]


def test_a_table_that_changes_all_the_time_is_hardly_kept(cache: MetadataCache, catalog: Catalog) -> None:
    """And found soon, once it rests."""
    for number in range(200):
        catalog.version = f"v{number}"
        assert cache.opened(lake_of(catalog)).table_uuid == f"uuid of v{number}"
    assert catalog.loads == 200
    assert catalog.checks < 60
    assert cache.counts.passed_by > 150
    loads = catalog.loads
    for _ in range(20):
        cache.opened(lake_of(catalog))
    assert catalog.loads <= loads + 18
    assert cache.counts.memory_hits >= 2
    loads = catalog.loads
    for _ in range(5):
        cache.opened(lake_of(catalog))
    assert catalog.loads == loads


KEYS = (
    {"catalog.uri": "postgresql://me:hunter2@host/db", "catalog.type": "sql"},
    {"storage.aws_secret_access_key": "hunter2", "storage.region": "r"},
    {"catalog.header.X": "hunter2"},
    {"catalog.token": "hunter2"},
)


@pytest.mark.parametrize("options", KEYS)
@pytest.mark.parametrize("format", ["delta", "iceberg", "lance"])
def test_no_secret_is_in_a_key(format: str, options: dict[str, str]) -> None:
    values = {"lake.format": format, "lake.warehouse": "/w", "lake.table": "db.t"}
    config = parse_lake_config(
        values | {f"lake.{format}.{key}": value for key, value in options.items()}, origin="test", formats=[format]
    )
    key = table_key(config)
    assert key is not None
    assert "hunter2" not in key.text
    assert not key.is_whole


def test_other_catalogs_and_tables_have_other_keys() -> None:
    def text(format: str = "iceberg", table: str = "db.t", warehouse: str = "/w", **options: str) -> str:
        values = {"lake.format": format, "lake.warehouse": warehouse, "lake.table": table}
        typed = {f"lake.iceberg.{key.replace('__', '.')}": value for key, value in options.items()}
        key = table_key(parse_lake_config(values | typed, origin="test", formats=["iceberg", "delta"]))
        assert key is not None
        return key.text

    different = [
        text(), text(format="delta"), text(table="db.T"), text(warehouse="/W"), text(warehouse="s3://b/w"),
        text(catalog__uri="http://a", catalog__type="rest"), text(catalog__uri="http://b", catalog__type="rest"),
        text(**{"catalog-name": "prod"}), text(**{"row-group-rows": "7"}), text(warehouse="s3://b/w#1"),
        text(warehouse="s3://b/w#2"), text(warehouse="s3://b//w"),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    assert text(warehouse="s3://b/w") == text(warehouse="s3a://b/w/")
    assert text(warehouse="//w") == text(warehouse="file:/w") == text(warehouse="/w/.") == text()


def test_a_background_that_fails_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    background = Background()

    def fail() -> None:
        raise RuntimeError("a bug")

    background.submit("a", fail)
    background.submit("b", lambda: done.append(1))
    assert background.flush(60)
    assert done == [1]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert not [thread for thread in threading.enumerate() if thread.name == "laketier-metadata-cache"]


def in_process(program: str, warehouse: Path, **environment: str) -> str:
    """What a program prints that has ``lake``, a table of two columns."""
    head = (
        "import os, sys; from laketier.registry import *; from laketier.tables import *; "
        f"keys = {{'lake.format': 'localfile', 'lake.warehouse': {str(warehouse)!r}, 'lake.table': 'db.t'}}; "
        "config = configure(keys, environment={}); lake = open_lake(config)\n"
    )
    command = [sys.executable, "-c", head + program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.stdout.strip()


FORKED = """
import threading
cache = metadata_cache()
opened(lake)
class Held:
    pass
held = [cache.tiers.turns.of("x"), cache.tiers.memory._lock, cache.tiers.background._condition, cache.counts._lock]
for lock in held:
    lock.__enter__()  # as by another thread, in the middle of something
child = os.fork()
if not child:
    assert metadata_cache() is not cache
    assert described(lake).schema.names == ["id", "name"]
    assert opened(lake).handle is not None
    os._exit(0 if metadata_cache().flush(30) else 1)
for lock in reversed(held):
    lock.__exit__(None, None, None)
print(os.waitpid(child, 0)[1], opened(lake).schema.names)
"""


def test_a_forked_child_begins_anew(tmp_path: Path) -> None:
    append(lake_at(tmp_path / "lake", "localfile"), rows_of(1))
    assert in_process(FORKED, tmp_path / "lake") == "0 ['id', 'name']"


def test_a_process_leaves_something_for_the_next_one(tmp_path: Path) -> None:
    append(lake_at(tmp_path / "lake", "localfile"), rows_of(1))
    # However long it takes: a user would not wait for a disk that hangs.
    patient = "from laketier.tables.metadata import process; process._AT_EXIT_SECONDS = 60\n"
    program = f"{patient}described(lake); print(metadata_cache().counts.disk_hits)"
    folder = {"LAKETIER_CACHE_DIR": str(tmp_path / "cache")}
    assert in_process(program, tmp_path / "lake", **folder) == "0"
    assert in_process(program, tmp_path / "lake", **folder) == "1"


HANGING = """
from laketier.tables.metadata.disk import Disk
import threading
Disk.save = lambda *_: threading.Event().wait()  # a disk that never answers
print(described(lake).schema.names, flush=True)
"""


def test_a_disk_that_hangs_stops_no_process_from_ending(tmp_path: Path) -> None:
    append(lake_at(tmp_path / "lake", "localfile"), rows_of(1))
    assert in_process(HANGING, tmp_path / "lake", LAKETIER_CACHE_DIR=str(tmp_path / "cache")) == "['id', 'name']"


@pytest.mark.parametrize("home", [{"HOME": ""}, {"HOME": "/proc/1/nowhere"}, {"HOME": "/dev/null"}])
def test_no_home_is_needed(tmp_path: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKETIER_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    append(lake_at(tmp_path / "lake", "localfile"), rows_of(1))
    program = "described(lake); opened(lake); print(metadata_cache().counts.memory_hits)"
    assert in_process(program, tmp_path / "lake", **home) == "1"


def test_keys_are_checked() -> None:
    def config(**keys: str) -> LakeConfig:
        values = {"lake.format": "f", "lake.warehouse": "/w", "lake.table": "db.t"}
        return parse_lake_config(values | {f"lake.{k.replace('_', '-')}": v for k, v in keys.items()}, origin="test")

    assert config().metadata_cache
    assert not config(metadata_cache="false").metadata_cache
    assert config(metadata_cache_max_age="1.5").metadata_cache_max_age == 1.5
    for wrong in ("-1", "inf", "nan", "soon"):
        with pytest.raises(ConfigError, match=r"lake\.metadata-cache-max-age"):
            config(metadata_cache_max_age=wrong)
