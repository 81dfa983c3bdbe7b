"""Numbers and moments as people read them. Moments are ms since the epoch, UTC."""

from __future__ import annotations

from datetime import UTC, datetime

NOTHING = "\N{EN DASH}"


def seconds(value: float | None) -> str:
    """``4.2 s``, ``3.5 min``, ``2.1 h``, ``1.5 d``."""
    if value is None:
        return NOTHING
    for limit, unit, size in ((60, "s", 1), (3600, "min", 60), (86400, "h", 3600)):
        if value < limit:
            return f"{value / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{value / 86400:.1f} d"


def number(value: int | None) -> str:
    """With thousands apart."""
    return NOTHING if value is None else f"{value:,}"


def size(value: int) -> str:
    """Bytes: ``3.4 MiB``."""
    amount = float(value)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.1f}".removesuffix(".0") + f" {unit}"
        amount /= 1024
    return f"{amount:,.1f} GiB"


def moment(at: int | None) -> str:
    """Date and time of day."""
    return NOTHING if at is None else datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def clock(at: int) -> str:
    """Time of day."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M:%S")


def ago(at: int, now: int) -> str:
    """How long before ``now``."""
    return f"{seconds(max(0, now - at) / 1000)} ago"
