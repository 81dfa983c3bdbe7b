"""What the format can do. All others are refused, with this reason."""

from __future__ import annotations

from laketier import spi

ABILITIES = (
    "overwrite",
    "add-column",
    "widen-type",
    "rename-column",
    "drop-table",
    "time-travel",
    "nested-types",
)
FEATURES = {
    feature: spi.FULL if feature.value in ABILITIES else spi.unsupported("it is not built, or not shown, yet")
    for feature in spi.Feature
}
