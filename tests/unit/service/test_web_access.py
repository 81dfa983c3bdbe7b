"""Who the page lets in, and where it listens."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from laketier.config.origins import HTTP_TOKEN, from_environment
from laketier.service.state import StateStore
from laketier.service.web.access import Address, read_token
from laketier.service.web.server import PageServer
from laketier.spi import ConfigError, Secret
from service_page import Page, served
from state_tables import table

TOKEN = "0123456789abcdef"
CLOSED = ("/", "/api/tables", "/metrics", "/tables/1", "/tables/1/dead-letters", "/nowhere")


@pytest.fixture
def guarded(store: StateStore) -> Iterator[Page]:
    store.register([table("orders")])
    with served(store, token=Secret(TOKEN)) as made:
        yield made


@pytest.mark.parametrize("path", CLOSED)
def test_without_the_token_nothing_is_shown(guarded: Page, path: str) -> None:
    for headers in (
        {},
        {"authorization": "Bearer 0123456789abcdeX"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer \xff\xfe"},
        {"cookie": f"laketier={TOKEN}"},
        {"cookie": "laketier="},
    ):
        answer = guarded.get(path, **headers)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "orders" not in answer.text
    asked = guarded.get(path, accept="text/html")
    assert (asked.status, asked.headers["location"]) == (303, "/login")


def test_the_token_as_a_bearer(guarded: Page) -> None:
    for path in ("/", "/api/tables", "/metrics"):
        assert "orders" in guarded.get(path, authorization=f"Bearer {TOKEN}").text


def test_whether_it_lives_may_be_asked_by_anybody(guarded: Page) -> None:
    assert guarded.get("/healthz").text == "ok\n"
    assert guarded.get("/static/style.css").status == 200


def test_the_form_gives_a_cookie_that_does_not_tell_the_token(guarded: Page) -> None:
    assert 'type="password"' in guarded.get("/login").text
    wrong = guarded.get("/login", method="POST", body=urlencode({"token": "wrong"}))
    assert wrong.status == 403
    assert "set-cookie" not in wrong.headers
    right = guarded.get("/login", method="POST", body=urlencode({"token": TOKEN}))
    assert (right.status, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    shown = guarded.get("/", cookie=cookie.partition(";")[0])
    assert "orders" in shown.text
    assert TOKEN not in shown.text
    assert guarded.get("/login", method="POST", body="token=" + "x" * 10_000).status == 413


def test_a_page_without_a_token_answers_to_names_of_this_machine_alone(store: StateStore) -> None:
    with served(store) as page:
        for name in ("localhost", "127.0.0.1:80", "[::1]:8080", "LOCALHOST:1"):
            assert page.get("/", host=name).status == 200
        for name in ("evil.example", "127.0.0.1.evil.example:80", "10.0.0.1", "[2001:db8::1]:80", ""):
            assert page.get("/", host=name).status == 403


@pytest.mark.parametrize(
    ("text", "host", "port", "url"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, "http://127.0.0.1:8080/"),
        ("8080", "127.0.0.1", 8080, "http://127.0.0.1:8080/"),
        (":0", "127.0.0.1", 0, "http://127.0.0.1:0/"),
        ("[::1]:80", "::1", 80, "http://[::1]:80/"),
        ("localhost:80", "localhost", 80, "http://localhost:80/"),
    ],
)
def test_addresses(text: str, host: str, port: int, url: str) -> None:
    address = Address.parse(text, None)
    assert (address.host, address.port, address.url) == (host, port, url)


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "1:2:3", "::1:80", "host:99999", "a b:80", "a:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        Address.parse(text, None)


@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "example.com:80"])
def test_a_host_that_others_reach_needs_a_token(text: str) -> None:
    with pytest.raises(ConfigError, match="needs a token"):
        Address.parse(text, None)
    assert Address.parse(text, Secret(TOKEN)).port == 80


def test_a_port_that_is_taken_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address.parse(f"127.0.0.1:{taken.getsockname()[1]}", None)
        with pytest.raises(ConfigError, match="can't be listened on, because Address already in use"):
            PageServer(address)
    for host in ("nowhere.invalid", "a" * 70):
        with pytest.raises(ConfigError, match="can't be listened on"):
            PageServer(Address.parse(f"{host}:80", Secret(TOKEN)))


def test_a_page_that_breaks_takes_nothing_with_it(caplog: pytest.LogCaptureFixture) -> None:
    server = PageServer(Address.parse("127.0.0.1:0", None))
    server._socket.close()
    server.start(_no_app)
    assert server._thread is not None
    server._thread.join()
    server.close()
    assert "the web page ended; tiering continues" in caplog.text


async def _no_app(scope: object, receive: object, send: object) -> None:
    raise AssertionError("nobody can reach this")


def test_where_the_token_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HTTP_TOKEN, raising=False)
    assert read_token(None) is None
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    token = read_token(file)
    assert token == Secret(TOKEN)
    assert TOKEN not in repr(Address("127.0.0.1", 1, token))
    monkeypatch.setenv(HTTP_TOKEN, TOKEN)
    assert read_token(None) == Secret(TOKEN)
    assert from_environment({HTTP_TOKEN: TOKEN}) == {}, "it is no key of a lake"
    with pytest.raises(ConfigError, match="both set"):
        read_token(file)


@pytest.mark.parametrize("bad", ["", "short", "with a space in it, long", "ümlaut-ümlaut-ümlaut"])
def test_tokens_that_are_none(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "token"
    file.write_text(bad, encoding="utf-8")
    with pytest.raises(ConfigError, match="16 or more ASCII") as told:
        read_token(file)
    assert not bad or bad not in str(told.value)
    with pytest.raises(ConfigError, match="can't be read"):
        read_token(tmp_path / "missing")
