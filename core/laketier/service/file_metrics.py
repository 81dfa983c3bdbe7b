"""The metrics of what this process did with data files."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from laketier.kit.file_counts import FILE_COUNTS

ENDED = (
    "laketier_files_ended_total",
    "Data files that tasks in this worker's own process ended (`--engine local`), by what ended them.",
)
FOLDED = ("laketier_files_folded_total", "Small files that commits of this worker wrote as fewer.")

FILE_METRICS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (ENDED[0], "counter", ("reason",), ENDED[1]),
    (FOLDED[0], "counter", (), FOLDED[1]),
)
"""Name, kind, labels and meaning of each."""


def file_families() -> Iterator[Metric]:
    """The series as they are now."""
    ended, folded = FILE_COUNTS.now()
    family = CounterMetricFamily(*ENDED, labels=["reason"])
    for why, count in ended.items():
        family.add_metric([why.value], count)
    yield family
    yield CounterMetricFamily(*FOLDED, value=folded)
