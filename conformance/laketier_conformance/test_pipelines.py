"""Pipelines whose names are alike: two of them never become one, in whatever a format keeps them by."""

from __future__ import annotations

import pytest

from laketier.spi import (
    CommitterInitContext,
    Feature,
    Fenced,
    Token,
    Watermark,
    WriteMode,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, pipelines
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import Table, token
from laketier_conformance.odd_rows import UNPRESSED

LONG = "pipeline-" + "x" * 51
HASHED = (
    ("orders-145599", "orders-168275"),  # SHA-256
    ("orders-58736", "orders-85943"),  # MD5
    ("orders-88336", "orders-100977"),  # SHA-1
    ("orders-29685295", "orders-32060020"),  # CRC-32
    ("orders-120", "orders-201"),  # Adler-32
)
"""Two names of one hash each, of which the first eight hex digits count."""
# Each group becomes one where a format does to names as the group says. `Token` allows any text.
ALIKE: dict[str, tuple[str, ...]] = {
    "case": ("orders", "Orders", "ORDERS"),
    "case-of-unicode": ("strasse", "straße", "STRASSE", "ärger", "Ärger", "i", "İ", "\u0131"),
    "normal-form": ("caf\u00e9", "cafe\u0301", "\u212b", "\u00c5"),
    "width": ("a1", "\uff411", "a\uff11", "\ufb01", "fi"),
    "cut-at-60": (LONG, LONG + "a", LONG + "b"),
    "cut-at-200": ("y" * 200, "y" * 200 + "1", "y" * 255 + "1", "y" * 255 + "2", "y" * 2_000 + "1", "y" * 2_000 + "2"),
    "beyond-an-index": (UNPRESSED, UNPRESSED + "1", UNPRESSED + "2"),
    "cleaned": ("a_b", "a-b", "a.b", "a b", "a/b", "a%b", "a:b", "a\\b", "a=b", "ab"),
    "stripped": ("a", " a", "a ", "a\n", "\ta", "a b", "a  b", "a\tb"),
    "invisible": ("ab", "a\u200bb", "a\u00adb", "\ufeffab", "ab\x00", "ab\x00c", "a\x7fb"),
    "separated": ("a", "a|b", "a,b", "a;b", "a#b", "a&b", "a@b", "a\nb", "a::b", "a=1"),
    "hashed": tuple(name for pair in HASHED for name in pair),
    "prefixed": ("a.b", "a/b", "a", "a.", "a/", "aa", "a.b.c"),
    "escaped": ("a/b", "a%2Fb", "a%2fb", "a%252Fb", "a\\u002fb", "a+b", "a%20b", "a b"),
    "quoted": ("a", "'a'", '"a"', "`a`", "a''b", "a'b", "{a}", "$a"),
    "folders": (".", "..", "./a", "a", "/a", "a/../a", "nul", "_laketier"),
    "numbers": ("1", "01", "1.0", "+1", "true", "null"),
    "wildcards": ("a_", "a%", "a*", "ab", "a?", "[a]b"),
}


def _publish(table: Table, mark: Token, row: int | None, mode: WriteMode = WriteMode.APPEND) -> None:
    """One commit, decided by what `open` says of the pipeline; without a row an empty one."""
    table.round(mark, [] if row is None else [[row]], mode)


@pytest.mark.parametrize("alike", ALIKE)
def test_names_that_are_alike_stay_apart(table: Table, alike: str) -> None:
    """Each pipeline has an epoch, a run and a fence of its own: the table knows none before it published, and each as
    it was after the others did."""
    names = ALIKE[alike]
    factory = table.factory
    published: dict[str, Token] = {}
    for number, name in enumerate(names):
        commit = new_attempt_id()
        committer = factory.create_committer(CommitterInitContext(commit_id=commit))
        state = committer.open()
        mark = state.watermark(name)
        assert mark is None, (
            f"pipeline {name!r} never published, and the table has {mark} for it; only {list(published)!r} did"
        )
        published[name] = token(number, name, run=f"run {number}", fence=len(names) - number)
        with goes_well(f"a pipeline whose name has {len(name)} letters publishes an empty epoch"):
            committer.publish(state, [], Watermark(published[name], commit))
        committer.close()
    state = table.lake.storage.state(table.info)
    for name, last in published.items():
        mark = state.watermark(name)
        assert mark is not None, f"pipeline {name!r} published an epoch, and the table has no watermark for it"
        expect(mark.token, last, f"the watermark of pipeline {name!r} is the one that it published")
    listed = state.pipelines()
    assert listed is None or sorted(listed) == sorted(names), (
        f"the table lists the pipelines {sorted(listed or ())!r}, and those that published are {sorted(names)!r}"
    )


NEAR = ("orders", "Orders", "orders.eu", "orders/eu", "orders_eu", "orders%2Feu", "orders-" + "z" * 120)


def test_replays_and_fences_of_pipelines_that_are_alike(table: Table) -> None:
    for number, name in enumerate(NEAR):
        _publish(table, token(0, name, fence=number), number)
    _publish(table, token(1, NEAR[0]), len(NEAR))
    for number, name in enumerate(NEAR[1:], start=1):
        again = table.round(token(0, name, fence=number), [[100 + number]])
        expect(again.outcome, RoundOutcome.ALREADY_THERE, f"{NEAR[0]!r} went on, and {name!r} replays its epoch")
        with refused(Fenced, f"a driver of pipeline {name!r} begins a round with a lower fence"):
            _publish(table, token(1, name, fence=number - 1), 999)
    expect(table.ids, list(range(len(NEAR) + 1)), "replays and fenced rounds of pipelines that are alike add no row")


def test_forgetting_a_pipeline_forgets_no_other(table: Table) -> None:
    for number, name in enumerate(NEAR):
        _publish(table, token(0, name), number)
    pipelines.forget(table.factory, NEAR[0])
    state = table.lake.storage.state(table.info)
    marks = {name: state.watermark(name) for name in NEAR}
    forgotten = [name for name, mark in marks.items() if mark is None or mark.forgotten]
    expect(forgotten, [NEAR[0]], f"pipeline {NEAR[0]!r} alone was forgotten")
    outcome = table.round(token(0, NEAR[0]), [[50]]).outcome
    expect(outcome, RoundOutcome.PUBLISHED, f"the first epoch of {NEAR[0]!r}, which was forgotten, is new")
    for name in NEAR[1:]:
        outcome = table.round(token(0, name), [[60]]).outcome
        expect(outcome, RoundOutcome.ALREADY_THERE, f"{NEAR[0]!r} was forgotten, and {name!r} replays its epoch")


@pytest.mark.needs(Feature.OVERWRITE)
def test_overwrites_of_pipelines_that_are_alike(table: Table) -> None:
    for number, name in enumerate(NEAR):
        _publish(table, token(0, name), number, WriteMode.OVERWRITE if number % 2 else WriteMode.APPEND)
    left = list(range(5, len(NEAR)))
    expect(table.ids, left, "the last overwrite and the append after it are what is left")
    for name in NEAR:
        outcome = table.round(token(0, name), [[70]], WriteMode.OVERWRITE).outcome
        expect(outcome, RoundOutcome.ALREADY_THERE, f"others overwrote the table, and {name!r} replays its epoch")
    expect(table.ids, left, "replays of overwrites change no row")


def test_commits_that_are_alike_landed_each_for_itself(table: Table) -> None:
    """`landed` is asked for one commit, and answers for no other whose id is like its own."""
    commit = new_attempt_id()
    committer = table.committer(commit_id=commit)
    committer.publish(committer.open(), [], Watermark(token(0, "a"), commit))
    state = committer.open()
    committer.close()
    assert state.landed(commit), f"commit {commit} was published, and `landed` says that it was not"
    for other in (commit[:-1], commit[1:], commit[:16], commit + "0", commit[::-1], "a", new_attempt_id()):
        assert not state.landed(other), f"only commit {commit} was published, and `landed` says that {other!r} was, too"
