"""Several errors told at once: who mends a file wants to know all that is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.spi import ConfigError, FeatureNotSupported, LaketierError, PluginError, TableError

_FOR_A_PERSON = (ConfigError, PluginError, FeatureNotSupported, TableError)


def together(problems: Sequence[LaketierError], *, origin: str) -> LaketierError:
    """One error: the only one itself, or a `ConfigError` that lists them. ``origin`` is said once. All are for a
    person to mend, also one that came from below: that is a `ConfigError` too, with that as its cause."""
    if len(problems) == 1:
        (only,) = problems
        if isinstance(only, _FOR_A_PERSON):
            return only
        told = ConfigError(only.what, where=only.where, why=only.why, fix=only.fix)
        told.__cause__ = only
        return told
    lines = "".join(f"\n  - {str(each).removeprefix(f'{origin}: ').removeprefix(f'{origin}, ')}" for each in problems)
    return ConfigError(f"{len(problems)} things are wrong", where=origin, fix=f"Mend each:{lines}")
