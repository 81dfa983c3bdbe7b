"""A plugin at work leaves its process to the application: its settings, its output, and what is open in it."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from laketier_conformance import started
from laketier_conformance.child_forks import DIED
from laketier_conformance.children import Child, Children
from laketier_conformance.expect import expect
from laketier_conformance.lake import Lake, Opened, ids_of
from laketier_conformance.lives import MASK, OPEN_MASK, ROUNDS


@dataclass(frozen=True)
class Lived:
    """What a process answered that used a table, and the modes of the files that it made under each mask."""

    answer: dict[str, Any]
    modes: dict[int, dict[str, int]]


@pytest.fixture(scope="module")
def lived(_children: Children, opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    """Of one table there are several looks."""
    folder, temporary = tmp_path_factory.mktemp("lived"), tmp_path_factory.mktemp("temporary")
    with opened(folder) as lake:
        before = {str(path.relative_to(folder)) for path in folder.rglob("*")}
        [child] = _children.take(1)
        began = {"environment": dict(started.ENVIRONMENT), "limits": dict(started.LIMITS)}
        answer = child.ask(lake, "live", temporary=str(temporary), folder=str(folder), **began)
        child.stop()
        assert "rows" in answer, f"a process used a table in all ways, and ended in an error: {answer}"
        local = Path(lake.location).is_dir()
        found = {MASK: answer["modes"], OPEN_MASK: answer["open modes"]} if local else {}
        yield Lived(answer, {mask: {n: m for n, m in each.items() if n not in before} for mask, each in found.items()})


def test_work_changes_no_settings(lived: Lived) -> None:
    """They are the application's, which has others in the same process: on drivers, on executors, in tests."""
    expect(lived.answer["changed"], {}, "settings of a process that a table's use changes, before and after")
    assert not lived.answer["seeded"], (
        "rounds began with other random numbers and ended with the same: the plugin seeds those of the whole process"
    )


def test_work_prints_nothing(lived: Lived) -> None:
    """What a command prints may be read by another program. Whoever wants to be told of the work sets up logging."""
    expect(lived.answer["printed"], [], "lines that a table's use prints to the standard output")


def test_work_leaves_nothing_open(lived: Lived) -> None:
    """A service runs rounds for months, some of which fail, and its readers give up in the middle."""
    for what, more in lived.answer["grown"].items():
        opened = lived.answer["opened"] if "descriptors" in what else []
        assert more < ROUNDS, (
            f"{what} after {ROUNDS} more rounds, lost races, reads and aborted writers: expected no more than before, "
            f"found {more} more{f', such as {opened[-3:]}' if opened else ''}"
        )


def test_a_process_that_forks(
    lake: Lake, children: Callable[[int], list[Child]], unproven: Callable[[str, str], None]
) -> None:
    """As a daemon or a pool of processes does it. A child that ends by itself runs what its parent registered for the
    end, and takes nothing away that the parent works on. A child that works opens connections of its own. What a
    library with threads does not bear in a fork is not asked for."""
    if sys.platform != "linux":
        unproven("processes that fork", "elsewhere than on Linux, libraries do not bear it")
        return
    [child] = children(1)
    told = child.ask(lake, "fork")
    assert "went on" in told, f"a process used a table, and forked: {told}"
    expected = [i for epoch in range(2) for i in ids_of(epoch)]
    did = "a process forked in the middle of a task and a commit, and the child did nothing and ended"
    assert told["ends"] is None or not told["went on"] or "rows" in told, (
        f"{did}; the task was completed then, and its result published: expected no error, found {told['went on']}. "
        "What is tidied up at the end of a process is that process's own: ask for os.getpid() first"
    )
    for what in [each for each in ("ends", "works", "works alone") if told.get(each, {}) is None]:
        unproven("processes that fork", f"a child hung that {what}: the library does not bear it")
        return
    expect(told["rows"][0], expected, f"{did}: rows of the process")
    works = told["works"]
    if "rows" not in works:
        why = str(works.get("refused") or works.get("failed")).partition(":")[0]
        unproven("processes that fork", f"a child can't use the table, as its work ends in {why}")
        return
    expect(
        works["rows"],
        sorted([*expected, *ids_of(0)]),
        "rows that a child found, which a process forked and which published",
    )
    alone = told.get("works alone", works)
    if alone.get("failed") == DIED:  # below Python: what its parent had open tells by an error
        unproven("processes that fork", "a child died in a library that works alone: the library does not bear it")
        return
    assert "rows" in alone, (
        f"a child works that a process forked which used the table, and it fails without the {told['open']} sockets "
        f"and files that its parent has open: {alone}. Keep a connection by the number of the process, and open one in "
        "a child"
    )
    assert not told["went on"], f"a process went on after its children had worked: {told['went on']}"


def test_files_are_for_whom_the_mask_says(lived: Lived) -> None:
    """Others of the host read the table as well, or may not: who runs the process says so, for all of its files."""
    for mask, modes in lived.modes.items():
        may_read = (stat.S_IRGRP | stat.S_IROTH) & ~mask
        for name, mode in modes.items():
            assert mode & may_read == may_read, (
                f"under the mask {mask:04o} {'a group' if mask == MASK else 'everybody'} can't read the table: {name} "
                f"has the mode {mode:04o}"
            )
            assert not mode & mask, (
                f"under the mask {mask:04o} others than {'a group' if mask == MASK else 'its owner'} may: {name} has "
                f"the mode {mode:04o}"
            )
