"""The pytest plugin of the suite. Loaded in every pytest run of its users: it imports nothing heavy."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from laketier_conformance import frozen, outlived, started

if TYPE_CHECKING:
    from collections.abc import Sequence

LANES = ("bare", "spark-dataframe", "spark-split")
SCHEDULES = 20
"""The fewest that a verdict may rest on."""
STEPS = 6
S3_ENDPOINT = "--lake-s3-endpoint"
FIRST_SEED = 100
"""Of the series beyond those of every run."""
COMMITS, LEAST_COMMITS = 300, 110
"""Of an operation, where there are more."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("laketier", "conformance of a lake format")
    group.addoption(
        "--lake-format",
        metavar="NAME",
        help="the format to prove, as in lake.format; several with commas share one run and one Spark session",
    )
    group.addoption(
        "--lake-report",
        metavar="FILE",
        help="write the verdict and all results here, as JSON; {format} in it stands for the format",
    )
    group.addoption(
        "--lake-page",
        metavar="FILE",
        help="write the report here as a page to look at, in HTML; {format} in it stands for the format",
    )
    group.addoption("--lake-warehouse", metavar="DIR", help="keep the tables in this folder (default: a temporary one)")
    group.addoption(
        "--lake-lanes",
        metavar="LANES",
        default=",".join(LANES),
        help=f"comma-separated, of {', '.join(LANES)} (default: all; with fewer the verdict is at most partial)",
    )
    group.addoption(
        "--lake-test",
        metavar="TEST",
        action="append",
        default=[],
        help="run this one test, by its name in the report, or the tests of this file, such as test_types.py; may be "
        "given again (the verdict is at most partial, and the exit code tells of these tests alone)",
    )
    group.addoption(
        "--lake-schedules",
        metavar="N",
        type=int,
        default=SCHEDULES,
        help="random schedules of rounds beside an orphan collector (default: %(default)s)",
    )
    group.addoption(
        "--lake-series",
        metavar="N",
        type=series_seeds,
        default=(),
        help="draw so many more series of operations of each kind of table; or with @ one more, of this seed, which "
        "is played first: @17 (default: those that every run has)",
    )
    group.addoption(
        "--lake-steps",
        metavar="N",
        type=int,
        default=STEPS,
        help="of an operation that is no append, kill so many steps, fail as many, and cut the power as often; "
        "0 for each (default: %(default)s)",
    )
    group.addoption(
        S3_ENDPOINT,
        metavar="URL",
        help="a store that speaks S3, with paths for buckets, for object stores (default: moto's, in a process of its "
        "own); its keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, its region AWS_REGION",
    )
    group.addoption(
        "--lake-commits",
        metavar="N",
        type=int,
        default=COMMITS,
        help="commits of others between a pipeline's epoch and its replay (default: %(default)s)",
    )
    group.addoption(
        "--lake-by-turns",
        metavar="FILES",
        default="",
        help="comma-separated files and tests of the suite: of several formats in one run each takes every second case "
        "of the tests in these files, and every second of these tests, by turns (the verdict is at most partial, and "
        "the exit code tells of what was taken)",
    )
    # Of `laketier conformance`: the test that has begun is written there, for who sees the process end without a word.
    group.addoption("--lake-underway", metavar="FILE", help=argparse.SUPPRESS)
    group.addoption("--lake-command", metavar="PID", type=int, help=argparse.SUPPRESS)
    group.addoption(
        "--lake-seed",
        metavar="N",
        type=int,
        default=date.today().toordinal(),
        help="which of these steps (default: other ones each day; the report tells)",
    )


def series_seeds(given: str) -> tuple[int, ...]:
    """The seeds of ``--lake-series``. Those that every run has are below `FIRST_SEED`."""
    one, text = given.startswith("@"), given.removeprefix("@")
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{given!r} is no number of series, and no seed such as @17")
    return (int(text),) if one else tuple(range(FIRST_SEED, FIRST_SEED + int(text)))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*features): must be refused by a format that declares one unsupported")
    config.addinivalue_line("markers", "shows(*features): tells of these features, declared or not")
    config.addinivalue_line("markers", "lane(name): runs in this lane of the conformance suite")
    if config.getoption("lake_schedules") < SCHEDULES:
        raise pytest.UsageError(f"--lake-schedules: at least {SCHEDULES}, or the verdict says too much")
    if config.getoption("lake_commits") < LEAST_COMMITS:
        raise pytest.UsageError(f"--lake-commits: at least {LEAST_COMMITS}, or the verdict says too much")
    if config.getoption("lake_steps") < 0 or config.getoption("lake_seed") < 0:
        raise pytest.UsageError("--lake-steps and --lake-seed: a number from 0 on")
    if config.getoption("lake_command") is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(outlived.EndsWith(config.getoption("lake_command")))
    _endpoint(config)
    if config.getoption("lake_format") is not None:
        if not __debug__:
            raise pytest.UsageError(
                "the conformance suite asserts, and Python was told not to: run it without -O and PYTHONOPTIMIZE"
            )
        _past_proxies(config)
        _past_the_folder(config)
        started.note()
        frozen.freeze(config)
        for pattern, ours in (("python_files", "test_*.py"), ("python_functions", "test")):
            # An author's own tests may be named in another way.
            config.addinivalue_line(pattern, ours)
        from laketier_conformance.patience import Patience
        from laketier_conformance.suite import Suite

        names = _formats(config)
        _warehouse(config)
        reports, pages = _files(config, names, "lake_report"), _files(config, names, "lake_page")
        if both := set(reports.values()) & set(pages.values()):
            raise pytest.UsageError(f"--lake-report and --lake-page: {both.pop()} can't be both, name two files")
        suite = Suite(config, names, _lanes(config), reports, pages, _options(config))
        config.pluginmanager.register(suite, "laketier_conformance_suite")
        config.pluginmanager.register(Patience(suite))
        if config.getoption("lake_by_turns"):
            from laketier_conformance.manifest import expected_tests
            from laketier_conformance.turns import Turns, named_by_turns

            named = named_by_turns(config.getoption("lake_by_turns"), expected_tests())
            config.pluginmanager.register(Turns(suite, named), "laketier_conformance_turns")


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    package = Path(__file__).parent
    if any(item.path.is_relative_to(package) for item in items) and config.getoption("lake_format") is None:
        raise pytest.UsageError("the conformance suite needs a format: --lake-format=NAME")


