"""Commits that are made again because others were faster."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from deltalake.exceptions import CommitFailedError

from laketier.spi import Passthrough, TableError
from laketier_delta.altering import alter
from laketier_delta.location import Location


def test_waits_double_up_to_more_than_a_second(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that one of many writers gets its turn, however long their commits take."""
    lake.create()
    waits: list[float] = []
    monkeypatch.setattr(random, "uniform", lambda least, most: most)
    monkeypatch.setattr(time, "sleep", waits.append)

    def overtaken(*_: object) -> bool:
        raise CommitFailedError("version 1 is there")

    with pytest.raises(TableError, match=r"in 25 attempts.*other writers committed each time"):
        alter(Location(lake.uri, Passthrough()), overtaken, "nothing could be set")
    assert waits == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, *[1.28] * 19]
