"""The metadata cache under attack: by who writes into its folder, by clocks, by disks that hang, and by callers who
name one table in many ways or many tables in one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from counting_catalog import Catalog, lake_of
from laketier.config import LakeConfig, parse_lake_config
from laketier.registry import maker_of
from laketier.spi import TableInfo, TablePath
from laketier.tables.metadata import MetadataCache
from laketier.tables.metadata import disk as disks
from laketier.tables.metadata.background import MOST_BYTES, Background
from laketier.tables.metadata.counts import Counts
from laketier.tables.metadata.disk import Disk, Usage
from laketier.tables.metadata.document import Saved, decode, encode
from laketier.tables.metadata.folder import UnsafeFolder, open_private
from laketier.tables.metadata.key import file_name, table_key
from laketier.tables.metadata.patience import Patience
from laketier.tables.metadata.tiers import awake_and_asleep
from laketier.tables.metadata.turns import Turns
from saved_table import KEY, NAME, TABLE, saved

DAY = 86_400 * 1_000_000_000


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "cache", 1 << 20, 3600, Counts())


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    made.gate.set()
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[MetadataCache]:
    made = MetadataCache(tmp_path / "cache")
    yield made
    assert made.flush(60)


# -- who writes into the folder ----------------------------------------------------------------------------------------


def test_no_flipped_bit_is_believed() -> None:
    good = encode(saved())
    for at in range(len(good)):
        if at != 64:  # the byte between checksum and document says nothing
            assert decode(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :]) is None


def test_a_link_in_the_place_of_the_folder_within_is_told_by_its_whole_path(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache/tables-1").symlink_to(tmp_path)
    assert not disk.save(NAME, saved())
    assert disk.usage() == Usage(0, 0, f"{tmp_path}/cache/tables-1 is a link")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_the_folder_is_found_in_the_one_that_was_checked(tmp_path: Path) -> None:
    """Whatever its path leads to by then."""
    (tmp_path / "cache").mkdir(mode=0o700)
    checked = open_private(tmp_path / "cache", create=False)
    (tmp_path / "cache").rename(tmp_path / "moved")
    (tmp_path / "cache/tables-1").mkdir(parents=True)
    os.close(open_private(tmp_path / "cache/tables-1", create=True, within=checked))
    os.close(checked)
    assert (tmp_path / "moved/tables-1").is_dir()


@pytest.mark.parametrize("target", ["tables-1", "/nowhere/at/all"])
def test_a_link_that_leads_to_itself_or_nowhere_stops_nobody(disk: Disk, tmp_path: Path, target: str) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache/tables-1").symlink_to(target)
    assert not disk.save(NAME, saved())
    assert disk.read(NAME, KEY) is None
    assert "is a link" in str(disk.usage().problem)
    with pytest.raises(UnsafeFolder):
        open_private(tmp_path / "cache/tables-1", create=True)


def test_only_files_under_their_own_names_are_shown(disk: Disk) -> None:
    assert disk.save(NAME, saved())
    assert disk.root is not None
    good = (disk.root / f"{NAME}.json").read_bytes()
    (disk.root / f"{'0' * 64}.json").write_bytes(good)
    for text in ("no JSON", "[]", '{"format":1,"table":2,"warehouse":3,"by":4}', "{" * 9000):
        (disk.root / f"{file_name(text)}.json").write_bytes(encode(saved(key=text)))
    assert [each for each, _ in disk.entries()] == [decode(good)]
    assert disk.usage().files == 6
    assert disk.clear() == 6


def test_odd_names_are_left_alone(disk: Disk) -> None:
    assert disk.save(NAME, saved())
    assert disk.root is not None
    odd = [b"\xff\xfe.json", b"\n", b"%s.json\n" % NAME.encode(), NAME.upper().encode() + b".json", NAME.encode()]
    for name in odd:
        Path(os.fsdecode(os.path.join(os.fsencode(disk.root), name))).write_bytes(b"not ours")
    assert disk.clear() == 1
    assert sorted(os.listdir(os.fsencode(disk.root))) == sorted(odd)


# -- how much it takes -------------------------------------------------------------------------------------------------


def test_large_descriptions_stay_within_the_bytes_too(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "cache", 1 << 20, 3600, Counts())
    columns = [(f"a column of a long name {number}", pa.int64()) for number in range(1000)]
    wide = saved(
        table=replace(TABLE, descriptor=replace(TABLE.descriptor, schema=pa.schema([*TABLE.schema, *columns])))
    )
    size = len(encode(wide))
    assert size > 90_000
    for number in range(40):
        key = f"{KEY}{number}"
        assert disk.save(file_name(key), replace(wide, key=key))
        assert disk.usage().bytes <= disk.limit + disk.limit // 32 + size + 4096


def test_what_is_dated_in_the_future_goes_first(disk: Disk) -> None:
    """Written before the clock went back. It was the newest for ever, so nothing else was kept any more."""
    ours = Disk(disk.root.parent if disk.root else None, 8 * 4096, 3600, Counts())
    future = time.time_ns() + 400 * DAY
    assert ours.save(NAME, saved())
    assert ours.root is not None
    for number in range(16):
        path = ours.root / f"{number:064x}.json"
        path.write_bytes(b"old")
        os.utime(path, ns=(future, future))
    left = ours.root / f".{NAME}.{'0' * 16}.tmp"
    left.write_bytes(b"of a killed process")
    os.utime(left, ns=(future, future))
    fresh = Disk(ours.root.parent, 8 * 4096, 3600, Counts())
    for number in range(4):
        assert fresh.save(file_name(f"{number}"), saved(key=f"{number}"))
    assert not left.exists()
    assert ours.usage().bytes <= 13 * 4096
    assert fresh.read(file_name("0"), "0") is not None
    assert fresh.read(NAME, KEY) is not None


def test_work_that_waits_for_a_disk_that_hangs_is_bounded_in_bytes() -> None:
    background, gate = Background(), threading.Event()
    assert background.submit("hangs", gate.wait)
    while background._jobs:
        time.sleep(0)
    assert background.submit("large", lambda: None, MOST_BYTES)
    assert background.submit("large", lambda: None, MOST_BYTES)  # in its place
    assert not background.submit("one more", lambda: None, 1)
    gate.set()
    assert background.flush(60)
    assert background.submit("one more", lambda: None, MOST_BYTES)
    assert background.flush(60)


# -- who waits ---------------------------------------------------------------------------------------------------------


def test_a_disk_that_hangs_keeps_nobody_from_a_table(
    cache: MetadataCache, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun, asked = threading.Event(), threading.Event(), []

    def hang(*_: Any) -> None:
        asked.append(1)
        begun.set()
        assert gate.wait(60)

    monkeypatch.setattr(disks, "content", hang)
    monkeypatch.setattr(cache.disk, "_patience", Patience(0.01))
    for number in range(3):
        cache.disk.root.mkdir(parents=True, mode=0o700, exist_ok=True) if cache.disk.root else None
        os.chmod(cache.disk.root.parent, 0o700) if cache.disk.root else None
        assert cache.described(lake_of(catalog, f"db.t{number}")).table_uuid == "uuid of v1"
    assert begun.wait(60)
    gate.set()
    assert len(asked) == 1


def test_what_a_read_raises_comes_through() -> None:
    def fail() -> None:
        raise OSError("a bad sector")

    with pytest.raises(OSError, match="a bad sector"):
        Patience().wait_for(fail)
    assert Patience().wait_for(lambda: 7) == 7


def test_who_waited_long_enough_for_another_load_loads_by_itself(cache: MetadataCache, catalog: Catalog) -> None:
    cache.tiers.turns = Turns(patience=0.01)
    with ThreadPoolExecutor(1) as pool:
        begun, gate = threading.Event(), threading.Event()

        def hang() -> None:
            key = table_key(lake_of(catalog).config)
            assert key is not None
            with cache.tiers.turns.of(key.text) as mine:
                assert mine
                begun.set()
                assert gate.wait(60)

        waiting = pool.submit(hang)
        assert begun.wait(60)
        assert cache.opened(lake_of(catalog)).handle == [1]
        gate.set()
        waiting.result(60)
    assert len(cache.tiers.turns) == 0
    assert cache.opened(lake_of(catalog)).handle == [2]


def test_a_clock_that_sleeps_with_the_host_is_not_used() -> None:
    awake = time.monotonic()
    assert awake_and_asleep() >= awake


# -- who is who --------------------------------------------------------------------------------------------------------


def config(format: str = "delta", warehouse: str = "/w", **options: str) -> LakeConfig:
    values = {"lake.format": format, "lake.warehouse": warehouse, "lake.table": "db.t"}
    typed = {f"lake.{format}.{key.replace('__', '.')}": value for key, value in options.items()}
    return parse_lake_config(values | typed, origin="test", formats=[format])


def text(made: LakeConfig) -> str:
    key = table_key(made)
    assert key is not None
    return key.text


@pytest.mark.parametrize("way", [{"format_options": {"storage.token": "b"}}, {"format_options": {"storage.x": "b"}}])
def test_nobody_gets_a_handle_with_the_credentials_of_another(
    cache: MetadataCache, catalog: Catalog, way: dict[str, Any]
) -> None:
    """A handle acts with what it was loaded with. The description is for who can look at the table themselves."""
    (option,) = way["format_options"]
    first, second = lake_of(catalog, format_options={option: "a"}), lake_of(catalog, **way)
    assert text(first.config) == text(second.config)
    assert cache.opened(first).handle == [1]
    assert cache.opened(first).handle == [1]
    assert cache.described(second).handle is None
    assert cache.opened(second).handle == [2]
    catalog.error = PermissionError("the second one may not even look")
    assert cache.described(second).table_uuid == "uuid of v1"
    assert catalog.loads == 3  # so it had to ask for the table, which says what is wrong


def test_a_strict_reader_gets_nothing_of_a_lenient_one() -> None:
    assert text(config("localfile")) != text(config("localfile", **{"require-metadata": "false"}))


@pytest.mark.parametrize("warehouse", ["s3://b/w?sig=hunter2", "s3://b/w?a=1"])
def test_nothing_is_kept_of_a_warehouse_whose_name_may_hold_a_secret(warehouse: str) -> None:
    assert table_key(config(warehouse=warehouse)) is None


def test_a_link_that_leads_elsewhere_by_now_names_another_warehouse(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to("a")
    by_link = config(warehouse=str(link))
    assert text(by_link) == text(by_link) == text(config(warehouse=f"{tmp_path}/a"))
    link.unlink()
    link.symlink_to("b")
    assert text(by_link) == text(config(warehouse=f"{tmp_path}/b"))


def test_one_relative_name_in_two_folders_keeps_their_locations_apart(
    cache: MetadataCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Located(Catalog):
        def load_table(self, path: TablePath) -> TableInfo:
            return replace(super().load_table(path), location=f"{os.getcwd()}/lake")

    catalog = Located()
    catalog.gate.set()
    (tmp_path / "real/lake").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    for folder in ("real", "link"):
        monkeypatch.chdir(tmp_path / folder)
        monkeypatch.setenv("PWD", f"{tmp_path}/{folder}")
        found = cache.described(lake_of(catalog, warehouse="lake"))
        assert found.location == f"{os.getcwd()}/lake"


def test_what_another_release_described_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may describe the same table otherwise."""
    made = config(warehouse="relative")
    before = text(made)
    assert maker_of("delta") in before
    assert "deltalake 1." in maker_of("delta")
    assert "laketier 0." in maker_of("localfile")
    monkeypatch.setattr("laketier.tables.metadata.key.maker_of", lambda name: f"{name} 99")
    assert text(made) != before


