"""What every test may use. It imports no Spark, so tests without it run where there is no Java."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from depth import cases_by_turns, formats_by_turns
from run_settings import pytest_configure

__all__ = ["pytest_configure"]

# Tests of formats that this environment has not. `make test-third-party` runs them.
collect_ignore_glob = ["third_party/*/tests/*"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what asks for the session, so that `-m "not spark"` can't start a JVM by accident."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    formats_by_turns(items)
    cases_by_turns(items)
    if config.pluginmanager.hasplugin("xdist"):
        from spreading import order

        order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together what shares something costly."""
    from spreading import scheduler

    return scheduler(config, log)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say where the time went, where it is written down."""
    file = config.getoption("xmlpath", None)
    if file and not hasattr(config, "workerinput"):
        from times import tell

        tell(Path(file).resolve().parent, terminalreporter)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark for the whole run; starting one takes seconds. Leave its settings as you found them."""
    # Executors would otherwise start whatever `python3` the PATH holds, without our packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    from laketier_conformance import spark_daemon

    folder = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("laketier tests")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config(map=spark_daemon.settings())
    )
    with warnings.catch_warnings():
        # Lance, once loaded, warns of every fork. This one becomes the JVM at once.
        warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
