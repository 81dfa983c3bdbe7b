"""Rounds over a landing zone from which files were deleted before they were read, on every format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from laketier.config import LakeConfig
from laketier.registry import open_lake
from laketier.rounds import LogRound, LogRoundSettings, OnExpired
from laketier.rounds.log_engine import LocalEngine
from laketier.service.schedule import is_retryable
from laketier.spi import OffsetsExpired, ScanRequest, StorageError, Watermark
from laketier.tables.scan import scan
from laketier.tiering import pipelines
from landing import land, log_of

SKIP = LogRoundSettings(on_expired=OnExpired.SKIP)


@dataclass
class Zone:
    folder: Path
    config: LakeConfig
    engine: LocalEngine

    def planned(self, settings: LogRoundSettings) -> tuple[LogRound, list[Any]]:
        made = LogRound(log_of(self.folder), self.config, settings)
        return made, list(made.plan())

    def round(self, settings: LogRoundSettings = SKIP) -> Any:
        made, tasks = self.planned(settings)
        return made.finish(self.engine.run(tasks))

    def taken(self, *numbers: int) -> None:
        """Files that a round of another table, or a union read, has taken into the ledger."""
        for number in numbers:
            land(self.folder, f"{number}.json", number, at=number + 1)
        log_of(self.folder).bounds()

    def delete(self, *numbers: int) -> None:
        for number in numbers:
            (self.folder / "t" / f"{number}.json").unlink()

    def ids(self) -> list[int]:
        lake = open_lake(self.config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        return sorted(row["id"] for batch in batches for row in batch.to_pylist())

    def watermark(self) -> Watermark:
        lake = open_lake(self.config)
        found = pipelines.show(lake.current_state(), "tests.lines.t")
        assert found is not None
        return found


@pytest.fixture
def zone(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> Zone:
    return Zone(tmp_path / "zone", lake_config, engine)


def test_a_file_deleted_in_the_middle_stops_the_table_or_is_passed_over(zone: Zone) -> None:
    zone.taken(0, 1, 2, 3, 4, 5)
    zone.delete(0, 2, 3)
    zone.taken(6)
    fail = LogRoundSettings()
    with pytest.raises(OffsetsExpired, match="set on-expired to skip: the table then records") as refused:
        zone.round(fail)
    assert not is_retryable(refused.value)
    result = zone.round()
    assert (result.rows, dict(result.end), result.left) == (4, {"files": 7}, 0)
    assert zone.ids() == [1, 4, 5, 6]
    # A new table begins at the first file that is still there: 0 was never to be read.
    assert zone.watermark().token.content == 'skipped:{"files":[2,4]}'
    assert zone.round().outcome is None
    zone.taken(7)
    assert zone.round(fail).rows == 1
    assert zone.watermark().token.content is None


def test_a_file_that_is_put_back_is_read(zone: Zone) -> None:
    zone.taken(0, 1, 2)
    zone.delete(1)
    with pytest.raises(OffsetsExpired, match="Restore the file, with its former time"):
        zone.round(LogRoundSettings())
    land(zone.folder, "1.json", 1, at=2)
    zone.round(LogRoundSettings())
    assert zone.ids() == [0, 1, 2]


def test_nothing_is_left_but_an_expired_range(zone: Zone) -> None:
    zone.taken(0)
    zone.round()
    zone.taken(1, 2, 3)
    zone.delete(1, 2, 3)
    result = zone.round()
    assert (result.rows, dict(result.end)) == (0, {"files": 4})
    assert zone.watermark().token.content == 'skipped:{"files":[1,4]}'
    assert zone.round().outcome is None


def test_a_file_deleted_while_the_round_runs_is_passed_over_by_the_next(zone: Zone) -> None:
    zone.taken(0, 1, 2)
    made, tasks = zone.planned(SKIP)
    zone.delete(1)
    with pytest.raises(StorageError, match="expired while a round ran") as refused:
        made.finish(zone.engine.run(tasks))
    assert is_retryable(refused.value)
    assert zone.ids() == []
    zone.round()
    assert zone.ids() == [0, 2]
    assert zone.watermark().token.content == 'skipped:{"files":[1,2]}'


def test_without_leave_a_file_deleted_while_the_round_runs_stops_the_table(zone: Zone) -> None:
    zone.taken(0, 1)
    made, tasks = zone.planned(LogRoundSettings())
    zone.delete(1)
    with pytest.raises(OffsetsExpired):
        made.finish(zone.engine.run(tasks))
    assert zone.ids() == []