def _formats(config: pytest.Config) -> tuple[str, ...]:
    given = str(config.getoption("lake_format"))
    names = tuple(name.strip() for name in given.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise pytest.UsageError(f"--lake-format={given}: name each format once, with commas between several")
    return names


def _files(config: pytest.Config, names: tuple[str, ...], option: str) -> dict[str, Path]:
    given = config.getoption(option)
    if given is None:
        return {}
    files = {name: Path(str(given).replace("{format}", name)).absolute() for name in names}
    if len(set(files.values())) < len(files):
        raise pytest.UsageError(
            f"--{option.replace('_', '-')}={given}: say {{format}} where the name goes, one file for each format"
        )
    return files


def _warehouse(config: pytest.Config) -> None:
    """Tables of an earlier run would be found, and taken for those of this one."""
    given = config.getoption("lake_warehouse")
    if given is None or hasattr(config, "workerinput"):
        return
    folder = Path(given)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise pytest.UsageError(f"--lake-warehouse={given}: it is no empty folder: name one that is not there yet")


def _past_proxies(config: pytest.Config) -> None:
    from laketier_conformance.stores.found import past_proxies

    patch = pytest.MonkeyPatch()
    for name, value in past_proxies().items():
        patch.setenv(name, value)
    config.add_cleanup(patch.undo)


def _past_the_folder(config: pytest.Config) -> None:
    """Its other processes import from where this one does: `python -m` looks into the folder first, and `pytest` does
    not."""
    if not {"", os.getcwd()} & set(sys.path):
        patch = pytest.MonkeyPatch()
        patch.setenv("PYTHONSAFEPATH", "1")
        config.add_cleanup(patch.undo)


def _endpoint(config: pytest.Config) -> None:
    given = config.getoption("lake_s3_endpoint")
    if given is None:
        return
    if not str(given).startswith(("http://", "https://")):
        raise pytest.UsageError(f"{S3_ENDPOINT}={given}: write http:// or https:// before it")
    parts = urlsplit(str(given))
    if parts.username is not None or parts.password is not None:
        raise pytest.UsageError(
            f"{S3_ENDPOINT}: no user belongs into the URL, as the report tells it: its keys are variables"
        )
    if parts.path.strip("/") or parts.query or parts.fragment or not parts.hostname:
        raise pytest.UsageError(f"{S3_ENDPOINT}={given}: name a host and a port alone, as in http://127.0.0.1:9000")
    if os.environ.get("AWS_SESSION_TOKEN"):
        raise pytest.UsageError(f"{S3_ENDPOINT}: the suite takes no keys with a session: unset AWS_SESSION_TOKEN")
    missing = [name for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if not os.environ.get(name)]
    if missing:
        raise pytest.UsageError(f"{S3_ENDPOINT}: set {' and '.join(missing)} in the environment")


def _options(config: pytest.Config) -> tuple[str, ...]:
    """What a test was run with, and has to be run with again."""
    schedules, steps = config.getoption("lake_schedules"), config.getoption("lake_steps")
    given = [] if schedules == SCHEDULES else [f"--lake-schedules={schedules}"]
    given += [] if steps == STEPS else [f"--lake-steps={steps}"]
    series = config.getoption("lake_series")
    given += [f"--lake-series={len(series)}" if len(series) != 1 else f"--lake-series=@{series[0]}"] if series else []
    commits = config.getoption("lake_commits")
    lanes, kept = config.getoption("lake_lanes"), config.getoption("lake_warehouse")
    given += [] if lanes == ",".join(LANES) else [f"--lake-lanes={lanes}"]
    given += [] if kept is None else [f"--lake-warehouse={Path(kept).absolute()}"]
    endpoint = config.getoption("lake_s3_endpoint")
    given += [] if endpoint is None else [f"{S3_ENDPOINT}={endpoint}"]
    given += [] if commits == COMMITS else [f"--lake-commits={commits}"]
    turns = config.getoption("lake_by_turns")
    given += [f"--lake-by-turns={turns}"] if turns else []
    return (*given, f"--lake-seed={config.getoption('lake_seed')}")


def _lanes(config: pytest.Config) -> tuple[str, ...]:
    chosen = tuple(lane.strip() for lane in str(config.getoption("lake_lanes")).split(",") if lane.strip())
    unknown = [lane for lane in chosen if lane not in LANES]
    if unknown or not chosen:
        raise pytest.UsageError(f"--lake-lanes: {unknown or 'none'}; there are {', '.join(LANES)}")
    return chosen
