"""The disk tier: shared, bounded, believed only where it can be, and never in anybody's way."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from laketier.spi import (
    host_time,
)
from laketier.spi.clocks import shifted
from laketier.tables.metadata.counts import Counts
from laketier.tables.metadata.disk import Disk, Usage
from laketier.tables.metadata.document import decode, encode
from laketier.tables.metadata.folder import cache_folder
from saved_table import KEY, NAME, SCHEMA, TABLE, saved

PATHS = os.pathsep.join((str(Path(__file__).parent), str(Path(__file__).parents[2] / "support")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def disk(root: Path) -> Disk:
    return Disk(root, 1 << 20, 3600, Counts())


def file_of(disk: Disk) -> Path:
    assert disk.root is not None
    return disk.root / f"{NAME}.json"


def test_all_of_a_description_comes_back(disk: Disk) -> None:
    made = saved()
    assert disk.save(NAME, made)
    found = disk.read(NAME, KEY)
    assert found == made
    assert found is not None
    assert found.table.schema.equals(SCHEMA, check_metadata=True)
    assert disk.usage() == Usage(1, 4096)


def test_it_is_private(disk: Disk, root: Path) -> None:
    before = os.umask(0)
    try:
        assert disk.save(NAME, saved())
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (root, disk.root, file_of(disk)) if path}
    assert modes == {"cache": 0o700, "tables-1": 0o700, file_of(disk).name: 0o600}


def damaged(data: bytes) -> bytes:
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


def forged(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    """A document with a checksum that is right, which somebody else wrote."""

    def forge(data: bytes) -> bytes:
        document = json.loads(data[65:])
        changed = change(document)
        text = json.dumps(document if changed is None else changed).encode()
        return hashlib.sha256(text).hexdigest().encode() + b"\n" + text

    return forge


def in_table(name: str, value: object) -> Callable[[bytes], bytes]:
    return forged(lambda document: document["table"].__setitem__(name, value))  # type: ignore[attr-defined]


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "a flipped bit": damaged,
    "a pickle": lambda data: b"cos\nsystem\n(S'touch /tmp/x'\ntR.",
    "too large": lambda data: data + b" " * (5 << 20),
    "of a later version": forged(lambda document: document.update(v=2)),
    "of another table": forged(lambda document: document.update(key="another")),
    "from the future": forged(lambda document: document.update(saved_at=host_time() + 60_000)),
    "of the year 10000": forged(lambda document: document.update(saved_at=10**30)),
    "of before 1970": forged(lambda document: document.update(saved_at=-1)),
    "a time as text": forged(lambda document: document.update(saved_at="0")),
    "without a version": forged(lambda document: document.update(version="")),
    "another field": forged(lambda document: document.update(extra=1)),
    "a list": forged(lambda document: [document]),
    "a deep list": forged(lambda document: document.update(table=json.loads("[" * 500 + "]" * 500))),
    "a name that is none": in_table("name", "../../etc/passwd"),
    "a schema that is none": in_table("arrow_schema", "AAAAAAAA//////8="),
    "a schema that is not base64": in_table("arrow_schema", "\u0000\u0001"),
    "a transform that is none": in_table("partition_by", [{"column": "key", "transform": "exec", "width": None}]),
    "a key that is no column": in_table("primary_key", ["nobody"]),
    "properties that are no text": in_table("properties", {"a": 1}),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_what_is_not_ours_falls_through_and_is_replaced(disk: Disk, how: str) -> None:
    assert disk.save(NAME, saved())
    path = file_of(disk)
    path.write_bytes(HOSTILE[how](path.read_bytes()))
    assert disk.read(NAME, KEY) is None
    assert not path.exists()
    assert disk._counts.rejected_files == 1
    assert disk.save(NAME, saved())
    assert disk.read(NAME, KEY) is not None


def test_what_is_too_old_falls_through(disk: Disk) -> None:
    made = saved(saved_at=host_time() - 3601_000)
    assert disk.save(NAME, made)
    assert disk.read(NAME, KEY) is None
    assert disk._counts.rejected_files == 0


def test_a_clock_that_went_back_is_not_believed(disk: Disk) -> None:
    with shifted(7200_000):
        assert disk.save(NAME, saved())
    assert disk.read(NAME, KEY) is None


def test_no_link_is_followed(disk: Disk, root: Path, tmp_path: Path) -> None:
    """Neither to read nor to write, of a file or of a folder."""
    assert disk.save(NAME, saved())
    elsewhere = tmp_path / "elsewhere.json"
    file_of(disk).rename(elsewhere)
    file_of(disk).symlink_to(elsewhere)
    assert disk.read(NAME, KEY) is None
    assert elsewhere.exists()
    file_of(disk).symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert disk.save(NAME, saved(version="other"))
    assert elsewhere.read_bytes() == before
    assert not file_of(disk).is_symlink()
    root.rename(tmp_path / "moved")
    root.symlink_to(tmp_path / "moved")
    assert not disk.save(NAME, saved())
    assert disk.read(NAME, KEY) is None


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_into_is_not_used(
    disk: Disk, root: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    root.mkdir()
    root.chmod(mode)
    for _ in range(3):
        assert not disk.save(NAME, saved())
        assert disk.read(NAME, KEY) is None
    assert list(root.iterdir()) == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2  # once of writing, once of reading


def test_a_folder_of_another_user_is_not_used(disk: Disk, root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    root.mkdir(mode=0o700)
    os.chown(root, 12345, 12345)
    assert not disk.save(NAME, saved())
    assert disk.read(NAME, KEY) is None


def test_pipes_and_folders_in_its_place_stop_nobody(disk: Disk) -> None:
    assert disk.save(NAME, saved())
    file_of(disk).unlink()
    os.mkfifo(file_of(disk))
    assert disk.read(NAME, KEY) is None
    assert disk.save(NAME, saved())
    file_of(disk).unlink()
    file_of(disk).mkdir()
    assert disk.read(NAME, KEY) is None
    assert not disk.save(NAME, saved())
    assert disk.entries() == []


def test_a_folder_that_cannot_be_made_harms_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "file").write_text("")
    disk = Disk(tmp_path / "file" / "cache", 1 << 20, 3600, Counts())
    for _ in range(3):
        assert not disk.save(NAME, saved())
    assert disk._counts.failed_saves == 3
    assert len(caplog.records) == 1
    nowhere = Disk(None, 1 << 20, 3600, Counts())
    assert not nowhere.save(NAME, saved())
    assert nowhere.read(NAME, KEY) is None
    assert (nowhere.entries(), nowhere.usage(), nowhere.clear()) == ([], Usage(0, 0), 0)


def test_a_folder_that_was_deleted_meanwhile_is_made_again(disk: Disk, root: Path) -> None:
    assert disk.save(NAME, saved())
    subprocess.run(["rm", "-r", str(root)], check=True)
    assert disk.read(NAME, KEY) is None
    assert disk.save(NAME, saved())
    assert disk.read(NAME, KEY) is not None


def test_a_full_disk_harms_nobody(tmp_path: Path) -> None:
    """A file of 0 bytes at most is all that this process may write, as on a full disk; nothing is left behind."""
    program = (
        "import os, resource, signal, sys; sys.path[:0] = sys.argv[1].split(os.pathsep); "
        "from test_metadata_disk import *; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
        "disk = Disk(Path(sys.argv[2]), 1 << 20, 3600, Counts()); assert not disk.save(NAME, saved()); "
        "assert disk._counts.failed_saves == 1; assert os.listdir(disk.root) == []"
    )
    folder = PATHS
    subprocess.run([sys.executable, "-c", program, folder, str(tmp_path / "cache")], check=True)


def test_secrets_are_not_written(disk: Disk) -> None:
    for properties in ({"s3.secret-access-key": "hunter2"}, {"uri": "postgresql://me:hunter2@host/db"}):
        described = replace(TABLE, descriptor=replace(TABLE.descriptor, properties=properties))
        assert not disk.save(NAME, saved(table=described))
    assert disk.usage() == Usage(0, 0)


def test_the_folder_stays_within_its_bytes(root: Path) -> None:
    """The files that were written longest ago go first."""
    size = 4096  # a small file takes a block
    disk = Disk(root, 10 * size + size // 2, 3600, Counts())
    for number in range(130):  # it looks once in a while
        name = hashlib.sha256(str(number).encode()).hexdigest()
        assert disk.save(name, saved())
        assert disk.root is not None
        os.utime(disk.root / f"{name}.json", ns=(0, 10**18 + number * 10**9))
        assert disk.usage().bytes <= disk.limit + disk.limit // 32 + size
    newest = hashlib.sha256(b"129").hexdigest()
    assert disk.read(newest, KEY) is not None
    assert not (disk.root or root).joinpath(f"{hashlib.sha256(b'0').hexdigest()}.json").exists()


SAVER = """
import os, sys; sys.path[:0] = sys.argv[1].split(os.pathsep)
from test_metadata_disk import *
disk = Disk(Path(sys.argv[2]), 1 << 20, 3600, Counts())
assert disk.save(NAME, saved(version=sys.argv[3] * 1000))
print("begun", flush=True)
while True:
    assert disk.save(NAME, saved(version=sys.argv[3] * 1000))
    found = disk._read(NAME, KEY)  # however long it takes
    assert found is not None, "a reader found nothing"
