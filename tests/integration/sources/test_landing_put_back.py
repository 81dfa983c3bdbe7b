"""A ledger that is put back from a backup takes the files again that it lost, and late ones change their order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier.config import LakeConfig
from laketier.connectors.files import history
from laketier.connectors.files.files import Files
from laketier.connectors.files.history import History
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import LogOffsets, OffsetsRewritten, TableLog
from laketier_verification.lakes import ids, lake_at
from landing import JSON, land, log_of, opened
from landing import ids as landed_ids


class Copied:
    """A landing zone, its ledger elsewhere, and the lake table that follows it."""

    def __init__(self, folder: Path, engine: LocalEngine) -> None:
        self.zone, self.ledger, self._kept = folder / "zone", folder / "ledger", folder / "kept"
        self._engine = engine
        self.config: LakeConfig = lake_at(folder / "lake", "localfile", "db.t", lake__pipeline="tests.drop.t").config

    def log(self) -> TableLog:
        return log_of(self.zone, ledger=str(self.ledger))

    def round(self, log: TableLog | None = None) -> LogRoundResult:
        made = LogRound(log or self.log(), self.config, LogRoundSettings())
        return made.finish(self._engine.run(made.plan()))

    @property
    def ids(self) -> list[int]:
        return ids(lake_at(Path(self.config.warehouse), "localfile", "db.t"))

    def back_up(self) -> Callable[[], None]:
        """Returns what puts the ledger back."""
        shutil.copytree(self.ledger, self._kept)

        def put_back() -> None:
            shutil.rmtree(self.ledger)
            shutil.copytree(self._kept, self.ledger)

        return put_back


@pytest.fixture
def copied(tmp_path: Path, engine: LocalEngine) -> Copied:
    found = Copied(tmp_path, engine)
    land(found.zone, "a.json", 1, at=10)
    found.round()
    return found


def test_a_log_that_has_not_looked_at_the_zone_has_a_stamp(copied: Copied) -> None:
    """None would say that nothing is known of the history, and nothing would be looked at."""
    land(copied.zone, "1.json", 1)
    log = copied.log()
    end = LogOffsets({bucket: each.latest for bucket, each in log.bounds().items()})
    assert copied.log().stamp(end) == log.stamp(end) is not None


def test_a_table_that_read_further_than_the_ledger_stops(copied: Copied) -> None:
    put_back = copied.back_up()
    land(copied.zone, "c.json", 3, at=30)
    copied.round()
    land(copied.zone, "b.json", 2, at=20)  # late: it comes after c, and before it once both are new
    put_back()
    with pytest.raises(OffsetsRewritten, match="has other records before"):
        copied.round()
    assert copied.ids == [1, 3]


def test_a_table_that_read_files_which_are_gone_stops(copied: Copied) -> None:
    put_back = copied.back_up()
    land(copied.zone, "b.json", 2, at=20)
    copied.round()
    (copied.zone / "t" / "b.json").unlink()
    put_back()
    for number, name in enumerate("cd", 3):  # the first makes the ledger as long as what was read
        land(copied.zone, f"{name}.json", number, at=10 * number)
    with pytest.raises(OffsetsRewritten, match="has other records before"):
        copied.round()
    assert copied.ids == [1, 2]


def test_files_that_are_taken_again_in_their_order_are_no_other_history(copied: Copied) -> None:
    put_back = copied.back_up()
    for number, name in enumerate("bcd", 2):
        land(copied.zone, f"{name}.json", number, at=10 * number)
        copied.round()
    put_back()
    land(copied.zone, "e.json", 5, at=50)
    copied.round()
    assert copied.ids == [1, 2, 3, 4, 5]


def test_a_driver_beneath_whom_the_ledger_is_put_back_reads_it_anew(copied: Copied) -> None:
    source = opened(copied.zone, ledger=str(copied.ledger))
    put_back = copied.back_up()
    land(copied.zone, "b.json", 2, at=20)
    copied.round(source.open("t", JSON))
    put_back()
    land(copied.zone, "c.json", 3, at=30)
    copied.round(source.open("t", JSON))
    land(copied.zone, "d.json", 4, at=40)
    copied.round()
    copied.round(source.open("t", JSON))
    assert copied.ids == [1, 2, 3, 4]
    assert len(list((copied.ledger / "t" / "segments").glob("[!.]*"))) == 3, "no segment is beside the chain"


def test_a_driver_does_not_continue_a_segment_that_is_another_by_now(copied: Copied) -> None:
    mine = copied.log()
    put_back = copied.back_up()
    land(copied.zone, "c.json", 3, at=30)
    mine.bounds()
    put_back()
    land(copied.zone, "b.json", 2, at=20)
    copied.log().bounds()
    land(copied.zone, "d.json", 4, at=40)
    assert landed_ids(mine) == landed_ids(copied.log()) == [1, 2, 3, 4]


def test_a_stamp_does_not_depend_on_which_were_made_before() -> None:
    paths = [f"{number}.json" for number in range(6)]
    files = Files.of(paths, range(6), range(6))
    step_by_step = History()
    stamps = [step_by_step.stamp(files, end) for end in (1, 2, 5, 3, 6, 1)]
    assert stamps == [History().stamp(files, end) for end in (1, 2, 5, 3, 6, 1)]
    others = [
        Files.of([*paths[:2], "x", *paths[3:]], range(6), range(6)),
        Files.of(paths, [0, 1, 7, 3, 4, 5], range(6)),
        Files.of(paths, range(6), [0, 1, 7, 3, 4, 5]),
    ]
    assert len({History().stamp(one, 6) for one in [files, *others]}) == 4
    assert len(set(stamps)) == 5


def test_a_stamp_does_not_depend_on_how_many_paths_are_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files.of([f"{number}ä.json" for number in range(7)], range(7), range(7))
    whole = [History().stamp(files, end) for end in (3, 7)]
    monkeypatch.setattr(history, "_AT_ONCE", 2)
    by_pieces = History()
    assert [by_pieces.stamp(files, end) for end in (3, 7)] == whole


def test_lake_tables_at_their_own_places_look_at_each_file_once() -> None:
    files = Files.of([f"{number}.json" for number in range(40)], range(40), range(40))
    looked_at: list[slice] = []

    class Paths:
        def __getitem__(self, part: slice) -> Any:
            looked_at.append(part)
            return files.paths[part]

    counted, shared = replace(files, paths=Paths()), History()
    for end in (12, 10, 22, 20, 32, 30) * 2:
        shared.stamp(counted, end)
    assert len(looked_at) == 6, "the second time, nothing is new"
