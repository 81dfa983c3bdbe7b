"""The order in which a round on local files asks the kernel for things, and what a power cut in between may leave.

``LAKETIER_POWERCUT_STATES=20`` draws that many states per moment beside the five corners, instead of two.
`pytest -rP` shows how many were judged.
"""

from __future__ import annotations

import ast
import logging
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

import laketier.kit.durable
import laketier.kit.local_folder
import laketier.kit.local_store
import laketier.kit.manifests
import laketier_localfile
from depth import deep_where, sizes
from laketier_verification.powercut import open_files
from laketier_verification.powercut.disk import materialise
from laketier_verification.powercut.order import violations
from laketier_verification.powercut.recording import NAMES, Judge, Recording, cuts, record, record_all
from laketier_verification.powercut.scenario import FOR_OTHERS, STEPS
from laketier_verification.powercut.trace import why_not

pytestmark = [pytest.mark.skipif(why_not() is not None, reason=str(why_not())), pytest.mark.timeout(1200)]

DRAWN = int(os.environ.get("LAKETIER_POWERCUT_STATES", "2"))
CREATE, APPEND, APPEND_MORE, OVERWRITE = 0, 1, 2, 3
"""Every other manifest is followed by a rollup, whose own sync covers up a forgotten one: hence two appends."""
OPEN_FORMATS = ("json", "arrow")
OPEN_SYNCS = (
    "open_writer._left_open of a file",
    "open_writer.complete of a directory",
    "growing.finish_open of a file",
    "growing.finish_open of a directory",
)
NOT_RECORDED = {
    # A file with two names that are two files: what a restore leaves that knows no hard links.
    "settle._is_copy of a file",
    # It takes a manifest back whose name somebody else freed by deleting manifests: no step of a table's own life.
    "log._refuse_reused_name of a directory",
    # Files of others that are adopted, and manifests that are made again: no step of a table's own life, either.
    "lying_on_disk.move_aside of a directory",
    "lying_on_disk.opened of a file",
    "lying_on_disk.sync of a directory",
    "looking.look_at of a directory",
}
ORDERED = {
    "staging.closed of a file": "is not synced before the manifest names it",
    "staging.complete of a directory": "the folder of .* is not synced before the manifest names it",
    "durable.create_exclusively of a file": "the manifest is not synced before it gets its name",
    "durable.create_exclusively of a directory": "the manifest's name is not synced",
    "settle._sync_and_unlink of a directory": "is not synced before .* is unlinked",
    "settle._promote of a parent directory": "the new folder .* is not synced",
}
SHOWN = {
    *ORDERED,
    "settle._retire of a directory",
    "settle._retire of a parent directory",
    "creation.create_manifests of a parent directory",
    "local_folder.remove_folder of a directory",
    "durable.make_directories of a directory",
}
SLOWEST = "settle._retire of a directory"
"""Most moments lie between a batch that is retired and the first state that misses it."""
ASKED = {name.rpartition(".")[2]: kind for name, kind in FOR_OTHERS.items() if kind} | {"fsync": "file"}
"""What code calls for a sync, and of what."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record_all(tmp_path_factory.mktemp("recorded").resolve())


@pytest.fixture(scope="module", params=OPEN_FORMATS)
def open_recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Recording, Callable[[Path, int], None]]:
    """Of a table whose files stay open, and what judges it."""
    folder = tmp_path_factory.mktemp("open").resolve()
    return Recording(*open_files.recorded(folder, request.param)), partial(open_files.judge, file_format=request.param)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """One for all tests of the module, so that no state is judged twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # the states that are judged need not be durable themselves
        logging.disable(logging.WARNING)
        yield Judge(tmp_path_factory.mktemp("states"))
        logging.disable(logging.NOTSET)


def test_each_step_is_on_the_device_before_the_next_relies_on_it(recording: Recording) -> None:
    assert violations(recording.step(APPEND)) == []


@pytest.mark.parametrize("site", ORDERED)
def test_a_forgotten_sync_breaks_the_order(recording: Recording, site: str) -> None:
    broken = violations(recording.without(site).step(APPEND))
    assert any(re.search(ORDERED[site], rule) for rule in broken), broken


def test_a_sync_that_the_process_really_left_out(tmp_path: Path) -> None:
    site = "settle._sync_and_unlink of a directory"
    left_out = record_all(tmp_path.resolve(), without=site)
    assert site not in left_out.sites
    assert violations(left_out.step(APPEND))


