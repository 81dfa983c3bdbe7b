"""A session of Spark for the command line and for examples."""

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
_REMOTE = "SPARK_REMOTE"
_MASTER = "SPARK_MASTER"


def connect_server() -> str | None:
    """The address of the server of Spark Connect that `SPARK_REMOTE` names, without parameters and users, which may be
    secrets. None where the session is this process's own."""
    remote = os.environ.get(_REMOTE, "")
    if not remote or remote.startswith("local"):
        return None
    return re.split("[/;?#]", remote.removeprefix("sc://"), maxsplit=1)[0].rpartition("@")[2]


def builder(*, app_name: str = "laketier", master: str | None = None) -> SparkSession.Builder:
    """A session builder for this machine. Call ``.config`` on the result to set more, or to set these otherwise:

    - the application's name;
    - the master: ``master``, else the variable ``SPARK_MASTER``, else ``local[*]``;
    - ``spark.sql.session.timeZone``: UTC;
    - ``spark.sql.streaming.numRecentProgressUpdates``: 1000, so that the totals of a stream are complete;
    - ``spark.sql.execution.arrow.maxBytesPerBatch``: 2147483647, so that Spark measures no batch again for every row.

    It also sets three environment variables, unless they are set: ``PYSPARK_PYTHON`` and ``PYSPARK_DRIVER_PYTHON`` to
    this interpreter, as Spark would take whatever ``python3`` the PATH holds, and ``SPARK_LOCAL_IP`` to 127.0.0.1. All
    else is Spark's own default, or what its configuration files say: its UI and its progress bar, too.

    Where the variable ``SPARK_REMOTE`` is set, the session is one of Spark Connect at that server, and has no master.

    Raises:
        ConfigError: pyspark or Java is missing, or Java is too old; or both a master and a server of Spark Connect are
            asked for.
    """
    require_pyspark()
    remote = os.environ.get(_REMOTE, "")
    if connect_server() is None:  # of a local remote Spark starts the server here
        require_java()
    for variable in _WORKER_PYTHON:
        os.environ.setdefault(variable, sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    from laketier.spark.arrow_batches import MAX_BYTES, UNBOUNDED

    named = SparkSession.builder.appName(app_name)
    if not remote:
        named = named.master(master or os.environ.get(_MASTER, "local[*]"))
    elif asked := master or os.environ.get(_MASTER):
        raise ConfigError(
            "Spark can't have a master and be at a server of Spark Connect",
            where=f"{_REMOTE}={remote}",
            why=f"the master {asked} is asked for, too",
            fix=f"Unset {_REMOTE}, or {_MASTER}.",
        )
    return (
        named.config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", 1000)
        .config(MAX_BYTES, UNBOUNDED)
    )


def get_or_create(*, app_name: str = "laketier", master: str | None = None, log_level: str = "ERROR") -> SparkSession:
    """The session of this process.

    One that runs already is returned as it is: nothing of it, of its log and of the environment changes, and the
    arguments have no effect. Else a new one is made by `builder`, which says what it sets, and its log gets the level
    ``log_level``. The log of a server of Spark Connect stays as it is.

    In a thread of yours, call this before you write by ``format("laketier")``: where no session is active, Spark finds
    no Python data source to write to.

    Raises:
        ConfigError: pyspark, Java or the client of Spark Connect is missing, or Java is too old.
    """
    require_pyspark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    from laketier.spark.classic import is_connect
    from laketier.spark.threads import make_known

    try:
        session = SparkSession.active()
    except PySparkRuntimeError:  # none is active, and there is no default
        named = builder(app_name=app_name, master=master)
        try:
            session = named.getOrCreate()
        except ImportError as error:
            if not os.environ.get(_REMOTE):
                raise
            raise ConfigError(
                "the client of Spark Connect is not installed",
                where=f"{_REMOTE}={os.environ[_REMOTE]}",
                why=str(error),
                fix=f"Install `pyspark[connect]`, or unset {_REMOTE}.",
            ) from error
    else:
        make_known(session)
        return session
    if not is_connect(session):  # a server's log is its own
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
