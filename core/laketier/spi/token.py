"""Tokens, watermarks, and the one rule that decides whether a round may publish.

A *token* names a round before anything is written. The *watermark* is the last token of a pipeline. The commit stores
it in the same atomic step as the data. `decide` compares the two; nothing else in laketier may.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from laketier.spi.errors import (
    ConfigError,
    CorruptTable,
    Fenced,
    Gap,
    Stale,
    TokenMismatch,
    WatermarkLost,
)
from laketier.spi.stamps import stamps_differ
from laketier.spi.visible import is_utf8

FIRST_EPOCH = 0
_MOST = 2**63


@dataclass(frozen=True)
class SourceRange:
    """The range of the source that a round read, half open, as canonical text.

    Attributes:
        start: The first position.
        end: The position after the last one.
        stamp: Tells what lay before the end from what another history has there (`TableLog.stamp`). None where the
            source has none.
    """

    start: str
    end: str
    stamp: str | None = None


@dataclass(frozen=True)
class Token:
    """The name of one round.

    Attributes:
        pipeline: The user's name for the flow. Stable, one per query; several sinks of one job may share it.
        run: The progress log that the epochs belong to, such as the id of a Spark checkpoint. It survives failover.
        epoch: The number of the round, from `FIRST_EPOCH` by one.
        fence: The number of the driver's lease. 0 without a lease.
        content: Identifies the input of the epoch. None where it is unknown; then run and epoch alone decide.
        source: The range that was read, where the source has ranges.
        previous: Identifies the input of the epoch before, as the run's own log tells it. None where it is unknown.
            It is asked for and never stored, so it is no part of what makes two tokens equal.

    Raises:
        ConfigError: A field has another type, or a value that no table could give back. A watermark that can't be read
            again would stop the pipeline for good.
    """

    pipeline: str
    run: str
    epoch: int
    fence: int = 0
    content: str | None = None
    source: SourceRange | None = None
    previous: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.pipeline or not self.run:
            raise ConfigError("a round needs a pipeline and a run", fix="Name both.")
        for name, text in (
            ("pipeline", self.pipeline),
            ("run", self.run),
            ("content", self.content),
            ("previous", self.previous),
        ):
            if text is not None and not is_utf8(text):
                raise ConfigError(
                    f"the {name} of a round is text in UTF-8, and this is {_shown(text)}",
                    fix=f"Give it as text, for example str({name}).",
                )
        for name, number in (("epoch", self.epoch), ("fence", self.fence)):
            if type(number) is not int or not 0 <= number < _MOST:
                raise ConfigError(
                    f"the {name} of a round is an int of 0 or more, and this is {_shown(number)}",
                    fix=f"Give it as int({name}), without a sign and below 2**63.",
                )


@dataclass(frozen=True)
class Watermark:
    """The last token of a pipeline, as stored in the table.

    Attributes:
        token: The token.
        commit_id: The id of the round attempt that published it. It tells an unknown outcome from a rival's success.
        rows: The rows of the commit. For people and audits: no decision reads it.
        committed_at: When it was committed, in ms since the epoch, UTC. For people and audits: no decision reads it.
        snapshot_id: The snapshot that carried it. None until it is read back, for formats that know the id only then.
        forgotten: Whether it counts as none, as ``laketier pipeline forget`` was run.
        renamed_to: The pipeline that goes on here instead, as ``laketier pipeline rename`` was run. Such a watermark is
            forgotten as well, and no round of its own pipeline may be published.
    """

    token: Token
    commit_id: str
    rows: int = 0
    committed_at: int = 0
    snapshot_id: int | None = None
    forgotten: bool = False
    renamed_to: str | None = None

    def carried_by(self, snapshot_id: int) -> Watermark:
        """Name the snapshot that carries the watermark.

        Args:
            snapshot_id: The snapshot.

        Returns:
            A copy.
        """
        return replace(self, snapshot_id=snapshot_id)

    def to_json(self) -> str:
        """The watermark as canonical JSON: sorted keys, no spaces, a version."""
        token = self.token
        document: dict[str, Any] = {
            "v": 1,
            "pipeline": token.pipeline,
            "run": token.run,
            "epoch": token.epoch,
            "fence": token.fence,
            "content": token.content,
            "source": None if token.source is None else _of_range(token.source),
            "commit": self.commit_id,
            "rows": self.rows,
            "at": self.committed_at,
            "snapshot": self.snapshot_id,
            "forgotten": self.forgotten,
        }
        if self.renamed_to is not None:  # without it as it was before pipelines got other names
            document["renamed_to"] = self.renamed_to
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Watermark:
        """Read JSON that `to_json` wrote.

        Args:
            text: The JSON.

        Returns:
            The watermark.

        Raises:
            CorruptTable: The text is no watermark, or one of a newer version.
        """
        try:
            document = json.loads(text)
            if document["v"] != 1:
                raise CorruptTable(
                    f"the watermark has version {document['v']!r}, and this laketier reads version 1",
                    fix="Use a newer laketier.",
                )
            source = document["source"]
            token = Token(
                pipeline=_of(str, document["pipeline"]),
                run=_of(str, document["run"]),
                epoch=_of(int, document["epoch"]),
                fence=_of(int, document["fence"]),
                content=_optional(str, document["content"]),
                source=None if source is None else SourceRange(*_texts(source)),
            )
            return cls(
                token=token,
                commit_id=_of(str, document["commit"]),
                rows=_of(int, document["rows"]),
                committed_at=_of(int, document["at"]),
                snapshot_id=_optional(int, document["snapshot"]),
                forgotten=_of(bool, document["forgotten"]),
                renamed_to=_optional(str, document.get("renamed_to")),
            )
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, ConfigError) as error:
            raise CorruptTable("a stored watermark can't be read", why=f"{error!r}: {text[:200]!r}") from error


def _of_range(source: SourceRange) -> list[str]:
    """Without a stamp as it was before there were stamps."""
    return [source.start, source.end] if source.stamp is None else [source.start, source.end, source.stamp]


def _texts(source: Any) -> list[str]:
    """What `_of_range` wrote. What follows is a later laketier's."""
    return [_of(str, source[0]), _of(str, source[1]), *(_of(str, text) for text in source[2:3])]


