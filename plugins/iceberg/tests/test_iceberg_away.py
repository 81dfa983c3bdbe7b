"""Catalogs that are away as a process first asks for them: they may answer later, and no table stops for good."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from laketier.service.schedule import is_retryable
from laketier.spi import ConfigError, Passthrough, StorageError
from laketier_iceberg import rest
from laketier_iceberg.connection import CatalogSettings, connect

SECRET = "hunter2-very-secret"


def _settings(**properties: str) -> CatalogSettings:
    return CatalogSettings("far", "s3://bucket/lake", False, Passthrough(properties))


@contextmanager
def _answers(status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"error": {"message": "of the server", "type": "Some", "code": %d}}' % status
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.fixture
def silent() -> Iterator[str]:
    """Takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _is_away(settings: CatalogSettings) -> str:
    with pytest.raises(StorageError) as caught:
        connect(settings)
    assert is_retryable(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", [{"type": "rest"}, {}], ids=["named", "by its address"])
def test_a_rest_catalog_that_is_away(closed: int, kind: dict[str, str]) -> None:
    told = _is_away(_settings(uri=f"http://127.0.0.1:{closed}", token=SECRET, **kind))
    assert "compare its address" in told


def test_a_database_that_is_away(closed: int) -> None:
    told = _is_away(_settings(type="sql", uri=f"postgresql+psycopg://u:{SECRET}@127.0.0.1:{closed}/db"))
    assert "compare its address and user" in told


def test_a_rest_catalog_that_never_answers(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "ANSWER_SECONDS", 0.2)
    assert "timed out" in _is_away(_settings(type="rest", uri=silent))


def test_so_does_one_that_gives_out_tokens(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked before anything else."""
    monkeypatch.setattr(rest, "ANSWER_SECONDS", 0.2)
    given = {"credential": f"u:{SECRET}", "oauth2-server-uri": f"{silent}/tokens"}
    assert "timed out" in _is_away(_settings(type="rest", uri=silent, **given))


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_rest_catalog_that_can_not_answer_now(status: int) -> None:
    with _answers(status) as uri:
        _is_away(_settings(type="rest", uri=uri))


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_only_a_person_can_mend(status: int) -> None:
    with _answers(status) as uri, pytest.raises(ConfigError, match="can't be opened") as caught:
        connect(_settings(type="rest", uri=uri))
    assert not is_retryable(caught.value)


def test_an_address_that_is_none() -> None:
    with pytest.raises(ConfigError, match="can't be opened"):
        connect(_settings(type="rest", uri="htp://127.0.0.1"))


def test_what_pyiceberg_itself_knows_of_a_catalog(closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__FAR__URI", f"http://127.0.0.1:{closed}")
    assert f"port={closed}" in _is_away(_settings(type="rest"))


def test_one_that_never_answers_holds_up_no_other(closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "ANSWER_SECONDS", 30.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        waits = threading.Thread(target=_is_away, args=[_settings(type="rest", uri=uri)], daemon=True)
        waits.start()
        asked, _ = server.accept()  # so it is in the midst of it
        _is_away(_settings(type="rest", uri=f"http://127.0.0.1:{closed}"))
        assert waits.is_alive()
        asked.close()
        waits.join()
