"""Commits that are made again because others were faster."""

from __future__ import annotations

import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from laketier.spi import Passthrough, TableError, TableNotFound
from laketier_delta.altering import alter
from laketier_delta.location import Location


def test_waits_double_up_to_more_than_a_second(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that one of many writers gets its turn, however long their commits take."""
    lake.create()
    waits: list[float] = []
    monkeypatch.setattr(random, "uniform", lambda least, most: most - least)  # from nothing on
    really, this = time.sleep, threading.get_ident()  # other threads of the process sleep, too
    monkeypatch.setattr(time, "sleep", lambda s: waits.append(s) if threading.get_ident() == this else really(s))

    def overtaken(*_: object) -> bool:
        raise CommitFailedError("version 1 is there")

    with pytest.raises(TableError, match=r"in 25 attempts.*other writers committed each time"):
        alter(Location(lake.uri, Passthrough()), overtaken, "nothing could be set")
    assert waits == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, *[1.28] * 19]


@pytest.mark.parametrize("version", [0, 2])
def test_the_lone_entry_of_a_change_that_failed_is_taken_back(lake: Any, version: int) -> None:
    """The table was dropped under it, and delta-rs looked for what was before."""
    lake.create()
    for epoch in range(version):
        lake.epoch(epoch)
    folder = Path(lake.uri, "_delta_log")
    entry = folder / f"{version + 1:020}.json"

    def dropped(*_: object) -> bool:
        shutil.rmtree(lake.uri)
        folder.mkdir(parents=True)
        entry.write_text("{}")
        raise DeltaError("version 0 is missing")

    with pytest.raises(TableNotFound, match="dropped meanwhile"):
        alter(Location(lake.uri, Passthrough()), dropped, "nothing could be set")
    assert not entry.exists()
