"""All keys of the core, with types, defaults and docs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator

from laketier.config.parsing import STRIPPED, KeyDoc, Named, TextKeys, Unfit, dashed, own_options, parsed, reference
from laketier.config.suggest import nearest
from laketier.kit.validation import Validate
from laketier.spi import COLLECTOR, BucketSpec, ConfigError, PartitionField, Passthrough, TablePath
from laketier.spi.redaction import holds_secret

PREFIX = "lake."
_MOMENTS = "Write it as 2026-11-22T06:00:00Z, as 2026-11-22T08:00:00+02:00, or as ms since 1970, UTC."
_PIPELINE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}\Z")


@dataclass(frozen=True)
class LakeConfig:
    """The typed ``lake.*`` keys: which table of which format, and how to write or read it. Immutable and picklable."""

    format: str
    warehouse: str
    table: TablePath
    pipeline: str | None = None
    epoch: int | None = None
    partition_by: tuple[PartitionField, ...] = ()
    bucket_by: BucketSpec | None = None
    merge_schema: bool = False
    validate_values: Validate = Validate.EVERY
    snapshot_id: int | None = None
    as_of: int | None = None
    metadata_cache: bool = True
    metadata_cache_max_age: float = 0
    format_options: Mapping[str, str] = field(default_factory=Passthrough)
    """The keys below ``lake.<format>.``, without that prefix. Not typed yet, as that needs the plugin."""
    origin: str = "the configuration"
    """Where the configuration comes from, for messages."""


def _pipeline(value: Any) -> str:
    text = str(value).strip()
    if not _PIPELINE.match(text):
        raise Unfit(
            "is not a pipeline id", fix="Use up to 128 letters, digits, _, - and dots, for example `orders-v1`."
        )
    if text == COLLECTOR:
        raise Unfit("is reserved for orphan collection", fix="Use another one.")
    return text


def _warehouse(text: str) -> str:
    """A path or a URL, without a password: it would be in the metadata of tables, in plans and in messages."""
    if holds_secret(text):
        raise Unfit(
            "holds a password",
            why="the locations of tables are written into their metadata, into logs and into Spark's plans",
            fix="Leave the user and the password out of the URL; give them as settings of the format's storage, or in "
            "the environment.",
        )
    try:
        urlsplit(text)
    except ValueError as error:
        raise Unfit(
            "is no URL",
            why=str(error),
            fix="Write a path, or a URL whose special characters are percent-encoded.",
        ) from error
    return text


def _moment(value: Any) -> Any:
    """Ms since the epoch, or a number as it is written."""
    text = str(value).strip()
    if isinstance(value, int) or re.fullmatch(r"-?\d+", text):
        return value
    try:
        read = value if isinstance(value, datetime) else datetime.fromisoformat(text)
    except ValueError as error:
        raise Unfit("is no moment", fix=_MOMENTS) from error
    if read.tzinfo is None:
        raise Unfit("has no time zone", why="it would be another moment on each host", fix=_MOMENTS)
    return (read - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def _epoch(epoch: int) -> int:
    if epoch < 0:
        raise Unfit("is negative", fix="Epochs count from 0 by one.", typed=epoch)
    return epoch


def _seconds(seconds: float) -> float:
    if not 0 <= seconds < float("inf"):
        raise Unfit("is no age", fix="Give seconds, 0 or more.", typed=seconds)
    return seconds


def _partition_by(value: Any) -> tuple[PartitionField, ...]:
    items = re.split(r",(?![^(]*\))", value) if isinstance(value, str) else [str(item) for item in value]
    return tuple(PartitionField.parse(item) for item in items if item.strip())


_BUCKETS = re.compile(r"(?:(?P<function>[a-z]+):)?\s*bucket\(\s*(?P<count>\d+)\s*,(?P<keys>[^()]+)\)\Z")


def _bucket_by(value: Any) -> BucketSpec:
    match = _BUCKETS.match(str(value).strip())
    if match is None:
        raise Unfit("is not a bucketing", fix="Write bucket(16, id), or with a function: iceberg:bucket(16, id).")
    keys = tuple(part.strip() for part in match["keys"].split(","))
    return BucketSpec(int(match["count"]), keys, match["function"] or "fluss")


def _table(value: Any) -> TablePath:
    return TablePath.parse(str(value).strip())


class LakeKeys(TextKeys):
    """The keys of the core, as Spark's options and files spell them."""

    model_config = ConfigDict(alias_generator=lambda name: PREFIX + dashed(name))

    format: str = Field("", description="The format, that is the plugin: the one key to change.")
    warehouse: Annotated[str, AfterValidator(_warehouse)] = Field(
        "", description="Folder or URI below which the tables live."
    )
    table: Annotated[TablePath | Literal[""], PlainValidator(_table), Named("database.table")] = Field(
        "", description='The table; in Spark also `.save("database.table")`.'
    )
    pipeline: Annotated[str | None, PlainValidator(_pipeline)] = Field(
        None,
        description="A stable name, one per query. Required for streams; makes a batch idempotent, together with "
        "`lake.epoch`.",
    )
    epoch: Annotated[int, AfterValidator(_epoch)] | None = Field(
        None,
        description="The number of a batch within its pipeline: from 0, by one. A batch that was already published is "
        "skipped.",
    )
    partition_by: Annotated[tuple[PartitionField, ...], PlainValidator(_partition_by)] = Field(
        (),
        description="Partition fields for a table that is created: columns, or transforms such as `day(ts)` and "
        "`bucket(16, id)` where the format has them.",
    )
    bucket_by: Annotated[BucketSpec | None, PlainValidator(_bucket_by), Named("bucket(n, column, …)")] = Field(
        None,
        description="Buckets for a table that is created; `fluss:` (default), `iceberg:`, `paimon:` or `hudi:` before "
        "it names the function.",
    )
    merge_schema: Annotated[bool, STRIPPED] = Field(
        False,
        alias="mergeSchema",
        description="Add columns that the input has and the table lacks, at the start, as nullable columns.",
    )
    validate_values: Validate = Field(
        Validate.EVERY,
        alias="lake.validate",
        description="Of which batches of a task all values are looked at: every, first or never. Columns, types, nulls "
        "and the digits of decimals are checked in each, whatever this says.",
    )
    snapshot_id: int | None = Field(None, description="Read this snapshot instead of the newest.")
    as_of: Annotated[int | None, BeforeValidator(_moment), Named("a moment")] = Field(
        None,
        description="Read the snapshot that was current at this moment: ISO 8601 with a zone "
        "(`2026-11-22T06:00:00Z`), or ms since 1970, UTC.",
    )
    metadata_cache: Annotated[bool, STRIPPED] = Field(
        True,
        description="Keep descriptions of tables in memory and on the disk of the host; each is served only after a "
        "cheap look says that the table is as it was.",
    )
    metadata_cache_max_age: Annotated[float, STRIPPED, AfterValidator(_seconds)] = Field(
        0,
        description="Seconds for which readers take a description that was kept without that look. Rounds never do.",
    )


