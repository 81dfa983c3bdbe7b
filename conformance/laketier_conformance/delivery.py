"""What a format's delivery level allows between the first row of a round and its watermark."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from laketier.spi import DeliveryLevel, LaketierError, new_attempt_id
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, told
from laketier_conformance.lake import Table, ids_of


def round_of(epoch: int) -> dict[str, Any]:
    """The request to another process for a round of an epoch, of one task."""
    return {"do": "round", "table": "db.t", "pipeline": "p", "epoch": epoch, "tasks": [ids_of(epoch)]}


def publish_of(table: Table, epoch: int) -> dict[str, Any]:
    """The request to another process for a bare publish of an epoch, whose rows are staged here."""
    message = base64.b64encode(table.stage(ids_of(epoch))).decode()
    return {"do": "publish", "table": "db.t", "epoch": epoch, "commit": new_attempt_id(), "message": message}


def ids_until(epochs: int) -> list[int]:
    """Those of so many epochs of one task."""
    return [i for epoch in range(epochs) for i in ids_of(epoch)]


def replay(table: Table, epoch: int) -> RoundOutcome:
    """Runs the round of an epoch, of one task, once more."""
    return table.append(epoch).outcome


def own(found: Sequence[int], whole: Sequence[int]) -> str:
    """For a message: whether a publish that was told of a conflict had met its own commit."""
    if found != whole:
        return ""
    return (
        ". Its own rows are there: a step that is done again, or a request that is sent again, finds what it did the "
        "first time, so 'exists', a taken version or 412 is then no Conflict. Let the first error pass, or look whose "
        "it is"
    )


def not_absent(answer: Mapping[str, Any], ids: Sequence[int], found: Sequence[int], told: str) -> None:
    """A bare publish of ``ids`` did not say that nothing of it landed, where rows of it are among those ``found``."""
    there = sorted({*ids} & {*found})
    assert not (there and answer.get("absent")), (
        f"{told}: publish said that nothing of it landed, for certain, and {there} are there. What may have landed is "
        "an unknown outcome: neither the effect, nor what follows it, stands under `before_effect`. It said "
        f"{answer['failed']}"
    )


def made_whole(
    table: Table,
    epoch: int,
    before: Sequence[int],
    after: Sequence[int],
    replay: Callable[[], RoundOutcome],
    cut: str,
    seen: list[int] | None = None,
) -> None:
    """A round of an epoch was cut off. Exactly once: its rows are there with its watermark, or neither is. Idempotent
    upserts: some of them may be there, each once, and the watermark only with all of them. At both levels the replay
    knows, and after it each row is there once.

    ``before`` and ``after``: the ids without and with the epoch. ``seen``: those that are there, where they were read
    already.
    """
    seen = table.ids if seen is None else seen
    mark = table.watermark()
    landed = mark is not None and mark.token.epoch == epoch
    if table.lake.plugin.delivery is DeliveryLevel.EXACTLY_ONCE:
        assert seen in (before, after), f"{cut}: the table holds a part of epoch {epoch}"
        landed = seen == after
    else:
        assert Counter(before) <= Counter(seen), f"{cut}: rows from before epoch {epoch} are lost"
        assert Counter(seen) <= Counter(after), f"{cut}: rows of epoch {epoch} are doubled"
        assert not landed or seen == after, f"{cut}: the watermark is there before the rows of epoch {epoch}"
    expected = RoundOutcome.ALREADY_THERE if landed else RoundOutcome.PUBLISHED
    try:
        outcome = replay()
    except LaketierError as error:
        raise AssertionError(f"{cut}: the replay ended in {told(error)}") from error
    assert outcome is expected, f"{cut}: the replay ended as {outcome.value!r}, and {len(seen)} rows were there"
    expect(table.ids, after, f"{cut}: rows after the replay")
