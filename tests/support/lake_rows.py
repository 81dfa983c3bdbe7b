"""What a lake table and its dead letters hold, for tests of rounds and replays."""

from __future__ import annotations

from laketier.config import LakeConfig
from laketier.dead_letters.records import DeadLetterState, read_replays, scan_dead_letters
from laketier.registry import open_lake
from laketier.spi import ScanRequest
from laketier.tables.scan import scan


def ids_of(config: LakeConfig) -> list[int]:
    """The ids of the rows, sorted; those that are there twice, twice."""
    lake = open_lake(config)
    _, batches = scan(lake.source(lake.load_table()), ScanRequest(columns=("id",)))
    return sorted(row["id"] for batch in batches for row in batch.to_pylist())


def letter_states(config: LakeConfig) -> dict[int, DeadLetterState]:
    """By offset."""
    replays = read_replays(config)
    return {each.record.offset: replays.state(each) for each in scan_dead_letters(config) or ()}
