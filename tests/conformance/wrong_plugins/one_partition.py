"""Plans that are of one partition, whatever their files are of."""

from __future__ import annotations

from dataclasses import replace

from laketier import spi


def of_the_first(plan: spi.ScanPlan) -> spi.ScanPlan:
    """``plan``, each of its splits in the partition of the first."""
    first = plan.splits[0].partition if plan.splits else ()
    return replace(plan, splits=tuple(replace(split, partition=first) for split in plan.splits))
