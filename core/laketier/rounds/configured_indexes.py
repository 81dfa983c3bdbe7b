"""The indexes that a service file gives a table."""

from __future__ import annotations

from laketier.config.indexes import IndexSection
from laketier.config.service import TableSettings
from laketier.registry import load_format
from laketier.spi import ConfigError, Feature, FeatureNotSupported, require


def indexes_of(rule: TableSettings, defaults: TableSettings, format: str, origin: str) -> tuple[IndexSection, ...]:
    """The table's own, or those of all tables. Raises `ConfigError` where the format has none, and `PluginError`."""
    found = defaults.indexes if rule.indexes is None else rule.indexes
    if found:
        try:
            require(format, load_format(format).features, Feature.INDEXING)
        except FeatureNotSupported as error:
            raise ConfigError(
                "`indexes` can't be kept", where=origin, why=f"{error}", fix="Remove it, or take another format."
            ) from error
    return tuple(found or ())