def test_every_sync_of_the_code_was_recorded(
    recording: Recording, open_recording: tuple[Recording, Callable[[Path, int], None]]
) -> None:
    """So a sync that somebody adds, and no test needs, is found."""
    called = set()
    kit = [
        Path(module.__file__) for module in (laketier.kit.durable, laketier.kit.local_folder, laketier.kit.local_store)
    ]
    packages = [Path(laketier.kit.manifests.__file__).parent, Path(laketier_localfile.__file__).parent]
    for file in [*kit, *(file for package in packages for file in package.glob("*.py"))]:
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef) and f"{file.stem}.{function.name}" not in FOR_OTHERS:
                called |= {f"{file.stem}.{function.name} of a {kind}" for kind in _synced_in(function)}
    assert called - recording.sites - open_recording[0].sites == NOT_RECORDED
    assert recording.sites <= called


def _synced_in(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]  # a function, or the method of any folder
            if called in ASKED:
                yield ASKED[called]


@sizes("every", 16, 1)
def test_any_power_cut(recording: Recording, judge: Judge, every: int) -> None:
    """What was acknowledged is whole, what was under way is whole or not there, and the next driver goes on."""
    before = len(judge.judged)
    moments = 0
    for number, disk, acknowledged, last in cuts(recording):
        if number % every:
            continue
        moments += 1
        judge.look(disk.states(f"cut {number}", DRAWN), acknowledged, last)
    print(f"{len(judge.judged) - before} different states of a disk at {moments} moments of {len(STEPS)} steps")
    assert not judge.wrong, "\n".join(judge.wrong[:20])


@sizes("every", 16, 1)
def test_any_power_cut_while_open_files_grow(
    open_recording: tuple[Recording, Callable[[Path, int], None]], judge: Judge, tmp_path: Path, every: int
) -> None:
    """Each epoch that was acknowledged is whole, and whoever comes next finishes what was recorded."""
    recorded, rule = open_recording
    open_judge = Judge(tmp_path, rule)
    for number, disk, acknowledged, last in cuts(recorded):
        if number % every == 0:
            open_judge.look(disk.states(f"cut {number}", DRAWN), acknowledged, last)
    print(f"{len(open_judge.judged)} different states of a disk")
    assert not open_judge.wrong, "\n".join(open_judge.wrong[:20])


@pytest.mark.parametrize("site", OPEN_SYNCS)
def test_a_forgotten_sync_of_an_open_file_loses_rows(
    open_recording: tuple[Recording, Callable[[Path, int], None]], judge: Judge, tmp_path: Path, site: str
) -> None:
    """At some moment, of which nothing is left that was not synced."""
    recorded, rule = open_recording
    assert site in recorded.sites
    open_judge = Judge(tmp_path, rule)
    for _, disk, acknowledged, last in cuts(recorded.without(site)):
        if not open_judge.look(islice(disk.states("", 0), 1), acknowledged, last):
            return
    raise AssertionError(f"nothing was lost without {site}")


@sizes("every", 4, 1)
def test_a_power_cut_after_a_killed_driver_and_its_successor(
    recording: Recording, judge: Judge, tmp_path: Path, every: int
) -> None:
    """What a killed driver did and did not sync is the successor's to make durable before it acknowledges."""
    folder = tmp_path.resolve() / "killed"
    folder.mkdir()
    killed = []
    named = 0
    for number, disk, acknowledged, last in cuts(recording):
        if acknowledged in (CREATE, APPEND, APPEND_MORE, OVERWRITE) and recording.ops[number].kind in NAMES:
            named += 1
            if named % every:
                continue
            left = disk.moved_to(str(folder / str(number)))
            Path(left.root).mkdir()
            materialise(left.now(), Path(left.root))
            killed.append((left, acknowledged, last))
    ops = iter(record(folder, [(Path(left.root), step, step + 1) for left, step, _ in killed]))
    before = len(judge.judged)
    wrong = len(judge.wrong)
    for left, step, last in killed:
        for op in ops:
            left.apply(op)
            if op.kind == "mark" and op.site.startswith("ack"):
                break
        judge.look(left.states(f"killed {left.root}", DRAWN), step + 1, f"killed at {last}, and done by another")
    print(f"{len(judge.judged) - before} different states of a disk after {len(killed)} kills and recoveries")
    assert not judge.wrong[wrong:], "\n".join(judge.wrong[wrong:][:20])


@pytest.mark.parametrize("site", deep_where([(site,) for site in sorted(SHOWN)], lambda site: site == SLOWEST))
def test_a_power_cut_shows_a_forgotten_sync(recording: Recording, judge: Judge, site: str) -> None:
    assert site in recording.sites
    forgotten = recording.without(site)
    # Up to the first that is forgotten nothing differs from `test_any_power_cut`.
    first = next(index for index, op in enumerate(recording.ops) if op.kind == "sync" and op.site == site)
    wrong = len(judge.wrong)
    for number, disk, acknowledged, last in cuts(forgotten):
        if number >= first and not judge.look(disk.states(f"cut {number}", DRAWN), acknowledged, last):
            break
    told = judge.wrong[wrong:]
    print(f"without {site}: {told[:1]}")
    assert told, f"nothing shows that {site} is needed"
    del judge.wrong[wrong:]
