"""`laketier serve` in this process: what it leaves behind."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier.cli.serve import serve
from laketier.spi import ConfigError
from laketier_verification.lines import LinesTable


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _described(folder: Path) -> Path:
    LinesTable(folder / "logs", "t").create().append(1, 2)
    document = {
        "name": "tests",
        "state": f"sqlite:///{folder}/state.db",
        "sources": {"src": {"type": "lines", "options": {"path": str(folder / "logs")}}},
        "defaults": {"sink": {"lake.format": "localfile", "lake.warehouse": str(folder / "lake")}},
        "tables": [{"source": "src"}],
    }
    file = folder / "service.yaml"
    file.write_text(json.dumps(document))
    return file


def _serve(file: Path) -> None:
    serve(file, engine="local", until_idle=True, http=None, http_token_file=None, log_format="text")


def test_no_thread_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(threading.enumerate())
    _serve(_described(tmp_path))
    assert "is done" in capsys.readouterr().err
    assert [each.name for each in threading.enumerate() if each not in before] == []


def test_a_service_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"service\.yaml"):
        _serve(tmp_path / "service.yaml")
