"""A slice of the cells in which a file stays open from epoch to epoch, and proof that they notice a broken guard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from laketier_verification.faults.open_files import FILE_FORMATS, OpenLane
from laketier_verification.faults.points import CRASH_POINTS

Lanes = Callable[[str], OpenLane]

SLICE = [
    ("kill who finishes an open file", "recover.after_copy"),
    ("kill while a file gets its end", "publish.mid_renames"),
    ("pause with a file open, while it is finished by hand", "open.after_append"),
    ("pause who finishes an open file, while another does", "recover.before_sync"),
    ("write behind what was recorded of an open file", "after a kill"),
    ("change an open file", "one byte"),
]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    """The lane of a file format; starting one records its failpoints."""
    made: dict[str, OpenLane] = {}
    with ExitStack() as stack:

        def lane(file_format: str) -> OpenLane:
            if file_format not in made:
                made[file_format] = stack.enter_context(OpenLane(file_format, tmp_path_factory.mktemp(file_format)))
            return made[file_format]

        yield lane


CELLS = [
    pytest.param(
        *(file_format, fault, point),
        id=f"{file_format}-{fault}-{point}".replace(" ", "-"),
        marks=[] if file_format == "json" and number in (0, 2) else [pytest.mark.deep],
    )
    for file_format in FILE_FORMATS
    for number, (fault, point) in enumerate(SLICE)
]


@pytest.mark.parametrize(("file_format", "fault", "point"), CELLS)
def test_every_row_once(lanes: Lanes, tmp_path: Path, file_format: str, fault: str, point: str) -> None:
    lane = lanes(file_format)
    result = lane.run(lane.cell(fault, point), tmp_path)
    assert result.status == "passed", result


def test_rows_that_nobody_recorded_are_noticed(lanes: Lanes, tmp_path: Path) -> None:
    lane = lanes("json")
    cell = lane.cell("write behind what was recorded of an open file", "after a kill")
    result = lane.run(cell, tmp_path, broken="all_of_an_open_file_is_finished")
    assert result.status == "failed", result
    assert result.alien or "CorruptTable" in result.why, result


def test_each_row_about_open_files_has_cells(lanes: Lanes) -> None:
    cells = lanes("json").cells
    rows = [row for row in CRASH_POINTS if row.name.startswith("`recover.open_file")]
    assert len(rows) == 4
    for row in rows:
        assert any(row.covers(cell.fault, cell.point) for cell in cells), row.name
