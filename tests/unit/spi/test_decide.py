"""Every row of the decision table, by hand and then exhaustively over small domains."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest

from laketier.spi import (
    Decision,
    Fenced,
    Gap,
    Refused,
    SourceRange,
    Stale,
    Token,
    TokenMismatch,
    Watermark,
    WatermarkLost,
    decide,
    joined_stamps,
)

Verdict = Decision | type[Refused]


def verdict(watermark: Watermark | None, token: Token) -> Verdict:
    try:
        return decide(watermark, token)
    except Refused as refusal:
        return type(refusal)


def mark(epoch: int, *, forgotten: bool = False, **token: object) -> Watermark:
    fields: dict[str, object] = {"pipeline": "p", "run": "r", "epoch": epoch, **token}
    return Watermark(Token(**fields), "c", forgotten=forgotten)  # type: ignore[arg-type]


def ask(epoch: int, **token: object) -> Token:
    fields: dict[str, object] = {"pipeline": "p", "run": "r", "epoch": epoch, **token}
    return Token(**fields)  # type: ignore[arg-type]


def span(start: int, end: int) -> SourceRange:
    return SourceRange(str(start), str(end))


STAMPED = SourceRange("0", "5", "x")


@pytest.mark.parametrize(
    ("watermark", "token", "expected"),
    [
        pytest.param(None, ask(0), Decision.PROCEED, id="none-first-epoch"),
        pytest.param(None, ask(0, fence=7), Decision.PROCEED, id="none-first-epoch-under-a-lease"),
        pytest.param(None, ask(1), WatermarkLost, id="none-later-epoch"),
        pytest.param(mark(4, forgotten=True), ask(0, run="other"), Decision.PROCEED, id="forgotten-counts-as-none"),
        pytest.param(mark(4, forgotten=True), ask(5), WatermarkLost, id="forgotten-later-epoch"),
        pytest.param(mark(4, fence=2), ask(5, fence=1), Fenced, id="lower-fence"),
        pytest.param(mark(4, fence=2), ask(4, fence=1), Fenced, id="lower-fence-same-epoch"),
        pytest.param(mark(4, fence=2), ask(5, fence=1, run="other"), Fenced, id="lower-fence-before-other-run"),
        pytest.param(mark(4, fence=2), ask(5, fence=2), Decision.PROCEED, id="same-fence"),
        pytest.param(mark(4, fence=2), ask(5, fence=3), Decision.PROCEED, id="higher-fence"),
        pytest.param(mark(4), ask(5, run="other"), TokenMismatch, id="other-run-next-epoch"),
        pytest.param(mark(4), ask(0, run="other"), TokenMismatch, id="other-run-first-epoch"),
        pytest.param(mark(4), ask(4, run="other"), TokenMismatch, id="other-run-same-epoch"),
        pytest.param(mark(4), ask(4), Decision.DONE, id="same-epoch-no-content"),
        pytest.param(mark(4, content="x"), ask(4, content="x"), Decision.DONE, id="same-epoch-same-content"),
        pytest.param(mark(4, content="x"), ask(4), Decision.DONE, id="same-epoch-content-unknown-now"),
        pytest.param(mark(4), ask(4, content="x"), Decision.DONE, id="same-epoch-content-unknown-then"),
        pytest.param(mark(4, content="x"), ask(4, content="y"), TokenMismatch, id="same-epoch-other-content"),
        pytest.param(mark(4, source=span(0, 5)), ask(4, source=span(0, 5)), Decision.DONE, id="same-epoch-same-range"),
        pytest.param(mark(4, source=span(0, 5)), ask(4, source=span(0, 9)), TokenMismatch, id="same-epoch-other-range"),
        pytest.param(mark(4, source=STAMPED), ask(4, source=STAMPED), Decision.DONE, id="same-epoch-same-stamp"),
        pytest.param(mark(4, source=span(0, 5)), ask(4, source=STAMPED), Decision.DONE, id="same-epoch-stamp-gained"),
        pytest.param(mark(4, source=STAMPED), ask(4, source=span(0, 5)), Decision.DONE, id="same-epoch-stamp-expired"),
        pytest.param(
            mark(4, source=STAMPED),
            ask(4, source=replace(STAMPED, stamp="y")),
            TokenMismatch,
            id="same-epoch-other-stamp",
        ),
        pytest.param(
            mark(4, source=replace(STAMPED, stamp=joined_stamps({"0": "a", "1": "b"}))),
            ask(4, source=replace(STAMPED, stamp=joined_stamps({"0": "a"}))),
            Decision.DONE,
            id="same-epoch-stamp-of-a-bucket-expired",
        ),
        pytest.param(mark(4, source=STAMPED), ask(5, source=span(5, 9)), Decision.PROCEED, id="next-epoch-after-stamp"),
        pytest.param(mark(4), ask(3), Stale, id="earlier-epoch"),
        pytest.param(mark(4, content="x"), ask(3, content="x"), Stale, id="earlier-epoch-is-never-done"),
        pytest.param(mark(4), ask(5), Decision.PROCEED, id="next-epoch"),
        pytest.param(
            mark(4, source=span(0, 5)), ask(5, source=span(5, 9)), Decision.PROCEED, id="next-epoch-range-continues"
        ),
        pytest.param(mark(4, source=span(0, 5)), ask(5), Decision.PROCEED, id="next-epoch-range-unknown-now"),
        pytest.param(mark(4), ask(5, source=span(5, 9)), Decision.PROCEED, id="next-epoch-range-unknown-then"),
        pytest.param(mark(4, source=span(0, 5)), ask(5, source=span(6, 9)), Gap, id="next-epoch-range-jumps"),
        pytest.param(mark(4, source=span(0, 5)), ask(5, source=span(3, 9)), Gap, id="next-epoch-range-overlaps"),
        pytest.param(mark(4, content="x"), ask(5, previous="x"), Decision.PROCEED, id="next-epoch-same-content-before"),
        pytest.param(mark(4, content="x"), ask(5, previous="y"), TokenMismatch, id="next-epoch-other-content-before"),
        pytest.param(mark(4), ask(5, previous="y"), Decision.PROCEED, id="next-epoch-content-before-unknown-then"),
        pytest.param(
            mark(4, content="x"), ask(4, content="x", previous="y"), Decision.DONE, id="same-epoch-asks-no-more"
        ),
        pytest.param(mark(4), ask(6), Gap, id="epoch-skipped"),
    ],
)
def test_row(watermark: Watermark | None, token: Token, expected: Verdict) -> None:
    assert verdict(watermark, token) == expected


def test_who_continues_from_a_new_checkpoint_is_warned_of_what_it_writes_again() -> None:
    with pytest.raises(TokenMismatch, match=r"--epoch 0`.* move files away that the table has"):
        decide(mark(4), ask(0, run="other"))


def differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


# The table as data, in its order. The first row that applies decides.
ROWS: list[tuple[str, object, Verdict]] = [
    ("none, first", lambda w, t: w is None and t.epoch == 0, Decision.PROCEED),
    ("none, later", lambda w, t: w is None, WatermarkLost),
    ("lower fence", lambda w, t: t.fence < w.fence, Fenced),
    ("other run", lambda w, t: t.run != w.run, TokenMismatch),
    (
        "same epoch, other content",
        lambda w, t: t.epoch == w.epoch and (differ(t.content, w.content) or differ(t.source, w.source)),
        TokenMismatch,
    ),
    ("same epoch", lambda w, t: t.epoch == w.epoch, Decision.DONE),
    ("earlier epoch", lambda w, t: t.epoch < w.epoch, Stale),
    (
        "next epoch, other content before",
        lambda w, t: t.epoch - w.epoch == 1 and differ(t.previous, w.content),
        TokenMismatch,
    ),
    (
        "next epoch",
        lambda w, t: t.epoch - w.epoch == 1 and (None in (w.source, t.source) or w.source.end == t.source.start),
        Decision.PROCEED,
    ),
    ("anything else", lambda w, t: True, Gap),
]


def test_exhaustively() -> None:
    tokens = [
        Token("p", run, epoch, fence, content, source, previous)
        for run, epoch, fence, content, source, previous in itertools.product(
            ("r", "s"), range(4), range(3), (None, "x", "y"), (None, span(0, 5), span(5, 9)), (None, "x")
        )
    ]
    kept = [token for token in tokens if token.previous is None]  # no watermark has one
    hits: Counter[str] = Counter()
    for last in [None, *kept]:
        watermark = None if last is None else Watermark(last, "c")
        for token in tokens:
            row, expected = next((name, result) for name, applies, result in ROWS if applies(last, token))  # type: ignore[operator]
            assert verdict(watermark, token) == expected, (row, watermark, token)
            hits[row] += 1
    assert set(hits) == {name for name, _, _ in ROWS}
    assert sum(hits.values()) == len(tokens) * (len(kept) + 1)


@pytest.mark.parametrize(
    ("watermark", "token"),
    [
        (None, ask(3)),
        (mark(4, fence=2), ask(5)),
        (mark(4), ask(5, run="other")),
        (mark(4, content="x"), ask(4, content="y")),
        (mark(4, content="x"), ask(5, previous="y")),
        (mark(4), ask(1)),
        (mark(4), ask(9)),
    ],
)
def test_a_refusal_names_the_pipeline_and_the_way_out(watermark: Watermark | None, token: Token) -> None:
    with pytest.raises(Refused) as caught:
        decide(watermark, token)
    assert caught.value.where == "pipeline 'p'"
    assert caught.value.fix
    assert str(token.epoch) in str(caught.value) or "run" in str(caught.value) or "lease" in str(caught.value)


def test_the_watermark_of_another_pipeline_is_a_bug_of_the_caller() -> None:
    with pytest.raises(ValueError, match="asked to compare 'p' with the watermark of 'q'"):
        decide(mark(4, pipeline="q"), ask(5))
