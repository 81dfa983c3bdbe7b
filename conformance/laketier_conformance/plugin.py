"""The pytest plugin of the suite. Loaded in every pytest run of its users: it imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

LANES = ("bare", "spark-dataframe", "spark-split")
SCHEDULES = 20
"""The fewest that a verdict may rest on."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("laketier", "conformance of a lake format")
    group.addoption("--lake-format", metavar="NAME", help="the format to prove, as in lake.format")
    group.addoption("--lake-report", metavar="FILE", help="write the verdict and all results here, as JSON")
    group.addoption("--lake-warehouse", metavar="DIR", help="keep the tables in this folder (default: a temporary one)")
    group.addoption(
        "--lake-lanes",
        metavar="LANES",
        default=",".join(LANES),
        help=f"comma-separated, of {', '.join(LANES)} (default: all; with fewer the verdict is at most partial)",
    )
    group.addoption(
        "--lake-schedules",
        metavar="N",
        type=int,
        default=SCHEDULES,
        help="random schedules of rounds beside an orphan collector (default: %(default)s)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*features): must be refused by a format that declares one unsupported")
    config.addinivalue_line("markers", "lane(name): runs in this lane of the conformance suite")
    name = config.getoption("lake_format")
    if config.getoption("lake_schedules") < SCHEDULES:
        raise pytest.UsageError(f"--lake-schedules: at least {SCHEDULES}, or the verdict says too much")
    if name is not None:
        from laketier_conformance.suite import Suite

        config.pluginmanager.register(Suite(config, name, _lanes(config)), "laketier_conformance_suite")


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    package = Path(__file__).parent
    if any(item.path.is_relative_to(package) for item in items) and config.getoption("lake_format") is None:
        raise pytest.UsageError("the conformance suite needs a format: --lake-format=NAME")


def _lanes(config: pytest.Config) -> tuple[str, ...]:
    chosen = tuple(lane.strip() for lane in str(config.getoption("lake_lanes")).split(",") if lane.strip())
    unknown = [lane for lane in chosen if lane not in LANES]
    if unknown or not chosen:
        raise pytest.UsageError(f"--lake-lanes: {unknown or 'none'}; there are {', '.join(LANES)}")
    return chosen
