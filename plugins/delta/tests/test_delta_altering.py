"""Commits that are made again because others were faster."""

from __future__ import annotations

import errno
import json
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field
from deltalake.exceptions import CommitFailedError, DeltaError

from laketier.kit import durable
from laketier.spi import AddColumn, Conflict, Passthrough, TableError, TableNotFound
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

    def dropped(_: DeltaTable, properties: CommitProperties) -> bool:
        shutil.rmtree(lake.uri)
        folder.mkdir(parents=True)
        info = {"laketier.publish": properties.custom_metadata["laketier.publish"]}
        entry.write_text(json.dumps({"commitInfo": info}))
        raise DeltaError("version 0 is missing")

    with pytest.raises(TableNotFound, match="dropped meanwhile"):
        alter(Location(lake.uri, Passthrough()), dropped, "nothing could be set")
    assert not entry.exists()


def test_a_change_that_fails_for_another_cause_is_not_told_as_a_drop(lake: Any) -> None:
    lake.create()

    def fails(*_: object) -> bool:
        raise DeltaError("no space is left")

    with pytest.raises(TableError, match="nothing could be set, because no space is left") as told:
        alter(Location(lake.uri, Passthrough()), fails, "nothing could be set")
    assert type(told.value) is TableError


def test_bytes_that_are_written_once_more_are_no_table_that_was_made_anew(
    lake: Any, support: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a sync of the version below failed: its entry has another date then, and the commit onto it stays."""
    lake.create()
    really, failed = durable.fsync_file, list[str]()

    def once(path: str) -> None:
        if not failed:
            failed.append(str(path))
            raise OSError(errno.EMFILE, "too many open files", str(path))
        really(path)

    monkeypatch.setattr(durable, "fsync_file", once)
    info = lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("more", pa.int64()))])
    assert failed == [f"{lake.uri}/_delta_log/{0:020}.json"]
    assert (info.schema.names[-1], DeltaTable(lake.uri).version()) == ("more", 1)


@pytest.mark.parametrize("failing", [False, True])
def test_a_change_does_not_reach_the_table_that_was_made_anew(lake: Any, support: Any, failing: bool) -> None:
    """It has the same versions, and would have the columns and the name of the one that was dropped."""
    lake.create()
    catalog = lake.storage.catalog()
    made: list[Any] = []

    def beside(handle: DeltaTable, properties: CommitProperties) -> bool:
        catalog.drop_table(support.PATH)
        made.append(lake.create())
        handle.alter.add_columns([Field.from_arrow(pa.field("late", pa.int64()))], commit_properties=properties)
        if failing:
            raise DeltaError("its answer is lost")
        return True

    with pytest.raises(Conflict, match="made anew meanwhile"):
        alter(Location(lake.uri, Passthrough()), beside, "nothing could be set")
    info = catalog.load_table(support.PATH)
    assert "late" not in info.schema.names
    assert info.snapshot_id == 0
