"""Results that are handed over again: Iceberg itself would list their files twice, or bring back rows that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import OutsideTable, WriteMode
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_iceberg import live_files
from laketier_iceberg.harness import IcebergHarness
from laketier_iceberg.storage import IcebergStorage
from laketier_iceberg.writer import AFTER


@pytest.fixture
def table(warehouse: Path) -> Table:
    return Lake("iceberg", str(warehouse), {}).create()


@pytest.mark.parametrize("payload", [{}, {AFTER: "soon"}], ids=["none", "another"])
def test_a_result_of_an_older_version_is_looked_for_in_all_manifests(table: Table, payload: dict[str, str]) -> None:
    made = table.staged(ids_of(0))
    [file] = made.files
    kept = {name: text for name, text in file.payload.items() if name != AFTER}
    old = replace(made, files=(replace(file, payload=kept | payload),))
    table.commit([old], token(0))
    table.append(1)
    with pytest.raises(OutsideTable, match="an old result was handed over again"):
        table.commit([old], token(2))
    assert table.ids == ids_of(0) + ids_of(1)


def test_a_round_that_nobody_came_before_reads_no_manifest_for_it(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(0)
    looks: list[str] = []
    monkeypatch.setattr("laketier_iceberg.live_files._names", lambda *_: looks.append("look") or [])
    staged = table.staged(ids_of(1))
    table.commit([staged], token(1))
    assert looks == []
    late = table.staged(ids_of(2))
    table.append(0, ids_of(5), pipeline="other")
    table.commit([late], token(2))
    assert "look" in looks, "another pipeline's commit came between"


def _loaded(table: Table):
    storage = table.lake.storage
    assert isinstance(storage, IcebergStorage)
    return storage.load(table.path)


def _overwrite_and_expire(table: Table) -> None:
    table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    table.append(2)
    IcebergHarness().expire(table.lake.storage, table.info)


@pytest.mark.parametrize("deletes", [False, True], ids=["their files stay", "their files go"])
def test_a_result_waits_while_snapshots_expire(table: Table, deletes: bool) -> None:
    """Of what others published and expired nothing is known but what they left; none of it is this result's."""
    late = table.staged(ids_of(9))
    table.append(0)
    lists = [snapshot.manifest_list for snapshot in _loaded(table).snapshots()]
    _overwrite_and_expire(table)
    for path in lists if deletes else []:
        Path(path.removeprefix("file://")).unlink()
    table.commit([late], None)
    assert table.ids == sorted(ids_of(1) + ids_of(2) + ids_of(9))


def test_older_metadata_that_is_gone_holds_up_nobody(table: Table) -> None:
    late = table.staged(ids_of(9))
    table.append(0)
    _overwrite_and_expire(table)
    for entry in _loaded(table).metadata.metadata_log:
        Path(entry.metadata_file.removeprefix("file://")).unlink()
    table.commit([late], None)
    assert table.ids == sorted(ids_of(1) + ids_of(2) + ids_of(9))


def test_what_expired_is_looked_for_in_older_metadata_no_further_back_than_the_writers_saw(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for epoch in range(4):
        table.append(epoch, pipeline="other")
    late = table.staged(ids_of(9))
    table.append(0)
    read: list[str] = []
    older = live_files._older
    monkeypatch.setattr(live_files, "_older", lambda table, path: read.append(path) or older(table, path))
    _overwrite_and_expire(table)
    table.commit([late], None)
    assert 1 <= len(read) <= 3, "of the nine that there are"


def test_a_snapshot_that_expires_while_it_is_looked_at_holds_up_nobody(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = table.staged(ids_of(9))
    table.append(0)
    first = _loaded(table).current_snapshot()
    assert first is not None
    table.append(0, ids_of(5), pipeline="other")
    looks: list[str] = []
    names = live_files._names

    def expires(*given: Any) -> Iterator[str]:
        if not looks:
            _overwrite_and_expire(table)
            Path(first.manifest_list.removeprefix("file://")).unlink()
        looks.append("look")
        return names(*given)

    monkeypatch.setattr(live_files, "_names", expires)
    table.commit([late], token(0, "late"))
    assert len(looks) == 2, "the first look lost the race"
    assert table.ids == sorted(ids_of(1) + ids_of(2) + ids_of(9))
