"""`laketier serve` in this process: what it leaves behind."""

from __future__ import annotations

import io
import json
import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from laketier.cli.serve import _logged, serve
from laketier.service.logs import JsonLines
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


def test_what_python_writes_by_itself_is_logged_without_secrets() -> None:
    def fails() -> None:
        raise RuntimeError("postgresql://u:cAnArYs3cr3t@h/d does not answer")

    before = threading.excepthook
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonLines("w"))
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(), _logged():
            warnings.simplefilter("always")
            thread = threading.Thread(target=fails, name="t-1")
            thread.start()
            thread.join()
            warnings.warn("token=cAnArYs3cr3t is old", stacklevel=1)
    finally:
        logging.getLogger().removeHandler(handler)
    failed, warned = [json.loads(line) for line in output.getvalue().splitlines()]
    assert failed["message"] == "t-1 ended with an error"
    assert "postgresql://u:***@h/d does not answer" in failed["error"]
    assert "token=*** is old" in warned["message"]
    assert "cAnArYs3cr3t" not in output.getvalue()
    assert threading.excepthook is before
