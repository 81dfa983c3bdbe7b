"""Older manifests: each is compared with the one after it, and what lies in its place is not taken for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from laketier import spi
from laketier.kit.manifests import chain
from laketier.kit.manifests.chain import back_from, manifest_as_of, manifest_at, onward
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.rollup import write_rollups
from text_lake import Lake, following

LENGTH = 9


@pytest.fixture
def manifests(tmp_path: Path) -> ManifestLog:
    """Nine of them, a rollup after each second one, 10 ms apart."""
    manifests = Lake(tmp_path / "lake").table.manifests()
    head = manifests.head()[0]
    for number in range(1, LENGTH):
        head = manifests.append(following(head, commit_id=f"c{number}", at=head.at + 10))
        write_rollups(manifests, number)
    return manifests


def _head(manifests: ManifestLog) -> Manifest:
    return manifests.read(LENGTH - 1)


def _of_another_history(manifests: ManifestLog, number: int, **changes: object) -> None:
    """What lies in the place of a manifest follows the one before, too, and was never followed."""
    other = replace(manifests.read(number), **{"commit_id": "other", **changes})
    manifests.path(number).write_bytes(other.encode())


def test_each_manifest_of_a_whole_history(manifests: ManifestLog) -> None:
    head = _head(manifests)
    each = [manifests.read(number) for number in range(LENGTH)]
    assert [manifest_at(manifests, number, head) for number in range(LENGTH)] == each
    assert [manifest_as_of(manifests, manifest.at, head) for manifest in each] == each
    assert [manifest_as_of(manifests, manifest.at + 9, head) for manifest in each] == each
    for start in range(LENGTH):
        assert [*back_from(manifests, head, down_to=start)] == each[start:][::-1]
        for end in range(LENGTH + 1):
            assert [*onward(manifests, start, end, head)] == each[start:end]


def test_the_newest_manifest_is_not_read_once_more(manifests: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a history whose writers named no digests, which is read back from there."""
    head, read, asked = replace(_head(manifests), digests={}), ManifestLog.read, list[int]()

    def counted(log: ManifestLog, number: int) -> Manifest:
        asked.append(number)
        return read(log, number)

    monkeypatch.setattr(chain, "step_towards", lambda *_: None)
    monkeypatch.setattr(ManifestLog, "read", counted)
    assert manifest_at(manifests, 2, head) == read(manifests, 2)
    assert head.number not in asked


def test_a_manifest_that_is_not_there(manifests: ManifestLog) -> None:
    head = _head(manifests)
    for number in (-1, LENGTH):
        with pytest.raises(spi.SnapshotNotFound, match=f"there is no snapshot {number}"):
            manifest_at(manifests, number, head)
    with pytest.raises(spi.SnapshotNotFound):
        manifest_as_of(manifests, manifests.read(0).at - 1, head)


ASKED: dict[str, Callable[[ManifestLog, int, Manifest], object]] = {
    "by its number": lambda manifests, number, head: manifest_at(manifests, number, head),
    "by its moment": lambda manifests, number, head: manifest_as_of(manifests, manifests.read(number).at, head),
    "as a range": lambda manifests, number, head: [*onward(manifests, number, number + 1, head)],
    "as the first of a range": lambda manifests, number, head: [*onward(manifests, number, LENGTH, head)],
    "as the last of a range": lambda manifests, number, head: [*onward(manifests, 0, number + 1, head)],
    "from the newest on": lambda manifests, number, head: [*back_from(manifests, head, down_to=number)],
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("number", range(LENGTH - 1))
def test_a_manifest_of_another_history_is_refused(manifests: ManifestLog, number: int, asked: str) -> None:
    head = _head(manifests)
    _of_another_history(manifests, number)
    with pytest.raises(spi.CorruptTable, match=f"manifest {number} is not the one that manifest {number + 1} follows"):
        ASKED[asked](manifests, number, head)


@pytest.mark.parametrize("number", range(1, LENGTH - 1))
def test_a_moment_that_something_forged_leads_to_no_other_snapshot(manifests: ManifestLog, number: int) -> None:
    """Whichever one is asked for, it is told or the table is called corrupt."""
    head, each = _head(manifests), [manifests.read(at) for at in range(LENGTH)]
    for at in (0, head.at + 1_000, each[number].at + 15, each[number].at - 15):
        _of_another_history(manifests, number, at=at)
        for manifest in each:
            with suppress(spi.CorruptTable, spi.SnapshotNotFound):
                assert manifest_as_of(manifests, manifest.at, head) == manifest


def test_a_live_file_is_no_orphan_of_another_history(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for epoch in range(3):
        lake.round(epoch, epoch)
    manifests = lake.table.manifests()
    _of_another_history(manifests, 1, added=())
    with pytest.raises(spi.CorruptTable, match="manifest 1 is not the one that manifest 2 follows"):
        lake.table.published(manifests, manifests.read(3))


def test_an_overwrite_is_compared_with_what_it_took_away(tmp_path: Path) -> None:
    """A snapshot without files that lies in the place of the one before makes no appended rows of it."""
    lake = Lake(tmp_path / "lake")
    lake.round(0, 1)
    lake.round(1, 2, mode=spi.WriteMode.OVERWRITE)
    manifests = lake.table.manifests()
    with pytest.raises(spi.RowsChanged):
        lake.changes.plan(2, 3)
    _of_another_history(manifests, 1, added=())
    with pytest.raises(spi.CorruptTable, match="manifest 1 is not the one that manifest 2 follows"):
        lake.changes.plan(2, 3)
