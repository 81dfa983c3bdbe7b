"""Of those who replace files of one table at the same time, whoever saw an older table loses."""

from __future__ import annotations

import contextlib

import pytest

from laketier.spi import (
    Conflict,
    Feature,
    Watermark,
    WriteMode,
)
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.keyed import AFTER_1, UPSERT, Keyed, Rows, epoch_1, publish
from laketier_conformance.lake import token

pytestmark = pytest.mark.needs(Feature.UPSERT)


def test_of_two_drivers_one_wins(keyed: Keyed) -> None:
    """Both opened one state and rewrote one file. The second loses for certain, and nothing of it is there."""
    first, second = keyed.table.committer(mode=UPSERT), keyed.table.committer(mode=UPSERT)
    state_1, state_2 = first.open(), second.open()
    theirs, ours = epoch_1(keyed), keyed.staged({1: "lost", 2: "lost"}, keyed.files(1))
    first.publish(state_1, [theirs], Watermark(token(1), "first"))
    with refused(Conflict, "the second of two drivers publishes that rewrote one file"):
        second.publish(state_2, [ours], Watermark(token(1), "second"))
    first.close()
    second.close()
    expect(keyed.rows, AFTER_1, "rows after the second driver was refused")
    mark = keyed.table.watermark()
    assert mark is not None, "a pipeline has a watermark after two drivers raced"
    expect(mark.commit_id, "first", "the commit in the watermark: that of the driver that won")


@pytest.mark.parametrize("rows", [{9: "lost", 2: "b"}, {9: "lost"}], ids=["replaced", "new"])
def test_of_two_pipelines_one_brings_a_new_key(keyed: Keyed, rows: Rows) -> None:
    """Both saw a table without it. Where the second one replaces no file, it collides with none, and would bring the
    key a second time."""
    late = keyed.table.committer(mode=UPSERT)
    state = late.open()
    ours = keyed.staged({**keyed.beside(2), **rows}, keyed.files(2)) if 2 in rows else keyed.staged(rows)
    keyed.round(0, keyed.staged({9: "i"}), pipeline="other")
    with refused(Conflict, "an upsert brings a key, against a state from before another pipeline brought it"):
        late.publish(state, [ours], Watermark(token(1), "late"))
    late.close()
    expect(keyed.rows, {1: "a", 2: "b", 3: "c", 9: "i"}, "rows after the second of two upserts of one new key")


@pytest.mark.parametrize("rival", [WriteMode.APPEND, UPSERT], ids=["append", "upsert"])
def test_a_rival_that_leaves_the_files_alone(keyed: Keyed, rival: WriteMode) -> None:
    """It changed the snapshot all the same: the core merged without the rows that it brought."""
    committer = keyed.table.committer(mode=UPSERT)
    state, ours = committer.open(), epoch_1(keyed)
    publish(keyed.table, 0, keyed.staged({7: "g"}), pipeline="other", mode=rival)
    with refused(Conflict, "an upsert is published against a state that a rival made stale"):
        committer.publish(state, [ours], Watermark(token(1), "late"))
    committer.close()
    expect(keyed.rows, {1: "a", 2: "b", 3: "c", 7: "g"}, "rows after a stale upsert was refused")


def test_an_append_that_was_planned_before(keyed: Keyed) -> None:
    """It stays or loses: it never brings back what was replaced, and never vanishes behind a success."""
    late = keyed.table.committer()
    state, staged = late.open(), keyed.table.staged([80])
    keyed.round(1, epoch_1(keyed))
    expected = set(AFTER_1)
    with contextlib.suppress(Conflict):
        late.publish(state, [staged], Watermark(token(0, "late"), "c"))
        expected.add(80)
    late.close()
    expect(keyed.rows.keys(), expected, "the keys after an append that was planned before an upsert")
    early = keyed.table.staged([81])
    keyed.round(2, keyed.staged({90: "z"}, [name for split, _ in keyed.splits() for name in split.files]))
    with goes_well("a round is published that had staged its rows before another one's upsert"):
        keyed.table.commit([early], token(0, "early"))
    expect(keyed.rows.keys(), {90, 81}, "the keys of a round that had staged them before an upsert of all files")
