"""What a manifest names of earlier ones, and how near each is by it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier import spi
from laketier.kit.manifests.chain import files_before, manifest_as_of, manifest_at, written_with
from laketier.kit.manifests.committer import next_manifest
from laketier.kit.manifests.digests import digests_after, ends_before, step_towards
from laketier.kit.manifests.document import digests_from_plain
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from text_lake import PATH, Lake, following

COLUMN = spi.AddColumn(pa.field("more", pa.int64()))
OTHER = spi.AddColumn(pa.field("others", pa.int64()))


class Counted:
    """A log in memory, of manifests whose digests tell their numbers. ``reads``: how many were asked for."""

    def __init__(self, kinds: str) -> None:
        """A letter for each commit: ``c`` for one, ``m`` for one that sets the columns, ``o`` for one of an older
        release, which names nothing."""
        self.reads = 0
        first = {"table_uuid": "u", "number": 0, "previous": "", "at": 0, "commit_id": "0", "kind": "create"}
        head = Manifest(**first, metadata_at=0, sha256=digest(0))  # type: ignore[arg-type]
        self.each = [head]
        for kind in kinds:
            made = next_manifest(head, commit_id=str(head.number + 1), kind="append")
            changes: dict[str, Any] = {"m": {"metadata_at": made.number}, "o": {"digests": {}}}.get(kind, {})
            head = replace(made, sha256=digest(made.number), **changes)
            self.each.append(head)

    def read(self, number: int) -> Manifest:
        self.reads += 1
        return self.each[number]


def digest(number: int) -> str:
    return f"{number:064x}"


def _nearest(log: Counted, number: int, head: Manifest) -> Manifest:
    near = head
    while near.digest_of(number) is None and (step := step_towards(number, near)) is not None:
        near = log.read(step)
    return near


@pytest.mark.parametrize("number", [0, 1, 2, 7, 8, 13, 1000, 2**40 - 1])
def test_blocks_cover_all_that_is_before(number: int) -> None:
    ends = [*ends_before(number)]
    assert ends == sorted(ends, reverse=True)
    assert len(ends) == number.bit_count()
    sizes = [newer - older for newer, older in pairwise([*ends, -1])]
    assert all(size.bit_count() == 1 for size in sizes)
    assert sum(sizes) == number
    assert {*ends_before(number + 1)} <= {*ends, number}, "so nothing is read to name them"


@pytest.mark.parametrize("seed", range(8))
def test_each_manifest_is_near(seed: int) -> None:
    """As many steps as its distance has digits, or fewer, wherever columns were set."""
    drawn = random.Random(seed)
    log = Counted("".join(drawn.choices("cm", [20, 1], k=drawn.randrange(1, 3000))))
    for head in (log.each[-1], drawn.choice(log.each)):
        assert head.digests.keys() <= {*ends_before(head.number), *(log.each[head.number - 1].metadata_at,)}
        assert head.digest_of(head.metadata_at) == digest(head.metadata_at)
        for number in {drawn.randrange(head.number + 1) for _ in range(300)} | {0, head.number}:
            log.reads = 0
            assert _nearest(log, number, head).digest_of(number) == digest(number)
            assert log.reads <= (head.number - number).bit_length() + 1


@pytest.mark.parametrize("seed", range(8))
def test_older_releases_in_between(seed: int) -> None:
    """What is told is right, and where nothing is, a manifest that is nearer. Behind them it begins anew."""
    drawn = random.Random(seed)
    kinds = drawn.choices("cmo", [9, 1, drawn.choice([0.02, 1, 9])], k=700)
    log = Counted("".join(kinds) + "c" * 33)
    head = log.each[-1]
    for number in range(head.number + 1):
        near = _nearest(log, number, head)
        assert near.digest_of(number) in (None, digest(number))
        assert near.number >= number
        assert near.digest_of(number) == digest(number) or number < len(kinds), "all of the last ones are told"


def test_what_another_program_wrote() -> None:
    named = {3: digest(3), 6: digest(6)}
    assert digests_from_plain(json.loads(json.dumps(named)), 8) == named
    for odd in ({"8": digest(8)}, {"-1": digest(1)}, {"x": digest(1)}, {"3": "0"}, {"3": 5}, {"3": None}, 5, [3], None):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            digests_from_plain(odd, 8)


# -- on a disk ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A column is added by commit 2, and another one by commit 5; 8 is the newest."""
    lake = Lake(tmp_path / "lake")
    lake.round(0, 1)
    lake.catalog.alter_table(PATH, [COLUMN])
    lake.info = lake.catalog.load_table(PATH)
    for epoch in range(1, 3):
        lake.round(epoch, epoch)
    lake.catalog.alter_table(PATH, [OTHER])
    lake.info = lake.catalog.load_table(PATH)
    for epoch in range(3, 6):
        lake.round(epoch, epoch)
    assert [lake.table.manifests().read(number).metadata_at for number in range(9)] == [0, 0, 2, 2, 2, 5, 5, 5, 5]
    return lake


def _of_another_history(manifests: ManifestLog, number: int, like: int) -> None:
    """It sets the columns that ``like`` did."""
    other = replace(manifests.read(number), commit_id="other", metadata=manifests.read(like).metadata)
    manifests.path(number).write_bytes(other.encode())


def _as_an_older_release(manifests: ManifestLog, since: int = 1, earliest: int = 0) -> None:
    """Write what this release wrote as the one before would have, chained anew. The newest one says ``earliest``."""
    head = manifests.read(since - 1)
    newest = manifests.head()[0].number
    for number in range(since, newest + 1):
        expired = {"earliest": earliest} if number == newest else {}
        made = replace(manifests.read(number), previous=head.sha256, digests={}, **expired)
        manifests.path(number).write_bytes(made.encode())
        head = manifests.read(number)
    for path in (manifests.folder / "rollups").iterdir():
        path.unlink()
    manifests.path(0).with_name("head.json").unlink()