# -- what others find there --------------------------------------------------------------------------------------------


def described(**changes: Any) -> TableInfo:
    return replace(TABLE, descriptor=replace(TABLE.descriptor, **changes))


NESTED = pa.field(
    "nested", pa.struct([pa.field("x", pa.list_(pa.field("item", pa.int8(), metadata={"api_key": "hunter2"})))])
)
SECRETS: dict[str, Saved] = {
    "a key of an API": saved(table=described(properties={"x-api-key": "hunter2"})),
    "a signature": saved(table=described(properties={"url.signature": "hunter2"})),
    "beside the schema": saved(table=described(schema=TABLE.schema.with_metadata({"password": "hunter2"}))),
    "beside a nested column": saved(table=described(schema=pa.schema([*TABLE.schema, NESTED]))),
    "a URL beside a column": saved(
        table=described(schema=TABLE.schema.with_metadata({"source": "postgresql://me:hunter2@host/db"}))
    ),
    "another way to it": saved(locations={"/lake": "/lake/db/t", "l": "s3://key:hunter2@bucket/db/t"}),
    "a comment": saved(table=described(comment="from s3://key:hunter2@bucket/x")),
}


@pytest.mark.parametrize("where", SECRETS)
def test_no_secret_is_written_wherever_it_is(disk: Disk, where: str) -> None:
    assert not disk.save(NAME, SECRETS[where])
    assert disk.usage() == Usage(0, 0)


# -- what fails behind a load ------------------------------------------------------------------------------------------


def test_a_description_that_cannot_be_written_down_is_served_all_the_same(
    catalog: Catalog, cache: MetadataCache
) -> None:
    class Odd(Catalog):
        def load_table(self, path: TablePath) -> TableInfo:
            found = super().load_table(path)
            return replace(found, descriptor=replace(found.descriptor, properties={"odd": object()}))  # type: ignore[dict-item]

    odd = Odd(gate=catalog.gate)
    for number in range(1, 3):
        assert cache.opened(lake_of(odd)).table_uuid == "uuid of v1"
        assert odd.loads == number
    assert cache.statistics().tables == 0