"""


def test_processes_that_are_killed_leave_nothing_torn_and_no_garbage_for_ever(root: Path, disk: Disk) -> None:
    folder, versions = PATHS, ("a", "b", "c")
    for _ in range(4):
        command = [sys.executable, "-c", SAVER, folder, str(root)]
        children = [subprocess.Popen([*command, v], stdout=subprocess.PIPE, text=True) for v in versions]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            found = disk.read(NAME, KEY)
            assert found is None or found.version[0] * 1000 == found.version
        for child in children:
            child.send_signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
            assert child.stdout is not None
            child.stdout.close()
    assert disk.read(NAME, KEY) is not None
    assert disk.root is not None
    remains = [path for path in disk.root.iterdir() if path.name.endswith(".tmp")]
    for path in [*remains, disk.root / f".{NAME}.{'0' * 16}.tmp"]:
        path.touch()
        os.utime(path, ns=(0, 10**18))
    foreign = disk.root / ".notes.tmp"
    foreign.write_text("not ours")
    fresh = Disk(root, 1 << 20, 3600, Counts())  # the first save of a process sweeps
    assert fresh.save(NAME, saved())
    assert sorted(path.name for path in disk.root.iterdir()) == [foreign.name, f"{NAME}.json"]


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"LAKETIER_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/laketier"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/laketier"),
        ({"HOME": "/h"}, "/h/.cache/laketier"),
        ({"HOME": ""}, None),
        ({}, None),
        ({"LAKETIER_CACHE_DIR": "", "HOME": "/h"}, None),
        ({"LAKETIER_CACHE_DIR": "relative", "HOME": "/h"}, None),
    ],
)
def test_where_it_lies(environment: dict[str, str], folder: str | None) -> None:
    assert cache_folder(environment) == (None if folder is None else Path(folder))


def test_no_random_bytes_are_believed() -> None:
    good = encode(saved())
    for cut in range(0, len(good), 7):
        assert decode(good[:cut]) is None
        assert decode(good[cut:]) is None or cut == 0
