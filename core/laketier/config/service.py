"""The settings of a service: what ``laketier serve SERVICE.yaml`` tiers, from which sources, into which lakes, and how
fresh."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from laketier.config.durations import Duration
from laketier.config.indexes import IndexSection
from laketier.config.origins import read_yaml
from laketier.config.parsing import KeyDoc, Section, parsed, reference
from laketier.config.problems import together
from laketier.config.suggest import did_you_mean
from laketier.spi import ConfigError

_INT32 = 2**31


class SourceSection(Section):
    """A system that holds logs."""

    type: str = Field(description="The kind of source, that is its plugin: `kafka`, `files`, …")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="How to reach it: the plugin's own options."
    )


class TableSettings(Section):
    """How tables are tiered: below `defaults` for all tables, below an entry of `tables` for its own."""

    sink: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="The lake.* keys of the lake tables, without lake.table and lake.pipeline.",
    )
    read: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="How records are read: the source plugin's keys."
    )
    target: str | None = Field(None, description="The lake table: `{source}` and `{table}` stand for the names; "
                               "`{source}.{table}` when unset.")  # fmt: skip
    freshness: Duration | None = Field(
        None, description="How old the lake may be, behind its source, in whole seconds; 3 min."
    )
    priority: int | None = Field(
        None, ge=-_INT32, lt=_INT32, description="Of tables that are due, higher ones go first; 0."
    )
    max_offsets_per_round: int | None = Field(
        None, ge=1, lt=2**63, description="A round reads about this many offsets at most."
    )  # fmt: skip
    on_bad_record: Literal["fail", "dead-letter", "drop"] | None = Field(
        None, description="What becomes of records that can't be read; fail: the table stops, the others do not."
    )
    primary_key: list[str] | None = Field(
        None, description="Columns that tell rows apart: per key the newest row stays. The source's key when unset; "
        "`[]`: rows are appended."
    )  # fmt: skip
    change_column: str | None = Field(
        None, description="The column of change types (+I, -U, +U, -D) of a log of changes. The source's when unset."
    )
    on_expired: Literal["fail", "skip"] | None = Field(
        None, description="What becomes of offsets that expired before they were read; fail."
    )
    indexes: list[IndexSection] | None = Field(
        None, description="Indexes of the lake tables, which follow them by themselves."
    )
    table_indexes: bool | None = Field(
        None, description="Keep those that a lake table's property `laketier.indexes` names, too. `indexes` counts "
        "more; false."
    )  # fmt: skip


class TableRule(TableSettings):
    """Tables of one source."""

    source: str = Field(description="The name of the source.")
    include: list[str] = Field(default=["*"], description="Patterns of table names: `orders_*`.")
    exclude: list[str] = Field(default=[], description="Patterns of names to leave out.")


class Service(Section):
    """A whole service file."""

    name: str = Field("laketier", description="Names the service in pipelines. Stable: the lake tables remember it.")
    state: str = Field(
        repr=False, description="A database URL: `sqlite:///service.db`, `postgresql+psycopg://user@host/db`."
    )
    sources: dict[str, SourceSection] = Field(description="The sources, by the names that you give them.")
    defaults: TableSettings = Field(default_factory=lambda: TableSettings.model_validate({}))
    tables: list[TableRule] = Field(min_length=1)
    discover_every: Duration = Field(30.0, description="How often new and dropped source tables are looked for; 30 s.")
    lease: Duration = Field(120.0, description="A worker that is silent for this long loses its tables; 2 min.")
    grace: Duration = Field(
        600.0, description="A worker that was told to stop waits for the rounds under way for this long; 10 min."
    )
    metrics_tables: int = Field(
        1000, ge=0, lt=_INT32, description="So many tables at most have metrics of their own: those in trouble, then "
        "those farthest behind. The sums are of all; 1000."
    )  # fmt: skip
    spark: dict[str, str] = Field(default_factory=dict, repr=False, description="Settings of the Spark session.")


def parse_service(values: Mapping[str, Any], *, origin: str) -> Service:
    """Type a service. Raises `ConfigError`, which names each wrong key."""
    service = parsed(Service, values, origin=origin)
    problems = list(_problems(service, origin))
    if problems:
        raise together(problems, origin=origin)
    return service


def _problems(service: Service, origin: str) -> Iterator[ConfigError]:
    for index, settings in enumerate((service.defaults, *service.tables)):
        if settings.freshness is not None and (settings.freshness < 1 or settings.freshness % 1):
            where = "defaults" if index == 0 else f"tables.{index - 1}"
            yield ConfigError(
                f"{where}.freshness is {settings.freshness:g} s",
                where=origin,
                fix="Set it to whole seconds, 1 or more: rounds are planned in whole seconds.",
            )
    if service.lease < 1:
        yield ConfigError(
            f"lease is {service.lease:g} s",
            where=origin,
            fix="Set it to 1 s or more, for example 2 min: a worker must renew its leases in time.",
        )
    if service.discover_every <= 0:
        yield ConfigError(
            f"discover-every is {service.discover_every:g} s",
            where=origin,
            fix="Set it to more than 0 s, for example 30 s.",
        )
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}", service.name):
        yield ConfigError(
            f"name = {service.name!r} does not fit", where=origin, fix="Use up to 32 letters, digits, _ and -."
        )
    for place, settings in (
        ("defaults", service.defaults),
        *((f"tables.{n}", each) for n, each in enumerate(service.tables)),
    ):
        names = [each.index_name for each in settings.indexes or ()]
        for twice in sorted({name for name in names if names.count(name) > 1}):
            yield ConfigError(f"{place}.indexes has {twice!r} twice", where=origin, fix="Give each a name of its own.")
    for index, rule in enumerate(service.tables):
        if rule.source not in service.sources:
            yield ConfigError(
                f"tables.{index}.source = {rule.source!r} is not one of the sources",
                where=origin,
                fix=did_you_mean(
                    rule.source, service.sources, f"The sources are {', '.join(service.sources) or 'none'}."
                ),
            )


def load_service(path: str | Path) -> Service:
    """Read and type a YAML service. Raises `ConfigError`."""
    return parse_service(read_yaml(path), origin=str(path))


def service_reference() -> Iterator[KeyDoc]:
    """The rows of the configuration reference for a service file's keys."""
    return reference(Service)
