"""Commands whose Spark dies: they end, and say so."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from laketier_verification.lines import LinesTable

pytestmark = [pytest.mark.deep, pytest.mark.spark]

PATIENCE_SECONDS = 120


def test_a_worker_whose_spark_died_ends(tmp_path: Path) -> None:
    """It would take tables from other workers for ever, and fail each of them."""
    lines = LinesTable(tmp_path / "logs", "a").create()
    lines.append(1)
    sink = {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "lake")}
    document = {
        "state": f"sqlite:///{tmp_path}/state.db",
        "sources": {"lines": {"type": "lines", "options": {"path": str(tmp_path / "logs")}}},
        "defaults": {"sink": sink, "freshness": "1s"},
        "tables": [{"source": "lines"}],
    }
    said = ended(tmp_path, "serve", document, lambda said: " serves" in said, lambda: lines.append(2))
    assert "EngineLost Spark is gone" in said


def test_a_job_whose_spark_died_ends_with_what_to_do(tmp_path: Path) -> None:
    sink = {
        "lake.format": "localfile",
        "lake.warehouse": str(tmp_path / "lake"),
        "lake.table": "db.t",
        "lake.pipeline": "p",
    }
    stream = {"checkpoint": str(tmp_path / "checkpoint"), "trigger": {"processing-time": "1 second"}}
    document = {"source": {"rate": {"rows-per-batch": 1}}, "sink": sink, "stream": stream}
    said = ended(tmp_path, "run", document, lambda said: "epoch=0" in said, lambda: None)
    assert "StorageError db.t: Spark is gone" in said
    assert "did not expect" not in said


def ended(
    folder: Path, command: str, document: dict[str, Any], is_up: Callable[[str], bool], more: Callable[[], object]
) -> str:
    """What a command said that was left by its JVM, and then got ``more`` to do."""
    file, log = folder / "file.yaml", folder / "log"
    file.write_text(yaml.safe_dump(document))
    program = [sys.executable, "-c", "from laketier.cli.app import main; main()", command, str(file)]
    with log.open("wb") as out:
        process = psutil.Popen(program, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_up(log.read_text()):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        (jvm,) = [each for each in process.children(recursive=True) if each.name() == "java"]
        jvm.kill()
        more()
        assert process.wait(PATIENCE_SECONDS) == 1, log.read_text()
    finally:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return log.read_text()
