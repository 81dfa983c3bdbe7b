"""Processes that tests of the suite kill: forked from one that has only imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier_conformance.child_tasks import stand_elsewhere
from laketier_conformance.children import Child, ChildDied, Children, _processor_seconds
from laketier_conformance.forks import Forks
from laketier_conformance.lake import Lake, ids_of

CHILD = ("laketier_conformance.child", "localfile")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake("localfile", str(tmp_path / "warehouse"), {})


@pytest.fixture
def forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Forks]:
    """With modules of ours within its reach."""
    (tmp_path / "starts_a_thread.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    (tmp_path / "fails.py").write_text("raise RuntimeError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    forks = Forks()
    yield forks
    forks.stop()


def test_a_fork_dies_alone_and_how_is_known(lake: Lake, forks: Forks) -> None:
    lake.create()
    forks.warm(["fails", "no_module_of_this_name"])
    first, second = (Child(fork) for fork in (forks.fork(*CHILD), forks.fork(*CHILD)) if fork is not None)
    told = {"table": "db.t", "pipeline": "p", "epoch": 0, "tasks": [ids_of(0)]}
    with pytest.raises(ChildDied) as death:
        first.ask(lake, "round", **told, failpoints="publish.before=kill")
    assert death.value.code == -signal.SIGKILL
    assert second.ask(lake, "round", **told)["outcome"] == "PUBLISHED"
    first.stop()
    second.stop()
    assert lake.table("db.t").ids == ids_of(0)


def test_another_process_imports_no_pytest() -> None:
    """It is as an application's own, and begins sooner."""
    code = "import sys, laketier_conformance.child; print('pytest' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n", run.stderr


