"""``laketier serve`` with its page: a worker tiers topics of a broker, and what it shows is what happened."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

import pytest
import yaml
from confluent_kafka import Producer

from laketier_kafka.mock_broker import KafkaBroker

SECRET = "correct-horse-battery"
TOKEN = "0123456789abcdef0123"


@dataclass
class Serving:
    """A worker with a page. ``lines``: what it logged so far."""

    process: subprocess.Popen[str]
    lines: list[dict[str, Any]]

    def read_until(self, wanted: str) -> dict[str, Any]:
        """The next log line whose message matches."""
        assert self.process.stderr is not None
        for text in self.process.stderr:
            line: dict[str, Any] = json.loads(text)
            self.lines.append(line)
            if re.search(wanted, line["message"]):
                return line
        raise AssertionError(f"it ended without {wanted!r}: {self.lines}")


def _describe(folder: Path, bootstrap: str) -> Path:
    client = {"sasl.password": SECRET, "ssl.key.password": SECRET, "sasl.username": "me"}
    document = {
        "name": "shop",
        "state": f"sqlite:///{folder}/state.db",
        "sources": {"kafka": {"type": "kafka", "options": {"bootstrap-servers": bootstrap, "client": client}}},
        "defaults": {
            "freshness": "1 h",
            "sink": {"lake.format": "localfile", "lake.warehouse": str(folder / "lake")},
            "read": {"value-format": "json", "columns": {"id": "int64"}},
        },
        "tables": [
            {"source": "kafka", "include": ["good"], "on-bad-record": "dead-letter"},
            {"source": "kafka", "include": ["bad"]},
        ],
    }
    path = folder / "service.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def _serve(file: Path, *more: str, flags: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    environment = {**os.environ, "LAKETIER_HTTP_TOKEN": TOKEN}
    return subprocess.Popen(
        [sys.executable, "-c", "from laketier.cli.app import main; main()", *flags, "serve", str(file), "--engine",
         "local", "--log-format", "json", *more],
        stderr=subprocess.PIPE, env=environment, text=True,
    )  # fmt: skip


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with KafkaBroker() as broker:
        for topic in ("good", "bad"):
            broker.create_topic(topic)
            producer = Producer({"bootstrap.servers": broker.bootstrap})
            for value in (b'{"id": 1}', b"{<script>no json", b'{"id": 2}'):
                producer.produce(topic, value, partition=0)
            assert producer.flush(60) == 0
        process = _serve(_describe(tmp_path, broker.bootstrap), "--http", "127.0.0.1:0", flags=("-v",))
        try:
            yield Serving(process, [])
        finally:
            process.kill()
            process.wait()
            stderr: TextIO | None = process.stderr
            assert stderr is not None
            stderr.close()


def _get(url: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", path, headers={"authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_worker_shows_what_it_does(serving: Serving, tmp_path: Path) -> None:
    url = serving.read_until("http://").get("message", "").rpartition(" ")[2]
    ended = {}
    while len(ended) < 2:
        line = serving.read_until("2 rows, 1 files|the round failed")
        ended[line["table"]] = line
    assert (ended["kafka.good"]["epoch"], ended["kafka.good"]["fence"]) == (0, 1)
    assert "error" not in ended["kafka.bad"], "what was foreseen has no traceback"

    # A round is logged before its end is stored: ask for the state until it says so.
    documents: list[Any] = [{"rounds": 0, "failures": 0}]
    while not all(each["rounds"] or each["failures"] for each in documents):
        documents = json.loads(_get(url, "/api/tables")[1])
    bad, good = documents
    assert (good["table"], good["rows"], good["state"]) == ("kafka.good", 2, "SCHEDULED")
    assert (bad["table"], bad["rows"], bad["failures"]) == ("kafka.bad", 0, 1)

    pages = {path: _get(url, path) for path in ("/", "/metrics", "/healthz", "/tables/1", "/tables/2")}
    pages |= {f"/tables/{n}/dead-letters": _get(url, f"/tables/{n}/dead-letters") for n in (1, 2)}
    shown = next(text for path, (_, text) in pages.items() if path.endswith("dead-letters") and "good" in text)
    assert shown.count('<td data-head="offset" class="number">1</td>') == 1
    assert shown.count("<tr>") == 2
    assert sorted(status for status, _ in pages.values()) == [200] * 6 + [404], "bad has no dead letters"
    assert 'laketier_table_rows_total{service="shop",table="kafka.good"} 2.0' in pages["/metrics"][1]
    assert 'laketier_worker_rounds_total{ending="tiered"} 1.0' in pages["/metrics"][1]
    assert "laketier_workers" in pages["/metrics"][1]
    for _, text in pages.values():
        assert SECRET not in text
        assert TOKEN not in text
        assert "<script>no" not in text

    serving.process.send_signal(signal.SIGTERM)
    serving.read_until("is done$")
    assert serving.process.wait(60) == 0
    for line in serving.lines:
        assert {"time", "level", "logger", "worker", "message"} <= line.keys()
        assert SECRET not in str(line)
    with pytest.raises(OSError, match="refused"):
        _get(url, "/")
    # The state database, the lake, the dead letters and what lies beside them.
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "service.yaml"]
    assert {"state.db", "table.json"} <= {path.name for path in kept}
    holding = [path for path in kept if any(word.encode() in path.read_bytes() for word in (SECRET, TOKEN))]
    assert not holding


def test_a_wrong_address_is_said_before_anything_is_opened(tmp_path: Path) -> None:
    file = _describe(tmp_path, "127.0.0.1:1")
    for address in ("nonsense", "256.1.1.1:80"):
        process = _serve(file, "--http", address)
        _, told = process.communicate(timeout=120)
        assert process.returncode == 2
        assert "ConfigError" in told
        assert "Traceback" not in told
    assert not (tmp_path / "state.db").exists()
