"""A table that is dropped in the middle of what delta-rs does: it makes the folders of its entry anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from laketier.spi import Conflict, RolledBack, TableNotFound


def during(monkeypatch: pytest.MonkeyPatch, method: str, others: Callable[[], object]) -> None:
    """``others`` act right before delta-rs does what is asked for."""
    real = getattr(DeltaTable, method)

    def later(handle: DeltaTable, *arguments: Any, **named: Any) -> Any:
        others()
        return real(handle, *arguments, **named)

    monkeypatch.setattr(DeltaTable, method, later)


@pytest.mark.parametrize("anew", [False, True], ids=["dropped", "made anew"])
def test_a_commit_leaves_no_entry(lake: Any, support: Any, monkeypatch: pytest.MonkeyPatch, anew: bool) -> None:
    lake.create()
    lake.epoch(0, support.ids(1))
    committer = lake.committer()
    state, staged = committer.open(), lake.stage(support.ids(2))

    def others() -> None:
        lake.storage.catalog().drop_table(support.PATH)
        if anew:
            lake.create()

    during(monkeypatch, "create_write_transaction", others)
    with pytest.raises(Conflict, match="dropped meanwhile"):
        committer.publish(state, [staged], support.watermark(1))
    assert not Path(lake.uri, "_delta_log", f"{2:020}.json").exists()
    if anew:
        assert (DeltaTable(lake.uri).version(), support.values(lake.read())) == (0, [])
    else:
        lake.create()
        assert support.values(lake.read()) == []


def test_a_record_that_a_drop_took_is_not_lost(lake: Any, support: Any) -> None:
    """No backup brings back the watermarks of a table that somebody dropped since it was loaded."""
    lake.create()
    lake.epoch(0, support.ids(1))
    state = lake.committer().open()
    for record in Path(lake.uri, "_laketier").rglob("*.json"):
        record.rename(record.with_suffix(".away"))
    with pytest.raises(RolledBack, match="it is missing"):
        state.watermark("p")
    lake.storage.catalog().drop_table(support.PATH)
    with pytest.raises(TableNotFound, match="the table was dropped meanwhile"):
        state.watermark("p")


def test_a_commit_makes_no_checkpoint_before_it_landed(
    lake: Any, support: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint that failed would look like a failed commit."""
    lake.create(delta__checkpointInterval="1")
    found: list[list[Path]] = []

    def looked() -> None:
        found.append(list(Path(lake.uri, "_delta_log").glob("*.checkpoint*")))

    during(monkeypatch, "create_checkpoint", looked)
    lake.epoch(0, support.ids(1))
    assert found == [[]]
    assert Path(lake.uri, "_delta_log", f"{1:020}.checkpoint.parquet").exists()
