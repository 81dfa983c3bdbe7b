"""The tables that a service file configures: which source table goes to which lake table, and how."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from laketier.config import LakeConfig, flatten
from laketier.config.indexes import IndexSection
from laketier.config.service import Service, TableRule, TableSettings
from laketier.registry import OpenSource, configure, format_names, load_format
from laketier.rounds.configured_indexes import indexes_of
from laketier.rounds.log_task import OnBadRecordPolicy
from laketier.rounds.ranges import OnExpired
from laketier.rounds.round_settings import LogRoundSettings
from laketier.spi import ConfigError, LaketierError
from laketier.tables.metadata.key import place_of

FRESHNESS_SECONDS = 180
_ODD = re.compile(r"[^A-Za-z0-9_\-]")
_PIPELINE = re.compile(r"[A-Za-z0-9_.\-]{1,128}\Z")
_FIELD, _BRACE = re.compile(r"\{(source|table)\}"), re.compile(r"[{}]")
"""Of a target. Those of `str.format` could do more: look into an object, or take all memory."""
_KEPT_OUT = ("lake.table", "lake.pipeline", "lake.epoch", "lake.snapshot-id", "lake.as-of")


@dataclass(frozen=True)
class ConfiguredTable:
    """A table of a service file: the source table, the lake table that it goes to, and its settings.

    Attributes:
        source: The name of the source in the service file.
        name: The name of the table in the source.
        config: The lake table and the pipeline.
        read: The options by which the source reads the table.
        freshness_seconds: How old the lake may be behind the source.
        priority: Tables with a higher one go first.
        most: The offsets that one round reads at most. None for no limit.
        on_bad_record: What happens to a record that is no row.
        on_expired: What happens to offsets that the source dropped before they were read.
        primary_key: The key that the service file gives the table. None where the source decides.
        change_column: The column with the change type that the service file names. None where the source decides.
        indexes: The indexes that follow the lake table.
        table_indexes: Whether those that the lake table's own property names do, too.
    """

    source: str
    name: str
    config: LakeConfig
    read: Mapping[str, Any]
    freshness_seconds: int = FRESHNESS_SECONDS
    priority: int = 0
    most: int | None = None
    on_bad_record: OnBadRecordPolicy = OnBadRecordPolicy.FAIL
    on_expired: OnExpired = OnExpired.FAIL
    primary_key: tuple[str, ...] | None = None
    change_column: str | None = None
    indexes: tuple[IndexSection, ...] = ()
    table_indexes: bool = False

    @property
    def key(self) -> str:
        """The name ``source.table``, as people write it."""
        return f"{self.source}.{self.name}"

    @property
    def pipeline(self) -> str:
        """The pipeline whose watermark the lake table stores."""
        assert self.config.pipeline is not None
        return self.config.pipeline

    @property
    def warehouse(self) -> str | None:
        """Where the lake table is, as text without a secret. None where that can't be told."""
        return place_of(self.config)

    @property
    def leaves_out_bad_records(self) -> bool:
        """Whether bad records are left out of the lake, rather than being an error."""
        return self.on_bad_record is not OnBadRecordPolicy.FAIL

    def round_settings(self, fence: int = 0) -> LogRoundSettings:
        """The settings of its next round, under a lease with the fence ``fence``."""
        return LogRoundSettings(
            fence, self.most, self.on_expired, self.on_bad_record, within=float(self.freshness_seconds)
        )


def configured_tables(
    service: Service,
    listed: Mapping[str, Iterable[str]],
    *,
    origin: str,
    refused: dict[str, tuple[ConfiguredTable, ConfigError]] | None = None,
) -> list[ConfiguredTable]:
    """The tables that the rules choose of those ``listed`` (source → names). The first rule that fits decides.

    Raises `ConfigError` when two source tables would go to one lake table, and for settings that do not fit. Where it
    is names that clash, as a lake table's can't hold all characters, and ``refused`` is given, only the tables with
    such names are left out and put there, by their keys: nobody who names a topic must stop a service.
    """
    found: dict[tuple[str, str], ConfiguredTable] = {}
    for index, rule in enumerate(service.tables):
        for name in listed.get(rule.source, ()):
            if (rule.source, name) not in found and _fits(rule, name):
                found[rule.source, name] = _configured(service, rule, name, f"{origin}, tables.{index}")
    clashes = _clashes(found.values(), origin)
    for table, error, by_name in clashes:
        if refused is None or not by_name:
            raise error
        refused[table.key] = (table, error)
        del found[table.source, table.name]
    return list(found.values())


def rule_problems(
    service: Service, index: int, sources: Mapping[str, OpenSource], *, origin: str
) -> list[LaketierError]:
    """List the faults of a rule that do not depend on tables: its sink, its target, its settings for reading."""
    rule, where = service.tables[index], f"{origin}, tables.{index}"
    found: list[LaketierError] = []
    try:
        table = _configured(service, rule, "any", where)
    except LaketierError as error:
        found.append(error)
        read = {**flatten(service.defaults.read), **flatten(rule.read)}
    else:
        read = dict(table.read)
    if rule.source in sources:
        try:
            sources[rule.source].check_table_options(read, origin=where)
        except LaketierError as error:
            found.append(error)
    return found


