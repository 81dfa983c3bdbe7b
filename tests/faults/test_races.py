"""Two live drivers of one pipeline: a slice of ``python -m laketier_verification.faults races``, and that its judge can
find fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from depth import sizes
from laketier.spi import Decision
from laketier_verification.faults import races
from laketier_verification.faults.marked import MarkedTable, rows_of
from laketier_verification.faults.oracle import unexplained

FORMATS = ("delta", "iceberg", "lance", "localfile")
FEW, MORE = 7, 20
"""In seven, each kind of race occurs."""


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@sizes("number", FEW, MORE)
def test_of_two_live_drivers_one_wins_each_epoch(tmp_path: Path, format: str, number: int) -> None:
    result = races.run(format, number, tmp_path / "warehouse")
    assert result.wrong == []
    assert result.double_commits == 0
    assert result.races == number
    assert result.wins.total() == result.epochs == number + result.kinds["overtaken"]
    assert result.outcomes["Stale"] == result.kinds["overtaken"], "whoever was overtaken was told so"
    paused = result.kinds["gated"] + result.kinds["zombie"] + result.kinds["overtaken"]
    assert result.refused_commits >= paused, "each of these was refused by the commit itself"
    table = MarkedTable(format, str(tmp_path / "warehouse"))
    left = unexplained(format, table.storage, table.info)
    assert (left.unexplained, left.endangered) == ((), ())
    assert not [path for path in left.unreferenced if path.endswith((".parquet", ".lance", ".inprogress"))]


def test_a_double_commit_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rule that lets every round through, the races must come out wrong."""
    table = MarkedTable("localfile", str(tmp_path / "warehouse")).create(partitioned=True)
    arena = races._Arena(table, {}, races.random.Random(0), races.Races("localfile"))

    def proceed(*_: Any) -> Decision:
        return Decision.PROCEED

    monkeypatch.setattr("laketier.tiering.publish.decide", proceed)
    monkeypatch.setattr("laketier.tiering.round.decide", proceed)
    for name in races.DRIVERS:
        rows = [rows_of(0, name, races.ROWS[name], part) for part in ("a", "b")]
        table.append(0, *rows)
    arena.published = {0: ["left"]}
    races._check(arena)
    assert arena.races.double_commits == 1
    assert any("more" in line for line in arena.races.wrong)
