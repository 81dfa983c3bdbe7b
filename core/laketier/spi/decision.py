"""The one rule that decides whether a round may publish: what the watermark of a table says to the token of a round.

`decide` is its only home. What it refuses comes with the command that gets a pipeline out of the refusal.
"""

from __future__ import annotations

import shlex
from enum import Enum

from laketier.spi.errors import Fenced, Gap, Stale, TokenMismatch, WatermarkLost
from laketier.spi.stamps import stamps_differ
from laketier.spi.token import FIRST_EPOCH, SourceRange, Token, Watermark


class Decision(Enum):
    """The two answers of `decide`. Everything else is a refusal."""

    PROCEED = "proceed"
    """Write and publish."""
    DONE = "done"
    """The epoch is in the table already. Write nothing; acknowledge."""


def decide(watermark: Watermark | None, token: Token) -> Decision:
    """Decide whether a round may publish. A pure function, and the only home of the rule:

    ============  ================================  ==========================
    watermark     token                             decision
    ============  ================================  ==========================
    none          first epoch                       PROCEED
    none          a later epoch                     raises `WatermarkLost`
    renamed       any                               raises `TokenMismatch`
    any           lower fence                       raises `Fenced`
    other run     any                               raises `TokenMismatch`
    epoch n       epoch n, same content and range   DONE
    epoch n       epoch n, other content or range   raises `TokenMismatch`
    epoch n       epoch < n                         raises `Stale`
    epoch n       epoch n+1, other content before   raises `TokenMismatch`
    epoch n       epoch n+1, range continues        PROCEED
    epoch n       anything else                     raises `Gap`
    ============  ================================  ==========================

    Args:
        watermark: The table's watermark for the pipeline of ``token``. None where it has none.
        token: The name of the round.

    Returns:
        PROCEED for a round to write and publish, DONE for one that the table holds already.

    Raises:
        Refused: The round must not be published; one of the classes in the table says why.
        ValueError: The watermark belongs to another pipeline.
    """
    if watermark is not None:
        refuse_renamed(watermark, where=_named(token))
    if watermark is not None and watermark.forgotten:
        watermark = None
    if watermark is None:
        if token.epoch == FIRST_EPOCH:
            return Decision.PROCEED
        raise _lost(token)
    last = watermark.token
    if last.pipeline != token.pipeline:
        raise ValueError(f"asked to compare {token.pipeline!r} with the watermark of {last.pipeline!r}")
    if token.fence < last.fence:
        raise _fenced(last, token)
    if last.run != token.run:
        raise _of_another_run(last, token)
    if token.epoch == last.epoch:
        if not _differ(token.content, last.content) and not _are_others(token.source, last.source):
            return Decision.DONE
        raise _of_other_input(last, token)
    if token.epoch < last.epoch:
        raise _stale(last, token)
    if token.epoch == last.epoch + 1 and _differ(token.previous, last.content):
        raise _after_other_input(last, token)
    if token.epoch == last.epoch + 1 and _continues(last, token):
        return Decision.PROCEED
    raise _gap(last, token)


def refuse_renamed(watermark: Watermark, *, where: str) -> None:
    """Refuse a pipeline that goes on under another name: begun anew, it would read all its rows a second time.

    Args:
        watermark: The table's watermark for the pipeline.
        where: The place that an error names.

    Raises:
        TokenMismatch: It has another name by now.
    """
    if watermark.renamed_to is None:
        return
    old, new = watermark.token.pipeline, watermark.renamed_to
    raise TokenMismatch(
        f"the pipeline {old!r} goes on as {new!r} in this table",
        where=where,
        why="`laketier pipeline rename` was run, or was stopped before its end",
        fix=f"Stop what writes as {old!r}, or give it the other name. To give {old!r} to the pipeline, also where that "
        "was stopped half-way, run `laketier pipeline "
        f"rename -p {shlex.quote(new)} --to {shlex.quote(old)}`; to begin anew under it, run `laketier pipeline forget "
        f"-p {shlex.quote(old)}`.",
    )


def _differ(one: object | None, other: object | None) -> bool:
    return one is not None and other is not None and one != other


def _are_others(one: SourceRange | None, other: SourceRange | None) -> bool:
    """A stamp that one of them lacks, as a laketier from before wrote none, says nothing."""
    if one is None or other is None:
        return False
    return (one.start, one.end) != (other.start, other.end) or stamps_differ(one.stamp, other.stamp)


