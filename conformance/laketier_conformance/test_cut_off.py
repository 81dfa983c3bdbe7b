"""A commit that was cut off between two steps of its format, and that nobody has finished yet: each way to look at the
table tells the same of it, and what tidies up takes away nothing that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from laketier.kit.failpoints import observed
from laketier.spi import DeliveryLevel, Feature, NotBegun, ScanRequest, Watermark, WriteResult
from laketier_conformance.expect import cause_of, expect
from laketier_conformance.lake import Lake, Table, ids_of, read_pinned, read_plan, token

AGES = 1 << 50
"""Later than any file was made, in ms since the epoch."""


class _CutOffError(Exception):
    """No error that a plugin knows."""


class _Killed(BaseException):
    """Nothing is tidied up after it."""


@dataclass(frozen=True)
class _CutOff:
    """``told``: what was done. ``staged`` for it. ``version`` and ``rows``: those of before."""

    told: str
    staged: list[WriteResult]
    version: str | None
    rows: list[int]


def _cut_off(table: Table, unproven: Callable[[str, str], None]) -> Iterator[_CutOff]:
    """Epochs 1, 2, … whose publish ends at each step that the format names, in turn. The caller's next round makes the
    table whole."""
    table.append(0)
    steps: list[str] = []
    _publish(table, 1, steps.append)
    if not steps:
        unproven("commits that are cut off", "the format's publish passes no failpoint")
    for epoch, step in enumerate(dict.fromkeys(steps), start=2):
        rows, version = table.ids, table.lake.storage.catalog().table_version(table.path)
        staged = _publish(table, epoch, _ending(step))
        yield _CutOff(f"a publish of epoch {epoch} ended at {step}", staged, version, rows)
        table.append(epoch)


def _publish(table: Table, epoch: int, observer: Callable[[str], None]) -> list[WriteResult]:
    committer, staged = table.committer(), [table.staged(ids_of(epoch))]
    state = committer.open()
    try:
        with observed(observer):
            committer.publish(state, staged, Watermark(token(epoch), f"commit-{epoch}"))
    except _CutOffError:
        pass
    except NotBegun as error:  # of a step before the commit a format may say so, in whatever words of its own
        if not _is_of_a_cut(error):
            raise
    finally:
        committer.close()
    return staged


def _is_of_a_cut(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, _CutOffError):
        error = cause_of(error)
    return error is not None


def _ending(step: str, by: type[BaseException] = _CutOffError) -> Callable[[str], None]:
    def observer(name: str) -> None:
        if name == step:
            raise by(step)

    return observer


def _ids_by(table: Table) -> Mapping[str, list[int]]:
    """The rows of the newest snapshot, by each way to read it."""
    storage, info = table.lake.storage, table.info
    features = table.lake.plugin.features
    found = {"a plain plan": table.ids}
    source, state = storage.source(info), storage.state(info)
    rows = read_pinned(source, source.plan(ScanRequest(columns=("id",), state=state)), features)
    if rows is not None:
        found["a plan of a state"] = sorted(rows["id"].to_pylist())
    if table.lake.declares(Feature.TIME_TRAVEL):
        rows = table.read(columns=("id",), snapshot_id=state.snapshot_id)
        found["a plan of the snapshot of a state"] = sorted(rows["id"].to_pylist())
    if table.lake.declares(Feature.INCREMENTAL_READ):
        bounds = table.changes.versions()
        plan = table.changes.plan(bounds.earliest, bounds.latest)
        found["a plan of all changes"] = sorted(read_plan(source, plan)["id"].to_pylist())
    return found


def test_each_way_to_read_a_commit_that_was_cut_off(table: Table, unproven: Callable[[str, str], None]) -> None:
    for cut in _cut_off(table, unproven):
        told = cut.told
        state = table.lake.storage.state(table.info)
        mark = state.watermark("p")
        assert mark is not None, f"{told}: the pipeline has no watermark any more"
        expected = [i for epoch in range(mark.token.epoch + 1) for i in ids_of(epoch)]
        if table.lake.plugin.delivery is not DeliveryLevel.EXACTLY_ONCE:
            expected = table.ids  # some rows may be there before the watermark
        for way, found in _ids_by(table).items():
            expect(found, expected, f"{told}: rows by {way}, beside the watermark of the state")
        if cut.version is not None and expected != cut.rows:
            catalog = table.lake.storage.catalog()
            for known in (cut.version, None):
                now = catalog.table_version(table.path, known)
                assert now != cut.version, f"{told}, and its rows are there: the version has the name of before"


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_orphans_beside_a_commit_that_was_cut_off(table: Table, unproven: Callable[[str, str], None]) -> None:
    """They are removed before anybody finished it."""
    table.lake.storage.maintenance(table.info)  # a format without it refuses here
    for cut in _cut_off(table, unproven):
        before = table.ids
        maintenance = table.lake.storage.maintenance(table.info)
        maintenance.remove_orphans(maintenance.orphans(AGES))
        expect(table.ids, before, f"{cut.told}, and orphans were removed")


def test_a_discard_of_a_commit_that_was_cut_off(table: Table, unproven: Callable[[str, str], None]) -> None:
    """By a driver that takes it for failed."""
    for cut in _cut_off(table, unproven):
        before = table.ids
        committer = table.committer()
        committer.discard(cut.staged)
        committer.close()
        expect(table.ids, before, f"{cut.told}, and what was staged for it was discarded")


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_orphans_of_a_creation_that_was_cut_off(lake: Lake) -> None:
    """Somebody else creates the table. What the first one left is listed with its age, goes, and nothing else does."""
    steps: list[str] = []
    with observed(steps.append):
        whole = lake.create(name="db.whole")
    lake.storage.maintenance(whole.info)  # a format without it refuses here
    for number, step in enumerate(dict.fromkeys(steps)):
        name, told = f"db.t{number}", f"a creation was killed at {step}, and somebody else's followed"
        try:
            with observed(_ending(step, _Killed)):
                lake.create(name=name)
        except _Killed:
            pass
        table = lake.create(name=name)
        expect(table.ids, [], f"{told}: rows")
        table.append(0)
        maintenance = lake.storage.maintenance(table.info)
        found = maintenance.orphans(AGES)
        for file in found:
            young = [each.path for each in maintenance.orphans(file.modified_at)]
            assert file.path not in young, f"{told}: {file.path} is called older than the moment at which it was made"
        gone = maintenance.remove_orphans(found)
        expect(sorted(each.path for each in gone), sorted(each.path for each in found), f"{told}: orphans that went")
        expect(list(maintenance.orphans(AGES)), [], f"{told}, and orphans were removed: those that are left")
        expect(lake.table(name).ids, ids_of(0), f"{told}, and orphans were removed: rows")
