"""The conformance suite on Iceberg whose catalog is behind Apache Iceberg's own REST servlet, by its Java library.

Runs where REST_LIBS names a folder with the jars of tests/interop/rest/pom.xml.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance_runs import suite_in

REST_LIBS = os.environ.get("REST_LIBS", "/nowhere")
HERE = Path(__file__).parent / "rest"

pytestmark = pytest.mark.skipif(
    not list(Path(REST_LIBS).glob("iceberg-core-*-tests.jar")),
    reason="REST_LIBS names no folder with Iceberg's servlet",
)

NAME = "iceberg-on-apaches-rest"
FILES = [
    f"test_{name}.py"
    for name in (
        *("catalog", "properties", "reshape", "layout_changes", "neighbours", "dropped", "versions", "history"),
        *("rounds", "decision_table", "state", "stale_states", "old_results", "pipelines", "unknown_outcomes"),
        *("races", "task_numbers", "isolation", "lives", "kills", "overwrite", "overwrite_partitions"),
        *("upsert_keys", "upsert_races", "upsert_kills", "orphans", "discard", "time_travel", "types", "filters"),
    )
]
"""Whatever the server takes part in. Where it keeps its tables is its own affair, so nothing is asked of places."""
NOT_ASKED = {
    # By the name of the format, which is another one here.
    "test_upsert_keys.py::test_buckets",
    # Such a server has no request for a table's version but the one that loads it.
    "test_versions.py::test_a_format_that_names_states_names_each",
}


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """The port of a server that makes catalogs, and ends with this process."""
    command = ["java", "-Xmx1g", "-cp", f"{REST_LIBS}/*", str(HERE / "Catalogs.java")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        assert running.stdout is not None
        port = running.stdout.readline().strip()
        assert port, f"the server ended with {running.wait()}"
        yield int(port)
        running.kill()


@pytest.mark.timeout(3600)
def test_iceberg_behind_apaches_rest_servlet(server: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEBERG_REST_PORT", str(server))
    module = NAME.replace("-", "_")
    run = suite_in(tmp_path)(NAME, FILES, offers={NAME: module}, harnesses={NAME: f"{module}:Harness"}, paths=[HERE])
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    passed = [test for test, outcome in outcomes.items() if outcome == "passed"]
    assert len(passed) > 300, run.output
    failed = {test for test, outcome in outcomes.items() if outcome == "failed"}
    assert failed <= NOT_ASKED, run.output
