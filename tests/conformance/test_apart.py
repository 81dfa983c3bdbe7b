"""What the suite does to the files of a warehouse leaves the locks alone that the process of pytest has on them."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import laketier_conformance
from laketier_conformance import apart
from laketier_conformance.interposed.disk import Disk, put, same
from laketier_conformance.interposed.effects import Effect
from laketier_conformance.outside import contents, restore

SUITE = Path(laketier_conformance.__file__).parent
TRIES = """
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "r+b"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("locked")
"""


def is_locked(path: Path) -> bool:
    """By another process than the one that asks."""
    return subprocess.check_output([sys.executable, "-I", "-S", "-c", TRIES, path], text=True) == "locked\n"


no_disk = pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="the model of a disk keeps files open as Linux does it")


@no_disk
def test_a_lock_survives_the_suites_looks(tmp_path: Path) -> None:
    """A database that is kept open has such locks. A look that opened the file in this process would end them."""
    root, file = tmp_path / "w", tmp_path / "w" / "lake.db"
    root.mkdir()
    file.write_bytes(b"as it was")
    with file.open("r+b") as kept:
        fcntl.lockf(kept, fcntl.LOCK_EX)
        whole = contents(root)
        apart.write(file, b"damaged")
        restore(root, whole)
        assert apart.read(file) == b"as it was"
        apart.copy(root, tmp_path / "copy")
        apart.copy(file, tmp_path / "copied.db")
        assert [path.read_bytes() for path in (tmp_path / "copy" / "lake.db", tmp_path / "copied.db")] == [
            b"as it was"
        ] * 2
        assert is_locked(file)
        disk = Disk(root)
        apart.write(file, b"unsynced")
        assert [each.thing for each in disk.unsynced()] == ["the bytes of lake.db"]
        for call in ("write", "fsync"):
            disk.apply(Effect(call, (str(file),), through=str(file)))
        assert [*disk.unsynced()] == []
        trees = [tree for _, tree in disk.states()]
        assert {same(tree) for tree in trees} == {same(disk.now())}
        disk.close()
        assert is_locked(file)
        # Another file gets the name: whoever has the old one open keeps its locks.
        put(trees[0], root)
        assert file.read_bytes() == b"unsynced"
    assert not is_locked(file)


@no_disk
def test_a_file_that_has_lost_its_name_is_read(tmp_path: Path) -> None:
    """A disk keeps what was removed, as whoever has it open may sync it."""
    file = tmp_path / "a"
    file.write_bytes(b"kept")
    disk = Disk(tmp_path)
    before = disk.now()
    file.unlink()
    file.write_bytes(b"another")
    assert [each.holds for each in disk.now().values()] == [b"another"]
    assert [each.thing for each in disk.unsynced()] == ["the bytes of a", "the name a"]
    put(before, tmp_path)
    assert file.read_bytes() == b"kept"
    disk.close()


FORKS = """
import os, sys
from laketier_conformance import apart
assert apart.read(sys.argv[1]) == b"kept"
if not os.fork():
    assert apart.read(sys.argv[1]) == b"kept"
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
assert apart.read(sys.argv[1]) == b"kept"
if not os.fork():
    os.read(0, 1)  # it outlives the process that it came from
    os._exit(0)
"""


def test_a_process_that_is_forked_asks_one_of_its_own(tmp_path: Path) -> None:
    """A plugin may fork the process of pytest. Neither of the two waits for the other one at its end."""
    file = tmp_path / "a"
    file.write_bytes(b"kept")
    running = subprocess.Popen([sys.executable, "-c", FORKS, file], stdin=subprocess.PIPE)
    assert running.wait(60) == 0
    assert running.stdin is not None
    running.stdin.close()


def test_an_error_is_that_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as gone:
        apart.read(tmp_path / "none")
    assert (gone.value.errno, gone.value.filename) == (errno.ENOENT, str(tmp_path / "none"))
    with pytest.raises(IsADirectoryError):
        apart.write(tmp_path, b"")
    assert apart.read_all([]) == {}
    odd = tmp_path / os.fsdecode(b"\xff \xc3\xbc")
    apart.write(odd, b"1")
    assert apart.read_all([odd]) == {odd: b"1"}


def test_no_other_module_of_the_suite_opens_files_of_a_warehouse() -> None:
    """The next test that is written must not end the locks of a database. These modules open other files."""
    own = {"apart.py", "proven.py", "manifest.py", "memory.py", "sight.py", "effects.py", "sockets.py", "forks.py"}
    own |= {"failures.py", "locks.py", "child_forks.py", "compare.py"}
    # `committer.open()` and `lake.open(location)` open no file.
    opens = re.compile(
        r"(?<!def )(?<![\w.])open\(|\b(os|io|gzip|Path\(.*\)|\w*(path|file|place|name))\.open\("
        r"|\b(read|write)_(bytes|text)\(|\b(copyfile|copy2|copytree|memory_map|touch)\("
        r"|\b(read_table|read_schema|read_metadata|OSFile|open_file|open_stream|\w+\.dataset)\("
        r"|\bParquetFile\((?!pa\.BufferReader)"
    )
    # No bytes are read through these descriptors; these files are nobody's of a table, or of the suite's own.
    harmless = (
        "os.O_PATH",
        "pa.ipc.open_stream(base64.b64decode(",
        "os.open(os.devnull",
        '.write_text("theirs")',
        'expect((theirs / "notes.txt").read_text(), ',
        "expect(notes.read_text(), ",
        "left = notes.read_text() if notes.exists()",
        'Path("/proc/self/maps").read_text(',
        'Path(f"/proc/{pid}/stat").read_text(',
        "file.touch(exist_ok=False)",
        "stop.touch()",
        "self._told_underway.write_text(",
        "{inode: Path(path).read_bytes() for inode, path in paths.items()}",
    )
    found = [
        f"{module.relative_to(SUITE)}:{number}: {line.strip()}"
        for module in SUITE.rglob("*.py")
        if module.name not in own
        for number, line in enumerate(module.read_text(encoding="utf-8").splitlines(), start=1)
        if opens.search(line) and not any(each in line for each in harmless)
    ]
    assert found == []
