"""Tokens and watermarks: the name of a round, and the last one of a pipeline that a table stores.

A *token* names a round before anything is written. The *watermark* is the last token of a pipeline. The commit stores
it in the same atomic step as the data. `laketier.spi.decision` compares the two; nothing else in laketier may.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from laketier.spi.errors import ConfigError, CorruptTable
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