def test_a_fork_is_as_an_interpreter_would_be(forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the environment of its time, its arguments, and libraries that bear no fork to itself."""
    (tmp_path / "bears_none.py").write_text("")
    (tmp_path / "needs_it.py").write_text("import bears_none\n")
    (tmp_path / "tells.py").write_text(
        "import os, sys\n"
        "before = 'bears_none' in sys.modules, 'needs_it' in sys.modules\n"
        "import needs_it\n"
        "print(__name__, *before, os.environ['TOLD'], *sys.argv[1:], flush=True)\n"
        "sys.exit(3)\n"
    )
    forks.warm(["needs_it", "bears_none"], but=["bears_none"])
    monkeypatch.setenv("TOLD", "late")
    fork = forks.fork("tells", "a", "b")
    assert fork is not None
    with fork.stdin, fork.stdout:
        assert fork.stdout.read() == b"__main__ False False late a b\n"
    assert fork.wait() == 3


def test_a_fork_begins_with_what_was_found_out(forks: Forks, tmp_path: Path) -> None:
    """And its garbage collector leaves all of that alone."""
    (tmp_path / "found.py").write_text(
        "import gc, sys\n"
        "def find(what):\n    sys.found = what\n"
        "def fail():\n    raise RuntimeError\n"
        "def tell():\n    return 'nobody asks again'\n"
        "if __name__ == '__main__':\n    print(sys.found, gc.get_freeze_count() > 1000, flush=True)\n"
    )
    assert forks.warm(["found"], ready=("found:find", "before")) is None
    assert forks.warm([], ready=("found:fail",)) is None
    assert forks.warm([], ready=("found:tell",)) == "nobody asks again"
    fork = forks.fork("found")
    assert fork is not None
    with fork.stdin, fork.stdout:
        assert fork.stdout.read() == b"before True\n"
    assert fork.wait() == 0


def test_as_many_modules_as_a_large_library_has_are_imported(forks: Forks, tmp_path: Path) -> None:
    """A socket carries no message as long as their names."""
    names = [f"a_library.with_a_long_name.of_modules_{number}" for number in range(8_000)]
    (tmp_path / "last.py").write_text("import sys\nprint('tells' in sys.modules, flush=True)\n")
    (tmp_path / "tells.py").write_text("")
    forks.warm([*names, "tells"])
    fork = forks.fork("last")
    assert fork is not None
    with fork.stdin, fork.stdout:
        assert fork.stdout.read() == b"True\n"
    assert fork.wait() == 0


def test_what_has_threads_is_not_forked(forks: Forks) -> None:
    """A thread is not there in a fork, and what it held stays locked for ever."""
    forks.warm(["starts_a_thread"])
    assert forks.fork(*CHILD) is None


def test_what_a_harness_warms_up_is_done_once_before_processes_are_forked(tmp_path: Path) -> None:
    """Those have what it found out, and a table of theirs is made as by any other."""
    warm, lake = tmp_path / "warm", Lake("iceberg", str(tmp_path / "warehouse"), {})
    warm.mkdir()
    children = Children("iceberg", lambda: lake, warm)
    first, second = children.take(2)
    done = sorted(path.name for path in warm.rglob("*.json"))
    assert len(done) == 3, "a table, and two epochs"
    assert first.ask(lake, "make", table="db.u")["uuid"] == lake.table("db.u").info.table_uuid
    assert second.ask(lake, "round", table="db.u", pipeline="p", epoch=0, tasks=[ids_of(0)])["outcome"] == "PUBLISHED"
    assert sorted(path.name for path in warm.rglob("*.json")) == done
    children.stop()


def test_a_platform_that_bears_no_forks(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, each is an interpreter of its own."""
    monkeypatch.setattr("sys.platform", "darwin")
    lake.create()
    children = Children("localfile", lambda: lake)
    (child,) = children.take(1)
    answer = child.ask(lake, "round", table="db.t", pipeline="p", epoch=0, tasks=[ids_of(0)])
    children.stop()
    assert answer["outcome"] == "PUBLISHED"
    assert lake.table("db.t").ids == ids_of(0)


HANGING = """
import os, sys, threading, time
from laketier_conformance.child_forks import forked

held, gone = threading.Lock(), os.pipe()
held.acquire()

def leaves_a_process():
    if not os.fork():
        os.close(gone[1])
        os.read(gone[0], 1)
        os._exit(0)
    return {"rows": 3}

def waits_for_another():
    threading.Thread(target=held.acquire, daemon=True).start()
    held.acquire()

def waits_and_goes_on():
    threading.Timer(0.5, held.release).start()
    held.acquire()
    return {"rows": 4}

late = time.monotonic() + 600
does = {
    "held": held.acquire, "threads": waits_for_another, "goes on": waits_and_goes_on, "leaves": leaves_a_process,
    "dies": lambda: os._exit(3), "long": lambda: {"rows": "x" * 10**6},
}
for name, do in does.items():
    found = forked(do, late)
    print(name, found if name != "long" else len(found["rows"]), time.monotonic() < late)
print("clock", forked(lambda: time.sleep(600), time.monotonic()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere than on Linux nothing is forked")
def test_a_fork_that_hangs_is_told_from_one_that_is_slow() -> None:
    """By the kernel: no clock says so, unless the kernel does not."""
    run = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.splitlines() == [
        "held None True",
        "threads None True",
        "goes on {'rows': 4} True",
        "leaves {'rows': 3} True",
        "dies {'failed': 'it died'} True",
        "long 1000000 True",
        "clock None",
    ]


WAITS = "import time; time.sleep(1000)"
WORKS = "import time\nwhile time.process_time() < 1000: pass"
ENDS = "import time\nwhile time.process_time() < 0.3: pass\nprint('{}', flush=True)"


only_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells how much a process works")


@only_linux
@pytest.mark.parametrize(
    ("program", "works", "again", "says"),
    [
        (WAITS, 0.01, 100, "for 0 of them: it waits"),
        (WORKS, 0.0, 2, "it goes on"),
        (ENDS, 0.0, 10_000, None),
    ],
)
def test_a_process_that_works_is_waited_for(
    program: str, works: float, again: int, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with too much to do it takes long, and one that waits for a lock says nothing for ever."""
    for name, value in (("PATIENCE_SECONDS", 0.5), ("_WORKS_SECONDS", works), ("_AGAIN", again)):
        monkeypatch.setattr(f"laketier_conformance.children.{name}", value)
    pipe = subprocess.PIPE
    child = Child(subprocess.Popen([sys.executable, "-S", "-c", program], stdin=pipe, stdout=pipe, bufsize=0))
    try:
        if says is None:
            assert child.answer() == {}
        else:
            with pytest.raises(TimeoutError, match=says):
                child.answer()
    finally:
        child.stop()


@only_linux
@pytest.mark.parametrize(("program", "answers"), [(WAITS, False), (ENDS, True), (WORKS, False)])
def test_a_process_is_waited_for_until_it_waits_itself(
    program: str, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that others keep out by a lock. One that works for longer than a look takes is no such process, and
    one that looks for the lock without a pause can't be told from it: it is waited for no longer than a round takes."""
    for name, value in (("_STILL_WORKS_SECONDS", 0.001), ("_STILL_LOOKS", 1000)):
        monkeypatch.setattr(f"laketier_conformance.children.{name}", value)
    pipe = subprocess.PIPE
    child = Child(subprocess.Popen([sys.executable, "-S", "-c", program], stdin=pipe, stdout=pipe, bufsize=0))
    try:
        assert child.answers_or_waits(0.2) is answers
    finally:
        child.stop()


@only_linux
def test_what_a_process_has_worked_is_found() -> None:
    assert _processor_seconds(os.getpid()) == pytest.approx(sum(os.times()[:4]), abs=0.5)
    assert _processor_seconds(0) == 0.0, "there is none"


def test_a_path_of_the_driver_leads_nowhere_where_an_executor_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that goes up to the root: from the root itself it would lead to the same place."""
    monkeypatch.chdir(tmp_path)  # and back at last
    relative = Path(os.path.relpath(sys.executable))
    assert relative.exists()
    stand_elsewhere()
    assert not relative.exists()
