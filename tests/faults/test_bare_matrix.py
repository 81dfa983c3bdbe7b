"""A slice of the fault matrix (`make test-faults` runs all of it), and proof that it notices broken guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from laketier.tiering.failpoints import PROTOCOL
from laketier_verification.faults.matrix import FORMATS, BareLane

Lanes = Callable[[str], BareLane]

SLICE = [
    ("kill", "publish.before"),
    ("kill, and kill the recovery", "publish.after"),
    ("error once", "publish.after"),
    ("pause while a second driver finishes", "publish.before"),
    ("pause while orphans are collected", "publish.before"),
    ("delete the whole progress log", "at the end"),
    ("restore an older progress log", "other rows, same epoch"),
    ("run each task twice", "and kill"),
    ("run out of file handles", "2 to spare"),
    ("limit the size of files", "64 bytes"),
]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    """The lane of a format; starting one records its failpoints."""
    open_lanes: dict[str, BareLane] = {}
    with ExitStack() as stack:

        def lane(format: str) -> BareLane:
            if format not in open_lanes:
                open_lanes[format] = stack.enter_context(BareLane(format, tmp_path_factory.mktemp(format)))
            return open_lanes[format]

        yield lane


def _deep(format: str, number: int) -> bool:
    """Each fault meets one format in `make test`, by turns; the rest is deep."""
    return (FORMATS.index(format) - number) % len(FORMATS) != 0


CELLS = [
    pytest.param(
        *(name, fault, point),
        id=f"{name}-{fault}-{point}".replace(" ", "-"),
        marks=[pytest.mark.deep] if _deep(name, number) else [],
    )
    for name in FORMATS
    for number, (fault, point) in enumerate(SLICE)
]


@pytest.mark.parametrize(("format", "fault", "point"), CELLS)
def test_every_row_once(lanes: Lanes, tmp_path: Path, format: str, fault: str, point: str) -> None:
    lane = lanes(format)
    result = lane.run(lane.cell(fault, point), tmp_path)
    assert result.status in ("passed", "not run"), result
    assert result.status == "passed" or fault == "pause while orphans are collected"


@pytest.mark.parametrize("format", FORMATS)
def test_killed_at_a_step_of_the_format_itself(lanes: Lanes, tmp_path: Path, format: str) -> None:
    lane = lanes(format)
    (*_, point) = (name for name in lane.points if name.startswith("publish.") and name not in PROTOCOL)
    result = lane.run(lane.cell("kill, and kill the recovery", point), tmp_path)
    assert result.status == "passed", result


@pytest.mark.parametrize("format", ["delta", "localfile"])
def test_rows_that_are_published_twice_are_noticed(lanes: Lanes, tmp_path: Path, format: str) -> None:
    lane = lanes(format)
    result = lane.run(lane.cell("kill", "publish.after"), tmp_path, broken="publish_ignores_done")
    assert (result.status, result.lost, result.torn) == ("failed", 0, 0)
    assert result.doubled >= 10


def test_rows_that_are_lost_are_noticed(lanes: Lanes, tmp_path: Path) -> None:
    lane = lanes("localfile")
    result = lane.run(lane.cell("kill", "ack.before"), tmp_path, broken="commit_forgets_a_task")
    assert (result.status, result.doubled) == ("failed", 0)
    assert result.lost
    assert result.torn


def test_a_live_file_that_is_deleted_is_noticed(lanes: Lanes, tmp_path: Path) -> None:
    lane = lanes("iceberg")
    result = lane.run(lane.cell("error once", "publish.after"), tmp_path, broken="unknown_is_taken_for_lost")
    assert result.status == "failed", result


def test_files_that_nobody_finds_are_noticed(lanes: Lanes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from laketier.kit import ManifestMaintenance

    monkeypatch.setattr(ManifestMaintenance, "orphans", lambda self, before: [])
    lane = lanes("localfile")
    result = lane.run(lane.cell("kill", "publish.before"), tmp_path)
    assert (result.status, result.unexplained) == ("failed", 2)


def test_a_fault_that_does_not_happen_is_noticed(lanes: Lanes, tmp_path: Path) -> None:
    lane = lanes("localfile")
    result = lane.run(lane.cell("kill", "publish.before"), tmp_path, failpoints="")
    assert result.status == "failed"
    assert "expected killed" in result.why