def _continues(last: Token, token: Token) -> bool:
    return last.source is None or token.source is None or last.source.end == token.source.start


def _named(token: Token) -> str:
    return f"pipeline {token.pipeline!r}"


def _lost(token: Token) -> WatermarkLost:
    return WatermarkLost(
        f"the table does not know the pipeline, but this is epoch {token.epoch} of it",
        where=_named(token),
        why="the table was dropped, overwritten or restored, or this is another table",
        fix="If the table is right and the earlier rows are in it (or may be missing), run "
        f"{_adopt(token, token.epoch - 1)}; to load everything again, start from a new checkpoint and an empty "
        "table.",
    )


def _fenced(last: Token, token: Token) -> Fenced:
    return Fenced(
        f"a driver with lease {last.fence} has taken over, this one holds lease {token.fence}",
        where=_named(token),
        fix="Stop this driver; its rows are, or will be, written by the other one.",
    )


def _of_another_run(last: Token, token: Token) -> TokenMismatch:
    return TokenMismatch(
        f"the table's watermark belongs to run {last.run!r}, this round to run {token.run!r}",
        where=_named(token),
        why="the query started from a new or another checkpoint, or two queries share one pipeline id",
        fix="Give each query a pipeline id of its own. To continue this pipeline with this run: if the rows of "
        f"epoch {token.epoch} are in the table already, run {_adopt(token, token.epoch)}; if they are not, run "
        f"{_adopt(token, token.epoch - 1)}. All that it reads after that is written: before, move files away that "
        "the table has, or start behind its rows.",
    )


def _of_other_input(last: Token, token: Token) -> TokenMismatch:
    return TokenMismatch(
        f"epoch {token.epoch} is in the table with other input than this round read",
        where=_named(token),
        why="a restored checkpoint took the same epoch again with other files, or another range of the source "
        f"(content {token.content!r}, range {token.source}; in the table {last.content!r}, {last.source})",
        fix="Restore the newest checkpoint. If this round's rows shall replace those of the epoch in the table, "
        f"remove these, then run {_back(token)}; or use a new pipeline id.",
    )


def _stale(last: Token, token: Token) -> Stale:
    return Stale(
        f"the table is at epoch {last.epoch}, this round is epoch {token.epoch}",
        where=_named(token),
        why="an older checkpoint was restored, or another driver is ahead",
        fix="Restore the newest checkpoint. See where the table stands with `laketier pipeline show -p "
        f"{shlex.quote(token.pipeline)}`; if the rows from epoch {token.epoch} on were removed from it, run "
        f"{_back(token)}.",
    )


def _after_other_input(last: Token, token: Token) -> TokenMismatch:
    return TokenMismatch(
        f"epoch {last.epoch} is in the table with other input than this run read as epoch {last.epoch}",
        where=_named(token),
        why="a copy of the checkpoint went on elsewhere, with other files or offsets, and what it read there is "
        f"not in this table (content {token.previous!r}; in the table {last.content!r})",
        fix=f"Restore the checkpoint that wrote epoch {last.epoch} to this table. If the other one's rows are not "
        f"missed here, run {_adopt(token, last.epoch)}.",
    )


def _gap(last: Token, token: Token) -> Gap:
    if token.epoch == last.epoch + 1:
        why = f"the source range starts at {token.source}, the table ends at {last.source}"
    else:
        why = f"epochs {last.epoch + 1} to {token.epoch - 1} are not in the table"
    return Gap(
        f"epoch {token.epoch} does not follow epoch {last.epoch}",
        where=_named(token),
        why=why,
        fix=f"Run the missing epochs first, or accept the gap with {_adopt(token, token.epoch - 1)}.",
    )


def _adopt(token: Token, epoch: int) -> str:
    """The command after which the table holds this run up to ``epoch``. Whoever knows the table adds it
    (`laketier.registry.commands`)."""
    if epoch < FIRST_EPOCH:
        return f"`laketier pipeline forget -p {shlex.quote(token.pipeline)}`"
    return f"`laketier pipeline adopt -p {shlex.quote(token.pipeline)} --run {shlex.quote(token.run)} --epoch {epoch}`"


def _back(token: Token) -> str:
    """The command after which the next round is this one."""
    if token.epoch == FIRST_EPOCH:
        return _adopt(token, token.epoch - 1)
    return f"`laketier pipeline rewind -p {shlex.quote(token.pipeline)} --epoch {token.epoch - 1}`"
