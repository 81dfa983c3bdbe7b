"""The indexes that a service file gives a table."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.config.indexes import IndexSection
from laketier.config.service import TableSettings
from laketier.registry import load_format
from laketier.spi import ConfigError, Feature, FeatureNotSupported, require


def indexes_of(rule: TableSettings, defaults: TableSettings, format: str, origin: str) -> tuple[IndexSection, ...]:
    """The table's own, or those of all tables. Raises `ConfigError` where the format has none, and `PluginError`."""
    found = defaults.indexes if rule.indexes is None else rule.indexes
    if found or (defaults.table_indexes if rule.table_indexes is None else rule.table_indexes):
        refuse_key(defaults.primary_key if rule.primary_key is None else rule.primary_key, origin)
        try:
            require(format, load_format(format).features, Feature.INDEXING)
        except FeatureNotSupported as error:
            raise ConfigError(
                "`indexes` can't be kept", where=origin, why=f"{error}", fix="Remove it, or take another format."
            ) from error
    return tuple(found or ())


def refuse_key(primary_key: Sequence[str] | None, where: str) -> None:
    """Raise `ConfigError` for a table whose rounds merge rows by key: no format keeps an index in such a round, and
    with one the next round would be refused."""
    if primary_key:
        raise ConfigError(
            "`indexes` can't be kept of a table with a primary key",
            where=where,
            why=f"rounds that merge rows by {', '.join(primary_key)} are refused while the table has indexes",
            fix="Set `primary-key: []` where rows are only appended, or remove `indexes`.",
        )