def test_columns_of_another_history_are_refused(lake: Lake) -> None:
    manifests = lake.table.manifests()
    assert [field.name for field in lake.catalog.load_table(PATH).schema] == ["id", "more", "others"]
    _of_another_history(manifests, 5, like=2)
    says = "manifest 5 is not the one that manifest 6 follows"
    for look in (lambda: lake.catalog.load_table(PATH), lake.table.open, lambda: lake.read(columns=("id",))):
        with pytest.raises(spi.CorruptTable, match=says):
            look()


def test_columns_of_a_file_of_another_history_are_refused(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    expected = {0: ["id"], 2: ["id", "more"], 5: ["id", "more", "others"]}
    for number, names in expected.items():
        assert written_with(manifests, number, head).schema.names == names
    _of_another_history(manifests, 2, like=5)
    with pytest.raises(spi.CorruptTable, match="manifest 2 is not the one that manifest 3 follows"):
        written_with(manifests, 2, head)
    with pytest.raises(spi.CorruptTable, match="manifest 2 is not the one that manifest 3 follows"):
        lake.read(snapshot_id=4, columns=("id",))


def test_who_writes_to_an_older_table_compares_its_columns(lake: Lake) -> None:
    """And from then on each load does."""
    manifests = lake.table.manifests()
    _as_an_older_release(manifests)
    assert lake.read(columns=("id",)) == [1, 1, 2, 3, 4, 5]
    genuine = manifests.path(5).read_bytes()
    _of_another_history(manifests, 5, like=2)
    lake.catalog.load_table(PATH)
    with pytest.raises(spi.CorruptTable, match="manifest 5 is not the one that manifest 6 follows"):
        lake.table.open()
    manifests.path(5).write_bytes(genuine)
    lake.round(6, 6)
    assert manifests.head()[0].digests.keys() == {5, 7}, "8 is the one before"
    lake.round(7, 7)
    assert manifests.head()[0].digests.keys() == {5, 7}, "and 9 is, now"
    for number in range(10):
        assert manifest_at(manifests, number, manifests.head()[0]) == manifests.read(number)
    _of_another_history(manifests, 5, like=2)
    with pytest.raises(spi.CorruptTable, match="manifest 5 is not the one that manifest 6 follows"):
        lake.catalog.load_table(PATH)


def test_an_older_release_passes_over_what_is_named(lake: Lake) -> None:
    """It reads no key that it does not know, and its next manifest has none."""
    manifests = lake.table.manifests()
    _as_an_older_release(manifests, since=8)
    assert manifests.head()[0].digests == {}
    assert lake.read(columns=("id",)) == [1, 1, 2, 3, 4, 5]
    lake.round(6, 6)
    head = manifests.head()[0]
    assert head.digest_of(5) == manifests.read(5).sha256
    for number in range(9):
        assert manifest_at(manifests, number, head) == manifests.read(number)


def test_no_moment_is_called_too_early_by_another_history(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head, first = manifests.head()[0], manifests.read(0)
    manifests.path(0).write_bytes(replace(first, at=first.at + 1).encode())
    with pytest.raises(spi.CorruptTable, match="manifest 0 is not the one that manifest 1 follows"):
        manifest_as_of(manifests, first.at, head)


def test_what_a_commit_took_away_is_compared(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    assert len(files_before(manifests, head)) == 5
    other = replace(manifests.read(7), commit_id="other", added=())
    manifests.path(7).write_bytes(other.encode())
    with pytest.raises(spi.CorruptTable, match="manifest 7 is not the one that manifest 8 follows"):
        files_before(manifests, head)


def test_an_old_snapshot_takes_few_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than its distance has binary digits, beside its own."""
    manifests = Lake(tmp_path / "lake").table.manifests()
    head = manifests.head()[0]
    for number in range(1, 130):
        head = manifests.append(following(head, commit_id=f"c{number}"))
    reads: list[int] = []
    read = ManifestLog.read

    def counted(log: ManifestLog, number: int) -> Manifest:
        reads.append(number)
        return read(log, number)

    monkeypatch.setattr(ManifestLog, "read", counted)
    for number in range(head.number):
        reads.clear()
        assert manifest_at(manifests, number, head).number == number
        assert len(reads) <= 1 + (head.number - number).bit_length() + 1, number
    assert digests_after(head).keys() == {0, 127}


def test_who_writes_to_an_older_table_whose_columns_are_of_an_expired_snapshot(lake: Lake) -> None:
    """Manifests stay when snapshots expire, and the one with the columns is mostly among the first."""
    manifests = lake.table.manifests()
    _as_an_older_release(manifests, earliest=7)
    lake.round(6, 6)
    head = manifests.head()[0]
    assert head.earliest == 7
    assert head.digest_of(5) == manifests.read(5).sha256


@pytest.mark.parametrize("number", [8, 9, 12])
def test_no_step_leads_to_what_is_not_before(number: int) -> None:
    """As a file may say that is of another program: columns of a later manifest, or none before this one."""
    log = Counted("c" * 8)
    assert step_towards(number, log.each[8]) is None
    assert step_towards(7, replace(log.each[8], previous="")) is None


def test_columns_of_no_manifest_are_an_error(lake: Lake) -> None:
    manifests = lake.table.manifests()
    with pytest.raises(spi.CorruptTable, match="a manifest is missing"):
        written_with(manifests, 99, manifests.head()[0])
