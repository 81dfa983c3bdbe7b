"""What of a table's folder is an orphan."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from laketier.kit import FailpointError
from laketier_localfile.layout import IN_PROGRESS, MANIFESTS

SOON = 60_000


def orphans(table: Any, before: int | None = None) -> dict[str, str]:
    now = time.time_ns() // 1_000_000
    found = table.storage.maintenance(table.info).orphans(now + SOON if before is None else before)
    return {Path(file.path).name: file.kind for file in found}


def test_a_commit_that_is_not_finished_keeps_its_files(make_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It landed, and its files are still among the staged ones: listing rolls it forward first."""
    table = make_table()
    monkeypatch.setenv("LAKETIER_FAILPOINTS", "publish.after_manifest_before_renames=error")
    committer = table.committer()
    with pytest.raises(FailpointError):
        committer.publish(committer.open(), [table.stage(table.ids(0, 2))], None)
    monkeypatch.delenv("LAKETIER_FAILPOINTS")
    assert list((table.location / IN_PROGRESS).iterdir())
    assert orphans(table) == {}
    assert len(table.read_ids()) == 2


def test_what_the_newest_commit_needs_is_kept(make_table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody else finishes it at this moment: the staged name is there until the very end."""
    table = make_table()
    committer = table.committer()
    staged = table.stage(table.ids(0, 1))
    name = Path(staged.files[0].path).name
    committer.publish(committer.open(), [staged], None)
    # As it is just before the staged name goes.
    (final,) = table.location.glob("*.parquet")
    (table.location / IN_PROGRESS / name).hardlink_to(final)
    assert orphans(table) == {}


def test_temporary_manifests_are_orphans_and_others_are_not(make_table: Any) -> None:
    table = make_table()
    folder = table.location / MANIFESTS / table.info.table_uuid
    (folder / ".00000000000000000001.json.dead.tmp").write_bytes(b"{")
    (folder / "notes.txt").write_text("mine")
    (table.location / "mine.csv").write_text("mine")
    assert orphans(table) == {".00000000000000000001.json.dead.tmp": "manifest"}
    assert orphans(table, before=0) == {}


def test_what_is_gone_counts_as_gone(make_table: Any) -> None:
    table = make_table()
    table.stage(table.ids(0, 1))
    maintenance = table.storage.maintenance(table.info)
    found = maintenance.orphans(time.time_ns() // 1_000_000 + SOON)
    assert len(found) == 1
    assert maintenance.remove_orphans(found) == found
    assert maintenance.remove_orphans(found) == found
    assert orphans(table) == {}
