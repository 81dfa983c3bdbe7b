"""A result that was published once is never published again, whatever became of its rows."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from laketier.spi import (
    Feature,
    FeatureNotSupported,
    LaketierError,
    WriteMode,
    WriteResult,
    unpack,
)
from laketier_conformance import foreign
from laketier_conformance.delivery import publish_of
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.interposed.deciding import NOWHERE, Run
from laketier_conformance.interposed.disk import SYNCS
from laketier_conformance.interposed.runs import Interposed
from laketier_conformance.interposed.supervisor import KILL
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import Lake, Table, ids_of, token

Unproven = Callable[[str, str], None]
KEPT = ids_of(1)
NEW = 77
LAST = 4
"""Steps of a publish, before each of which it is killed once. What cleans up is among them."""


def _compact(table: Table, harness: Harness) -> str:
    foreign.compact(table, harness)
    return "the files were compacted"


def _delete(table: Table, harness: Harness) -> str:
    foreign.delete(table, harness, ids_of(0))
    return "the rows were deleted"


def _overwrite(table: Table, _: Harness) -> str:
    table.round(token(0, "overwrites"), [KEPT], WriteMode.OVERWRITE)
    return "the rows were overwritten"


def _upsert(table: Table, _: Harness) -> str:
    keyed = Keyed.of(table)
    newer = {key: f"new {key}" for key in table.ids}
    keyed.round(0, keyed.staged(newer, keyed.files()), pipeline="merges")
    return "the rows were merged with newer ones"


def _expire(table: Table, harness: Harness, unproven: Unproven) -> list[str]:
    """By the harness, and by the format itself, as far as there is such a thing."""
    by = []
    table.lake.let_age()
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        with suppress(FeatureNotSupported):
            table.lake.storage.maintenance(table.info).expire(retention=0, keep=1, delete=True)
            by.append("the format")
    if harness.expire is not None:
        harness.expire(table.lake.storage, table.info)
        by.append("its harness")
    if not by:
        unproven("results of snapshots that expired", "neither the format nor its harness expires any")
    return by


def _refused_for_good(table: Table, harness: Harness, unproven: Unproven, act: Callable[[Table, Harness], str]) -> None:
    old = [table.staged([row], index) for index, row in enumerate(ids_of(0))]
    table.commit(old, None)
    _hand_over(table, old, "nothing has come since")
    _hand_over(table, old[:1], "nothing has come since")  # of some alone nobody knows the commit by its id
    table.append(0, KEPT)
    since = act(table, harness)
    _hand_over(table, old, since)
    table.append(1, ids_of(2))  # the newest snapshot stays, and tells what it took away
    _hand_over(table, old[1:2], since)
    _hand_over_beside_a_new_one(table, old, since)
    for who in _expire(table, harness, unproven):
        _hand_over(table, old, f"{since}, and {who} ended the snapshots that had them")


def _hand_over(table: Table, old: Sequence[WriteResult], since: str) -> None:
    """As a batch, and with an epoch that the table does not know. Whoever takes the rows for those of the new commit
    takes them out of the snapshots that had them."""
    rows, before = _rows(table), table.info.snapshot_id
    for again, kind in ((None, "a batch"), (token(0, "another"), "an epoch of another pipeline")):
        with suppress(LaketierError):
            table.commit(old, again)
        whose = f"{len(old)} results of a batch, of which {since}, were handed over again as {kind}"
        expect(_rows(table), rows, f"rows after {whose}")
        if before is not None and table.lake.declares(Feature.TIME_TRAVEL):
            expect(_rows(table, before), rows, f"rows of the snapshot of before {whose}")


def _hand_over_beside_a_new_one(table: Table, old: Sequence[WriteResult], since: str) -> None:
    """The new one's writers saw a newer table. What came before that says nothing of it, and all of the old ones."""
    rows, new = _rows(table), table.staged([NEW])
    with suppress(LaketierError):
        table.commit([new, *old], None)
    found = [(each, name) for each, name in _rows(table) if each != NEW]
    told = f"{len(old)} results of a batch, of which {since}, were handed over again beside a new one of the row {NEW}"
    expect(found, rows, f"other rows than that after {told}")


def _rows(table: Table, snapshot: int | None = None) -> list[tuple[int, str]]:
    """Of a key the old row may come in place of the newer one."""
    found = table.read(columns=("id", "name"), snapshot_id=snapshot)
    return sorted(zip(found["id"].to_pylist(), map(str, found["name"].to_pylist()), strict=True))


@pytest.mark.parametrize("hook", ["compact", "delete_rows"])
def test_other_tools_moved_its_rows(table: Table, harness: Harness, unproven: Unproven, hook: str) -> None:
    """To add the files once more would add the rows once more, or bring back those that were deleted."""
    if getattr(harness, hook) is None:
        unproven("results of rows that other tools moved", f"the format's harness has no {hook}")
        return
    _refused_for_good(table, harness, unproven, {"compact": _compact, "delete_rows": _delete}[hook])


@pytest.mark.needs(Feature.OVERWRITE)
def test_an_overwrite_took_its_rows_away(table: Table, harness: Harness, unproven: Unproven) -> None:
    _refused_for_good(table, harness, unproven, _overwrite)


@pytest.mark.needs(Feature.UPSERT)
def test_newer_rows_took_its_place(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    _refused_for_good(lake.create(primary_key=("id",)), harness, unproven, _upsert)


def test_its_publish_was_killed(table: Table, runs: Interposed, unproven: Unproven) -> None:
    """Before it took away what it had staged. Its rows may be there, and its files are, as if nobody had named them."""

    def publish(epoch: int, at: int = NOWHERE) -> tuple[WriteResult, Run]:
        asked = publish_of(table, epoch)
        run = runs.run(at=at, decided=KILL, but=SYNCS, **asked)
        return unpack(table.factory.write_result_serializer, base64.b64decode(asked["message"])), run

    _, whole = publish(0)
    assert "published" in (whole.answer or {}), f"nothing came upon a publish: found {whole.answer}"
    if not whole.steps:
        unproven("old results of a publish that was killed", "the kernel saw no effect of a publish")
    for epoch, at in enumerate(range(len(whole.steps))[-LAST:], start=1):
        old, run = publish(epoch, at)
        rows = table.ids
        for again, kind in ((None, "a batch"), (token(epoch, "another"), "an epoch of another pipeline")):
            with suppress(LaketierError):
                table.commit([old], again)
            found = table.ids
            after = f"{runs.told(run, 'a publish was killed before')}, and its result was handed over again as {kind}"
            expect([i for i, times in Counter(found).items() if times > 1], [], f"ids that are there twice: {after}")
            expect(sorted({*rows} - {*found}), [], f"ids that are gone: {after}")
            rows = found
