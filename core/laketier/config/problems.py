"""Joins several errors into one, so that a user sees everything that is wrong with a file at once."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.spi import ConfigError, FeatureNotSupported, LaketierError, PluginError, TableError

_FOR_A_PERSON = (ConfigError, PluginError, FeatureNotSupported, TableError)


def together(problems: Sequence[LaketierError], *, origin: str) -> LaketierError:
    """Join errors into one.

    Args:
        problems: The errors, at least one.
        origin: The file, which the message names once.

    Returns:
        The only error, or a `ConfigError` that lists all. An error from below becomes a `ConfigError` with that cause,
        as all are for a person to mend.
    """
    if len(problems) == 1:
        (only,) = problems
        if isinstance(only, _FOR_A_PERSON):
            return only
        told = ConfigError(only.what, where=only.where, why=only.why, fix=only.fix)
        told.__cause__ = only
        return told
    lines = "".join(f"\n  - {str(each).removeprefix(f'{origin}: ').removeprefix(f'{origin}, ')}" for each in problems)
    return ConfigError(f"{len(problems)} settings are wrong", where=origin, fix=f"Correct each:{lines}")
