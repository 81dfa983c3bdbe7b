"""The pytest plugin of the suite of sources. Loaded in every pytest run of its users: it imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pytest

from laketier_conformance import outlived, started

SEED = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("laketier-source", "conformance of a source")
    group.addoption("--log-source", metavar="NAME", help="the source to prove, as `type` in a service file")
    group.addoption(
        "--log-harness",
        metavar="MODULE:CLASS",
        help="its harness (default: the one that an entry point names for it)",
    )
    group.addoption("--log-report", metavar="FILE", help="write the verdict and all results here, as JSON")
    group.addoption("--log-page", metavar="FILE", help="write the report here as a page to look at, in HTML")
    group.addoption(
        "--log-test",
        metavar="TEST",
        action="append",
        default=[],
        help="run this one test, by its name in the report, or the tests of this file, such as test_offsets.py; may be "
        "given again (the verdict is at most partial, and the exit code tells of these tests alone)",
    )
    group.addoption(
        "--log-lake",
        metavar="FORMAT",
        help="the format into whose table rounds bring the rows (default: the first that is installed)",
    )
    group.addoption(
        "--log-rows",
        metavar="N",
        type=int,
        default=1_000_000,
        help="rows of the table that is read in bounded memory (default: %(default)s; fewer show nothing of it)",
    )
    group.addoption(
        "--log-seed", metavar="N", type=int, default=SEED, help="which ranges are drawn (default: %(default)s)"
    )
    # Of `laketier conformance`.
    group.addoption("--log-underway", metavar="FILE", help=argparse.SUPPRESS)
    group.addoption("--log-command", metavar="PID", type=int, help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "may_refuse(*features): the contract lets a source refuse these")
    if config.getoption("log_command") is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(outlived.EndsWith(config.getoption("log_command")))
    if config.getoption("log_source") is None:
        return
    if not __debug__:
        raise pytest.UsageError(
            "the conformance suite asserts, and Python was told not to: run it without -O and PYTHONOPTIMIZE"
        )
    started.note()
    for pattern, ours in (("python_files", "test_*.py"), ("python_functions", "test")):
        # An author's own tests may be named in another way.
        config.addinivalue_line(pattern, ours)
    from laketier_conformance.patience import Patience
    from laketier_source_conformance.suite import SourceSuite

    suite = SourceSuite(config)
    config.pluginmanager.register(suite, "laketier_source_conformance_suite")
    config.pluginmanager.register(Patience(suite))


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    package = Path(__file__).parent
    if any(item.path.is_relative_to(package) for item in items) and config.getoption("log_source") is None:
        raise pytest.UsageError("the conformance suite of sources needs a source: --log-source=NAME")
