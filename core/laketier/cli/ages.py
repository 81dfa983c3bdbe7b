"""Ages of files and snapshots, as commands take them that delete what is older."""

from __future__ import annotations

import re
from datetime import timedelta

from laketier.spi import ConfigError

_DAY = timedelta(hours=24)
_LONGEST = timedelta(days=36500)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_age(text: str) -> timedelta:
    """``90s``, ``15m``, ``36h`` or ``3d``. Raises `ConfigError`."""
    match = re.fullmatch(r"\s*(\d+)\s*([smhd])\s*", text)
    if match is None:
        raise ConfigError(f"{text!r} is not a duration", fix="Write a number and s, m, h or d: 36h, 3d.")
    try:
        found = timedelta(**{_UNITS[match[2]]: int(match[1])})
    except (OverflowError, ValueError):  # an int of more than 4300 digits
        found = timedelta.max
    if found > _LONGEST:
        raise ConfigError(f"{text[:40]!r} is too long a duration", fix="Give a hundred years at most.")
    return found


def parse_safe_age(text: str, *, why: str, unless: str) -> timedelta:
    """As `parse_age`. Raises `ConfigError` for less than 24 hours, too. ``unless``: the option that says it is safe."""
    age = parse_age(text)
    if age < _DAY:
        raise ConfigError(
            f"--older-than {text} is less than 24 hours", why=why, fix=f"Give a longer time, or {unless}."
        )
    return age
