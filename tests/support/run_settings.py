"""The settings of each run of tests, whichever folder it is of."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version

import hypothesis
import pytest

import class_archive
from laketier_conformance import frozen


def pytest_configure(config: pytest.Config) -> None:
    """Judge no time. Tell every Spark that tests start, also in processes of their own, that it will not live long.
    And forgive pyspark 4.1 that it leaves the socket open through which `collect` answers. Later ones close it."""
    frozen.freeze(config)
    # How long an example takes says how busy the machine is.
    hypothesis.settings.register_profile(
        "laketier", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("laketier")
    # What is kept of tables goes into a folder of this run, which its processes share.
    if "LAKETIER_CACHE_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="laketier-tests-cache-")
        os.environ["LAKETIER_CACHE_DIR"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ.setdefault("SPARK_SUBMIT_OPTS", class_archive.options())
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(class_archive.SHORT_LIVED))
    try:
        old = version("pyspark").startswith("4.1.")
    except PackageNotFoundError:
        return
    if old:
        config.addinivalue_line("filterwarnings", r"ignore:unclosed <socket.socket .*127\.0\.0\.1:ResourceWarning")
