"""Several errors told at once: who mends a file wants to know all that is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from laketier.spi import ConfigError, LaketierError


def together(problems: Sequence[LaketierError], *, origin: str) -> LaketierError:
    """One error: the only one itself, or a `ConfigError` that lists them. ``origin`` is said once."""
    if len(problems) == 1:
        return problems[0]
    lines = "".join(f"\n  - {str(each).removeprefix(f'{origin}: ').removeprefix(f'{origin}, ')}" for each in problems)
    return ConfigError(f"{len(problems)} things are wrong", where=origin, fix=f"Mend each:{lines}")