def _shown(value: object) -> str:
    return f"{type(value).__name__} {ascii(value)[:100]}"


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, found {value!r}")
    return value


def _optional(kind: type, value: Any) -> Any:
    return None if value is None else _of(kind, value)


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
    name = f"pipeline {token.pipeline!r}"
    if watermark is not None:
        refuse_renamed(watermark, where=name)
    if watermark is not None and watermark.forgotten:
        watermark = None
    if watermark is None:
        if token.epoch == FIRST_EPOCH:
            return Decision.PROCEED
        raise WatermarkLost(
            f"the table does not know the pipeline, but this is epoch {token.epoch} of it",
            where=name,
            why="the table was dropped, overwritten or restored, or this is another table",
            fix="If the table is right and the earlier rows are in it (or may be missing), run "
            f"{_adopt(token, token.epoch - 1)}; to load everything again, start from a new checkpoint and an empty "
            "table.",
        )
    last = watermark.token
    if last.pipeline != token.pipeline:
        raise ValueError(f"asked to compare {token.pipeline!r} with the watermark of {last.pipeline!r}")
    if token.fence < last.fence:
        raise Fenced(
            f"a driver with lease {last.fence} has taken over, this one holds lease {token.fence}",
            where=name,
            fix="Stop this driver; its rows are, or will be, written by the other one.",
        )
    if last.run != token.run:
        raise TokenMismatch(
            f"the table's watermark belongs to run {last.run!r}, this round to run {token.run!r}",
            where=name,
            why="the query started from a new or another checkpoint, or two queries share one pipeline id",
            fix="Give each query a pipeline id of its own. To continue this pipeline with this run: if the rows of "
            f"epoch {token.epoch} are in the table already, run {_adopt(token, token.epoch)}; if they are not, run "
            f"{_adopt(token, token.epoch - 1)}.",
        )
    if token.epoch == last.epoch:
        if not _differ(token.content, last.content) and not _are_others(token.source, last.source):
            return Decision.DONE
        raise TokenMismatch(
            f"epoch {token.epoch} is in the table with other input than this round read",
            where=name,
            why="a restored checkpoint took the same epoch again with other files, or another range of the source "
            f"(content {token.content!r}, range {token.source}; in the table {last.content!r}, {last.source})",
            fix="Restore the newest checkpoint. If this round's rows shall replace those of the epoch in the table, "
            f"remove these, then run {_back(token)}; or use a new pipeline id.",
        )
    if token.epoch < last.epoch:
        raise Stale(
            f"the table is at epoch {last.epoch}, this round is epoch {token.epoch}",
            where=name,
            why="an older checkpoint was restored, or another driver is ahead",
            fix="Restore the newest checkpoint. See where the table stands with `laketier pipeline show -p "
            f"{shlex.quote(token.pipeline)}`; if the rows from epoch {token.epoch} on were removed from it, run "
            f"{_back(token)}.",
        )
    if token.epoch == last.epoch + 1 and _differ(token.previous, last.content):
        raise TokenMismatch(
            f"epoch {last.epoch} is in the table with other input than this run read as epoch {last.epoch}",
            where=name,
            why="a copy of the checkpoint went on elsewhere, with other files or offsets, and what it read there is "
            f"not in this table (content {token.previous!r}; in the table {last.content!r})",
            fix=f"Restore the checkpoint that wrote epoch {last.epoch} to this table. If the other one's rows are not "
            f"missed here, run {_adopt(token, last.epoch)}.",
        )
    if token.epoch == last.epoch + 1 and _continues(last, token):
        return Decision.PROCEED
    if token.epoch == last.epoch + 1:
        why = f"the source range starts at {token.source}, the table ends at {last.source}"
    else:
        why = f"epochs {last.epoch + 1} to {token.epoch - 1} are not in the table"
    raise Gap(
        f"epoch {token.epoch} does not follow epoch {last.epoch}",
        where=name,
        why=why,
        fix=f"Run the missing epochs first, or accept the gap with {_adopt(token, token.epoch - 1)}.",
    )


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


def _differ(one: object | None, other: object | None) -> bool:
    return one is not None and other is not None and one != other


def _are_others(one: SourceRange | None, other: SourceRange | None) -> bool:
    """A stamp that one of them lacks, as a laketier from before wrote none, says nothing."""
    if one is None or other is None:
        return False
    return (one.start, one.end) != (other.start, other.end) or stamps_differ(one.stamp, other.stamp)


def _continues(last: Token, token: Token) -> bool:
    return last.source is None or token.source is None or last.source.end == token.source.start
