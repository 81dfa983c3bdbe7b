"""A step before a commit fails in each attempt: nothing was written, and it is told so, also to a batch without a
pipeline, which has no epoch by which it could be run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.kit import failpoints
from laketier.spi import CorruptTable, NotBegun, Token, WriteResult
from laketier.tiering import TieringRound
from laketier.tiering.failpoints import PUBLISH_BEFORE
from laketier_verification.faults.housekeeping import foreigner_for
from laketier_verification.faults.marked import MarkedTable, rows_of

BEFORE = {
    "delta": "publish.between_record_and_commit",
    "iceberg": "publish.between_manifests_and_commit",
    "lance": "publish.before_commit",
    "localfile": "publish.before_manifest",
}
"""The last step before the effect."""


def _staged(table: MarkedTable, tiering: TieringRound) -> list[WriteResult]:
    tiering.begin()
    return table.stage(table.factory, [[rows_of(1, "ours", 4)]])


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
@pytest.mark.parametrize("format", BEFORE)
def test_a_step_before_the_commit_that_fails_is_no_unknown_outcome(format: str, known: bool, tmp_path: Path) -> None:
    table = MarkedTable(format, str(tmp_path / "warehouse")).create()
    table.append(0, rows_of(0, "ours", 4))
    tiering = TieringRound(table.factory, token=Token("p", "run", 1) if known else None)
    staged = _staged(table, tiering)

    def failing(step: str) -> None:
        if step == BEFORE[format]:
            raise OSError("the mount is gone")

    with failpoints.observed(failing), pytest.raises(NotBegun, match=r"nothing was published.*the mount is gone"):
        tiering.commit(staged)
    assert table.marks() == {(0, "ours"): 4}
    assert table.append(1, rows_of(1, "ours", 2)).rows == 2
    assert table.marks() == {(0, "ours"): 4, (1, "ours"): 2}


def test_a_log_entry_that_can_not_be_read_before_a_commit(tmp_path: Path) -> None:
    """Delta's look for files that were published before reads the entries since the table was loaded. The next attempt
    can't open the table, and that is all there is to say."""
    table = MarkedTable("delta", str(tmp_path / "warehouse")).create()
    tiering = TieringRound(table.factory, token=None)
    staged = _staged(table, tiering)
    other = foreigner_for(table)
    other.append(0)
    other.close()
    (entry,) = (tmp_path / "warehouse").rglob("*1.json")

    def damaged(step: str) -> None:
        if step == PUBLISH_BEFORE:
            entry.write_bytes(b"{")

    with failpoints.observed(damaged), pytest.raises(CorruptTable, match="the Delta log can't be read"):
        tiering.commit(staged)
