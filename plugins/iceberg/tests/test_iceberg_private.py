"""What `laketier_iceberg.private` relies on in pyiceberg. A failure here means that pyiceberg has changed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import PluginBroken
from laketier_iceberg.connection import connect
from laketier_iceberg.private import keep_times


@pytest.mark.parametrize("module", ["sql", "hive", "glue"])
def test_each_catalog_without_a_server_stages_its_commits_where_times_are_put_in_order(module: str) -> None:
    spec = find_spec(f"pyiceberg.catalog.{module}")  # importing it takes a client that need not be there
    assert spec is not None
    assert spec.origin is not None
    called = "self._update_and_stage_table(current_table," in Path(spec.origin).read_text(encoding="utf-8")
    assert called, "private.keep_times has no hold on the times of this catalog's commits"


def test_what_is_staged_is_what_is_stored(events: Any) -> None:
    from pyiceberg.table.update import SetPropertiesUpdate

    table = events.table()
    staged: list[Any] = []
    stage = table.catalog._update_and_stage_table

    def marked(current: Any, identifier: Any, requirements: Any, updates: Any) -> Any:
        result = stage(current, identifier, requirements, updates)
        result.metadata = result.metadata.model_copy(update={"last_updated_ms": current.metadata.last_updated_ms + 7})
        staged.append(result)
        return result

    table.catalog._update_and_stage_table = marked
    table.catalog.commit_table(table, (), (SetPropertiesUpdate(updates={"a": "b"}),))
    (result,) = staged
    assert events.table().metadata == result.metadata
    assert events.table().metadata.last_updated_ms == table.metadata.last_updated_ms + 7


def test_a_pyiceberg_without_that_place_is_refused_by_its_version(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.catalog import MetastoreCatalog

    catalog = connect(events.storage._settings)
    vars(catalog).pop("_update_and_stage_table")
    monkeypatch.delattr(MetastoreCatalog, "_update_and_stage_table")
    with pytest.raises(PluginBroken, match=r"pyiceberg \d.* stages commits in a way"):
        keep_times(catalog)


def test_a_commit_shares_the_history_of_the_table_and_writes_all_of_it(events: Any) -> None:
    """pyiceberg copies each snapshot for each commit. What is shared stays as it was, and is written whole."""
    events.round(events.token(0), events.batch(0, 0 + 1))
    events.round(events.token(1), events.batch(1, 1 + 1))
    before = events.table().metadata
    told = before.model_dump_json()
    staged: list[Any] = []
    catalog = events.table().catalog
    stage = catalog._update_and_stage_table

    def noted(*of: Any) -> Any:
        staged.append(stage(*of))
        return staged[-1]

    catalog._update_and_stage_table = noted
    try:
        events.round(events.token(2), events.batch(2, 2 + 1))
    finally:
        catalog._update_and_stage_table = stage
    made = staged[-1].metadata
    assert len(made.snapshots) == len(before.snapshots) + 1 == len(made.snapshot_log)
    assert all(made.snapshot_by_id(each.snapshot_id) is each for each in before.snapshots), "no copy"
    assert before.model_dump_json() == told
    vars(connect(events.storage._settings))["_parsed"].clear()
    stored = events.table().metadata
    assert stored == made
    assert stored is not made, "read from its file"
