"""All keys of the core, with types, defaults and docs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from laketier.config.suggest import did_you_mean, is_near_miss, nearest
from laketier.config.typed import KeyDoc, parse_value
from laketier.spi import COLLECTOR, BucketSpec, ConfigError, PartitionField, Passthrough, TablePath
from laketier.spi.redaction import holds_secret, redacted

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
    snapshot_id: int | None = None
    as_of: int | None = None
    format_options: Mapping[str, str] = field(default_factory=Passthrough)
    """The keys below ``lake.<format>.``, without that prefix. Not typed yet, as that needs the plugin."""
    origin: str = "the configuration"
    """Where the configuration comes from, for messages."""


@dataclass(frozen=True)
class Key:
    """A key of the core. ``parse(key, value, origin)`` returns the value of the field ``field`` of `LakeConfig`."""

    name: str
    field: str
    type: str
    default: str
    doc: str
    parse: Callable[[str, Any, str], Any]
    required: bool = False


def _typed(kind: Any) -> Callable[[str, Any, str], Any]:
    return lambda key, value, origin: parse_value(key, kind, value, origin=origin)


def _pipeline(key: str, value: Any, origin: str) -> str:
    text = str(value).strip()
    if not _PIPELINE.match(text):
        raise ConfigError(
            f"{key} = {value!r} is not a pipeline id",
            where=origin,
            fix="Use up to 128 letters, digits, _, - and dots, for example `orders-v1`.",
        )
    if text == COLLECTOR:
        raise ConfigError(f"{key} = {text!r} is the name under which orphans are collected", fix="Use another one.")
    return text


def _warehouse(key: str, value: Any, origin: str) -> str:
    """A path or a URL, without a password: it would be in the metadata of tables, in plans and in messages."""
    text: str = parse_value(key, str, value, origin=origin)
    if holds_secret(text):
        raise ConfigError(
            f"{key} = {redacted(text)!r} holds a password",
            where=origin,
            why="where tables are is written into their metadata, into logs and into Spark's plans",
            fix="Leave the user and the password out of the URL; give them as settings of the format's storage, or in "
            "the environment.",
        )
    try:
        urlsplit(text)
    except ValueError as error:
        raise ConfigError(
            f"{key} = {text!r} is no URL",
            where=origin,
            why=str(error),
            fix="Write a path, or a URL whose special characters are percent-encoded.",
        ) from error
    return text


def _moment(key: str, value: Any, origin: str) -> int:
    """Ms since the epoch."""
    text = str(value).strip()
    if isinstance(value, int) or re.fullmatch(r"-?\d+", text):
        moment: int = parse_value(key, int, value, origin=origin)
        return moment
    try:
        read = value if isinstance(value, datetime) else datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{key} = {text!r} is no moment", where=origin, fix=_MOMENTS) from error
    if read.tzinfo is None:
        raise ConfigError(
            f"{key} = {text!r} names no time zone",
            where=origin,
            why="it would be another moment on each host",
            fix=_MOMENTS,
        )
    return (read - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def _epoch(key: str, value: Any, origin: str) -> int:
    epoch: int = parse_value(key, int, value, origin=origin)
    if epoch < 0:
        raise ConfigError(f"{key} = {epoch} is negative", where=origin, fix="Epochs count from 0 by one.")
    return epoch


def _items(value: Any) -> list[str]:
    if isinstance(value, str):
        return [item for item in re.split(r",(?![^(]*\))", value) if item.strip()]
    return [str(item) for item in value]


def _partition_by(key: str, value: Any, origin: str) -> tuple[PartitionField, ...]:  # noqa: ARG001 - the signature of a parser
    return tuple(PartitionField.parse(item) for item in _items(value))


_BUCKETS = re.compile(r"(?:(?P<function>[a-z]+):)?\s*bucket\(\s*(?P<count>\d+)\s*,(?P<keys>[^()]+)\)\Z")


def _bucket_by(key: str, value: Any, origin: str) -> BucketSpec:
    match = _BUCKETS.match(str(value).strip())
    if match is None:
        raise ConfigError(
            f"{key} = {value!r} is not a bucketing",
            where=origin,
            fix="Write bucket(16, id), or with a function: iceberg:bucket(16, id).",
        )
    keys = tuple(part.strip() for part in match["keys"].split(","))
    return BucketSpec(int(match["count"]), keys, match["function"] or "fluss")


def _table(key: str, value: Any, origin: str) -> TablePath:  # noqa: ARG001 - the signature of a parser
    return TablePath.parse(str(value).strip())


KEYS: tuple[Key, ...] = (
    Key("lake.format", "format", "text", "", "The format, that is the plugin: the one key to change.",
        _typed(str), required=True),
    Key("lake.warehouse", "warehouse", "text", "", "Folder or URI below which the tables live.", _warehouse,
        required=True),
    Key("lake.table", "table", "database.table", "", "The table; in Spark also `.save(\"database.table\")`.", _table,
        required=True),
    Key("lake.pipeline", "pipeline", "text", "", "A stable name, one per query. Required for streams; makes a batch "
        "idempotent, together with `lake.epoch`.", _pipeline),
    Key("lake.epoch", "epoch", "an integer", "", "The number of a batch within its pipeline: from 0, by one. A batch "
        "that was already published is skipped.", _epoch),
    Key("lake.partition-by", "partition_by", "a list", "", "Partition fields for a table that is created: columns, or "
        "transforms such as `day(ts)` and `bucket(16, id)` where the format has them.", _partition_by),
    Key("lake.bucket-by", "bucket_by", "bucket(n, column, …)", "", "Buckets for a table that is created; "
        "`fluss:` (default), `iceberg:`, `paimon:` or `hudi:` before it names the function.", _bucket_by),
    Key("mergeSchema", "merge_schema", "true or false", "false", "Add columns that the input has and the table lacks, "
        "at the start, as nullable columns.", _typed(bool)),
    Key("lake.snapshot-id", "snapshot_id", "an integer", "", "Read this snapshot instead of the newest.",
        _typed(int)),
    Key("lake.as-of", "as_of", "a moment", "", "Read the snapshot that was current at this moment: ISO 8601 with a "
        "zone (`2026-11-22T06:00:00Z`), or ms since 1970, UTC.", _moment),
)  # fmt: skip

_BY_LOWER = {key.name.lower(): key for key in KEYS}


def parse_lake_config(
    values: Mapping[str, Any],
    *,
    origin: str,
    formats: Collection[str] = (),
    foreign: Collection[str] = (),
    require: Collection[str] = ("lake.format", "lake.warehouse", "lake.table"),
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
    arguments: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        lower = name.lower()
        key = _BY_LOWER.get(lower)
        if value is None:
            raise ConfigError(f"{name} has no value", where=origin, fix="Give it one, or remove the key.")
        if key is not None:
            arguments[key.field] = key.parse(key.name, value, origin)
            continue
        head, dot, _ = lower.removeprefix(PREFIX).partition(".")
        if lower.startswith(PREFIX) and dot:
            # Only the section's own keys fold case: what is passed through to a library may be case-sensitive.
            sections.setdefault(head, {})[name[len(PREFIX) + len(head) + 1 :]] = value
            continue
        if lower.startswith(PREFIX) or is_near_miss(name, _BY_LOWER) or not _is_foreign(lower, foreign):
            raise ConfigError(f"unknown key {name!r}", where=origin, fix=did_you_mean(name, _names()))
    missing = [name for name in require if _BY_LOWER[name].field not in arguments]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} must be set", where=origin, fix=_how(missing[0], formats))
    chosen = arguments.get("format", "")
    for head in sections:
        if head != chosen and head not in formats:
            near = nearest(head, {*formats, chosen})
            raise ConfigError(
                f"unknown key {PREFIX + head + '.' + next(iter(sections[head]))!r}",
                where=origin,
                fix=f"Did you mean the section {PREFIX}{near}.?" if near else f"The format is {chosen!r}.",
            )
    arguments["format_options"] = Passthrough(_fold(sections.get(chosen, {})))
    if arguments.get("snapshot_id") is not None and arguments.get("as_of") is not None:
        raise ConfigError("lake.snapshot-id and lake.as-of are both set", where=origin, fix="Remove one.")
    if (arguments.get("epoch") is not None) and arguments.get("pipeline") is None:
        raise ConfigError("lake.epoch is set without lake.pipeline", where=origin, fix="Set lake.pipeline as well.")
    for name in ("format", "warehouse", "table"):
        arguments.setdefault(name, "")
    return LakeConfig(**arguments, origin=origin)


def _fold(section: Mapping[str, Any]) -> dict[str, str]:
    """Lower-case the plugin's own keys; what follows a second dot belongs to a library and keeps its case."""
    folded = {}
    for key, value in section.items():
        head, dot, rest = key.partition(".")
        folded[head.lower() + dot + rest] = str(value)
    return folded


def _is_foreign(key: str, foreign: Collection[str]) -> bool:
    return any(key == name or (name.endswith("*") and key.startswith(name[:-1])) for name in foreign)


def _names() -> list[str]:
    return [key.name for key in KEYS]


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
    for key in KEYS:
        yield KeyDoc(key.name, key.type, key.default or ("required" if key.required else ""), key.doc)


__all__ = ["KEYS", "PREFIX", "Key", "LakeConfig", "lake_reference", "parse_lake_config"]