def unmatched(rule: TableRule, names: Collection[str]) -> list[str]:
    """The patterns of a rule that no table's name matches."""
    return [pattern for pattern in rule.include if not any(fnmatch.fnmatchcase(name, pattern) for name in names)]


def excludes_all(rule: TableRule, names: Iterable[str]) -> bool:
    """Whether a rule has no table."""
    return not any(_fits(rule, name) for name in names)


def _fits(rule: TableRule, name: str) -> bool:
    included = any(fnmatch.fnmatchcase(name, pattern) for pattern in rule.include)
    return included and not any(fnmatch.fnmatchcase(name, pattern) for pattern in rule.exclude)


def _configured(service: Service, rule: TableRule, name: str, origin: str) -> ConfiguredTable:
    defaults = service.defaults
    sink = {**flatten(defaults.sink), **flatten(rule.sink)}
    for key in _KEPT_OUT:
        if key in sink:
            raise ConfigError(
                f"{key} is not for `sink`",
                where=origin,
                fix="Remove it: the service sets it. `target` names the lake table.",
            )
    target = _of("target", rule, defaults) or "{source}.{table}"
    if _BRACE.search(_FIELD.sub("", target)):
        raise ConfigError(
            f"target = {target!r} does not fit", where=origin, fix="Use {source} and {table}, for example lake.{table}."
        )
    names = {"source": _plain(rule.source), "table": _plain(name)}
    path = _FIELD.sub(lambda field: names[field[1]], target)
    named = {"lake.table": path, "lake.pipeline": _pipeline(service.name, rule.source, name)}
    try:
        config = configure({**sink, **named}, origin=origin)
    except ConfigError as error:
        error.where = error.where or origin
        raise
    if config.format not in format_names():
        try:
            load_format(config.format)  # says what there is
        except LaketierError as error:
            error.where = error.where or f"{origin}, sink.lake.format"
            raise
    return ConfiguredTable(
        source=rule.source,
        name=name,
        config=config,
        read={**flatten(defaults.read), **flatten(rule.read)},
        freshness_seconds=round(_of("freshness", rule, defaults) or FRESHNESS_SECONDS),
        priority=_of("priority", rule, defaults) or 0,
        most=_of("max_offsets_per_round", rule, defaults),
        on_bad_record=OnBadRecordPolicy(_of("on_bad_record", rule, defaults) or "fail"),
        on_expired=OnExpired(_of("on_expired", rule, defaults) or "fail"),
        primary_key=None if (key := _of("primary_key", rule, defaults)) is None else tuple(key),
        change_column=_of("change_column", rule, defaults),
        indexes=indexes_of(rule, defaults, config.format, origin),
        table_indexes=bool(_of("table_indexes", rule, defaults)),
    )


def _of(name: str, rule: TableSettings, defaults: TableSettings) -> Any:
    own = getattr(rule, name)
    return getattr(defaults, name) if own is None else own


def _pipeline(service: str, source: str, name: str) -> str:
    """Names of tables may be longer than those of pipelines, and hold other characters."""
    pipeline = f"{service}.{_ODD.sub('_', source)}.{name}"
    if _PIPELINE.match(pipeline):
        return pipeline
    digest = hashlib.sha256(f"{source}\0{name}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return f"{service}.{_ODD.sub('_', source)[:32]}.{_ODD.sub('_', name)[:40]}.{digest}"


def _plain(name: str) -> str:
    """A name as lake tables may have it."""
    plain = _ODD.sub("_", name) or "_"
    return "_" + plain[1:] if plain.startswith("-") else plain


def _clashes(tables: Iterable[ConfiguredTable], origin: str) -> list[tuple[ConfiguredTable, ConfigError, bool]]:
    """The tables that can't go where others go: of those that share a lake table all, or all but the one that has its
    very name. The last says whether it is only their names that clash."""
    groups: dict[tuple[str, str, str], list[ConfiguredTable]] = {}
    for table in tables:
        config = table.config
        groups.setdefault((config.format, config.warehouse, str(config.table)), []).append(table)
    found = []
    for group in groups.values():
        plain = [table for table in group if _plain(table.name) == table.name]
        by_name = len({(table.source, _plain(table.name)) for table in group}) == 1
        kept = plain[0] if by_name and len(plain) == 1 else None
        for table in group if len(group) > 1 else ():
            if table is not kept:
                other = kept or next(each for each in group if each is not table)
                both = " and ".join(sorted((other.key, table.key)))
                error = ConfigError(
                    f"{both} would both go to {table.config.table}",
                    where=origin,
                    fix="Give them targets of their own: `target` may hold {source} and {table}.",
                )
                found.append((table, error, by_name))
    return found
