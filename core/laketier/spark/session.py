"""A local Spark session for the command line and for examples."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from laketier.spi import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA = 17
_WORKER_PYTHON = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def builder(*, app_name: str = "laketier", master: str | None = None) -> SparkSession.Builder:
    """A session builder for this machine: quiet, on all cores, with this very interpreter for its workers (Spark would
    otherwise take whatever ``python3`` the PATH holds), and with the Arrow setting that this session's jobs need.

    Raises `ConfigError` when pyspark or Java is missing, or Java is too old. ``SPARK_MASTER`` and Spark's own
    configuration files still apply; call ``.config`` on the result for more.
    """
    require_pyspark()
    require_java()
    for variable in _WORKER_PYTHON:
        os.environ.setdefault(variable, sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    from laketier.spark.arrow_batches import MAX_BYTES, UNBOUNDED

    return (
        SparkSession.builder.appName(app_name)
        .master(master or os.environ.get("SPARK_MASTER", "local[*]"))
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", 1000)
        .config(MAX_BYTES, UNBOUNDED)
    )


def get_or_create(*, app_name: str = "laketier", master: str | None = None, log_level: str = "ERROR") -> SparkSession:
    """The session of this process: the one that runs already, or a new one from `builder`."""
    from_here = builder(app_name=app_name, master=master)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    session = running or from_here.getOrCreate()
    if running is None:
        session.sparkContext.setLogLevel(log_level)
    return session


def require_pyspark() -> None:
    """Raises `ConfigError` when pyspark can't be imported."""
    try:
        importlib.import_module("pyspark.sql")
    except ImportError as error:
        raise ConfigError(
            "Spark is not installed in this environment",
            where=sys.executable,
            why=str(error),
            fix="Install laketier's extra `spark`.",
        ) from error


def require_java() -> None:
    """Raises `ConfigError` when there is no Java, or one that Spark 4 can't run on."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    fix = f"Install Java {_OLDEST_JAVA} or 21 (for example openjdk-{_OLDEST_JAVA}-jre-headless), or set JAVA_HOME."
    if java is None or not os.access(java, os.X_OK):
        raise ConfigError("Spark needs Java, and none was found", where=home and f"JAVA_HOME={home}", fix=fix)
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    if match is None:
        raise ConfigError("Java does not say its version", where=java, why=answer.stderr.strip()[:200], fix=fix)
    if int(match[1]) < _OLDEST_JAVA:
        raise ConfigError(f"Spark needs Java {_OLDEST_JAVA} or newer, and this is {match[1]}", where=java, fix=fix)