_REQUIRED = ("lake.format", "lake.warehouse", "lake.table")


def parse_lake_config(
    values: Mapping[str, Any],
    *,
    origin: str,
    formats: Collection[str] = (),
    foreign: Collection[str] = (),
    require: Collection[str] = _REQUIRED,
) -> LakeConfig:
    """Type flat ``lake.*`` keys. Names are case-insensitive.

    Args:
        values: Keys and values.
        origin: Where they come from, for messages.
        formats: The formats whose sections (``lake.<name>.``) may be present. A section of another format than the
            chosen one is ignored, so that ``lake.format`` is the one key to change.
        foreign: Keys of an engine that are ignored, with a trailing ``*`` for a prefix.
        require: The keys that must be set.

    Returns:
        The configuration.

    Raises:
        ConfigError: A key is unknown, nearly a known one, ill-typed or missing.
    """
    own: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {}
    for name, value in own_options(LakeKeys, values, foreign).items():
        if value is None:
            raise ConfigError(f"{name} has no value", where=origin, fix="Give it one, or remove the key.")
        section = name[len(PREFIX) :].partition(".") if name.lower().startswith(PREFIX) else ("", "", "")
        if section[1]:
            # Only the section's own keys fold case: what is passed through to a library may be case-sensitive.
            sections.setdefault(section[0].lower(), {})[section[2]] = value
        else:
            own[name] = value
    typed = parsed(LakeKeys, own, origin=origin)
    missing = [name for name in require if name not in own]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} must be set", where=origin, fix=_how(missing[0], formats))
    chosen = typed.format
    for head in sections:
        if head != chosen and head not in formats:
            near = nearest(head, {*formats, chosen})
            raise ConfigError(
                f"unknown key {PREFIX + head + '.' + next(iter(sections[head]))!r}",
                where=origin,
                fix=f"Did you mean the section {PREFIX}{near}.?" if near else f"The format is {chosen!r}.",
            )
    if typed.snapshot_id is not None and typed.as_of is not None:
        raise ConfigError("lake.snapshot-id and lake.as-of are both set", where=origin, fix="Remove one.")
    if typed.epoch is not None and typed.pipeline is None:
        raise ConfigError("lake.epoch is set without lake.pipeline", where=origin, fix="Set lake.pipeline as well.")
    arguments: dict[str, Any] = {name: getattr(typed, name) for name in LakeKeys.model_fields}
    return LakeConfig(**arguments, format_options=Passthrough(_fold(sections.get(chosen, {}))), origin=origin)


def _fold(section: Mapping[str, Any]) -> dict[str, str]:
    """Lower-case the plugin's own keys; what follows a second dot belongs to a library and keeps its case."""
    folded = {}
    for key, value in section.items():
        head, dot, rest = key.partition(".")
        # A text from the environment stays one: no error shows it.
        folded[head.lower() + dot + rest] = value if isinstance(value, str) else str(value)
    return folded


def _how(name: str, formats: Collection[str]) -> str:
    examples = {
        "lake.format": f"For example lake.format = {min(formats, default='<a format>')}; installed: "
        f"{', '.join(sorted(formats)) or 'none'}.",
        "lake.warehouse": "For example lake.warehouse = /data/lake.",
        "lake.table": "For example lake.table = sales.orders.",
        "lake.pipeline": "For example lake.pipeline = orders-v1: stable, and one per query.",
    }
    return examples[name]


def lake_reference() -> Iterator[KeyDoc]:
    """The rows of the configuration reference for the core's keys."""
    for row in reference(LakeKeys):
        yield replace(row, default="required") if row.key in _REQUIRED else row


__all__ = ["PREFIX", "LakeConfig", "LakeKeys", "lake_reference", "parse_lake_config"]
