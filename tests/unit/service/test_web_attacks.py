"""The page under attack, over real sockets."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import quote, urlsplit

import pytest

from laketier.service.looked import SharedLook
from laketier.service.state import StateStore
from laketier.service.web.attempts import FORGOTTEN_SECONDS, FREE, MOST_ADDRESSES, Attempts
from laketier.service.web.patience import PatientProtocol, patient
from laketier.spi import Secret
from service_page import EVIL, Page, fill, served
from state_tables import Clock, table

TOKEN = "0123456789abcdef"
PATIENCE = 30
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
BODY = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntok"


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE)


def everything(opened: socket.socket) -> bytes:
    """What comes until the other side ends it."""
    found = b""
    with suppress(ConnectionResetError):
        while more := opened.recv(65536):
            found += more
    return found


@contextmanager
def half_sent(url: str, count: int, text: bytes = HEAD) -> Iterator[list[socket.socket]]:
    with ExitStack() as opened:
        found = [opened.enter_context(connected(url)) for _ in range(count)]
        for each in found:
            with suppress(ConnectionError):  # one that was ended since it was made
                each.sendall(text)
        yield found


@pytest.fixture
def page(store: StateStore, clock: Clock) -> Iterator[Page]:
    fill(store, clock)
    with served(store) as made:
        yield made


def hurried() -> type[PatientProtocol]:
    return patient(128, head_seconds=0.5, request_seconds=1.0)


@pytest.mark.parametrize("count", [70, 300])
def test_half_sent_requests_keep_nobody_out(page: Page, count: int) -> None:
    with half_sent(page.url, count):
        for _ in range(3):
            assert page.get("/healthz").text == "ok\n"
            assert "laketier_service_tables" in page.get("/metrics").text
            assert page.health("/healthz").text == "ok\n"
        assert page.get("/").status == 200


def test_half_sent_bodies_keep_nobody_out(store: StateStore, caplog: pytest.LogCaptureFixture) -> None:
    store.register([table("t")])
    bearer = {"authorization": f"Bearer {TOKEN}"}
    with served(store, token=Secret(TOKEN)) as page:
        with half_sent(page.url, 140, BODY):
            for _ in range(3):
                assert page.get("/healthz").text == "ok\n"
                assert page.get("/metrics", **bearer).status == 200
            assert page.get("/", **bearer).status == 200
        assert page.get("/healthz").text == "ok\n"
    with served(store, protocol=hurried, token=Secret(TOKEN)) as page, half_sent(page.url, 1, BODY) as (slow,):
        assert everything(slow) == b""
    with ExitStack() as kept, served(store, token=Secret(TOKEN)) as page:
        kept.enter_context(half_sent(page.url, 5, BODY))
        assert page.get("/healthz").text == "ok\n"
    assert "Traceback" not in caplog.text, "neither when they break off nor when the server ends"


def test_a_request_that_does_not_end_is_ended(store: StateStore) -> None:
    store.register([table("t")])
    protocol = hurried()

    class Later(hurried()):  # type: ignore[misc]
        head_seconds = PATIENCE  # what is answered may take its time

        def on_response_complete(self) -> None:
            self.head_seconds = protocol.head_seconds
            super().on_response_complete()

    with served(store, protocol=lambda: Later, token=Secret(TOKEN)) as page, connected(page.url) as later:
        later.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in later.recv(65536)
        with suppress(ConnectionError):  # it may be ended by now
            later.sendall(b"GET /heal")
        assert b"200 OK" not in everything(later)
    with served(store, protocol=lambda: protocol, token=Secret(TOKEN)) as page:
        with half_sent(page.url, 1) as (slow,):
            assert everything(slow) == b""
        with half_sent(page.url, 1, BODY) as (body,):
            assert b"200 OK" not in everything(body)
        with connected(page.url) as silent:
            assert everything(silent) == b""
        protocol.head_seconds = PATIENCE
        assert page.get("/healthz").text == "ok\n"


def test_a_client_that_does_not_read_is_ended(store: StateStore) -> None:
    store.register([table(f"{'t' * 200}{number}") for number in range(3000)])
    gone = threading.Event()

    class Noted(hurried()):  # type: ignore[misc]
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            gone.set()

    with served(store, protocol=lambda: Noted) as page, connected(page.url) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /api/tables?limit=3000 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4)
        assert gone.wait(PATIENCE), "it holds its connection for ever"


RAW = {
    "a head that is too long": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n", b"400"),
    "a query of a megabyte": (b"GET /?q=" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
    "no request": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
    "two lengths": (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"400"),
    "a bare carriage return": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rInjected: b\r\n\r\n", b"400"),
    "another's name": (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
    "no name": (b"GET / HTTP/1.0\r\n\r\n", b"403"),
    "two names": (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"400"),
    "an address for a path": (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
    "up": (b"GET /static/../../access.py HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
    "up, encoded": (b"GET /static/..%2f..%2faccess.py HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
    "a zero byte": (b"GET /static/style.css%00.py HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
    "no UTF-8": (b"GET /?q=%ff%fe&state=%80 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200"),
    "a socket for the web": (
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n", b"200"
    ),
    "OPTIONS": (b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", b"405"),
    "HEAD": (b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200"),
    "DELETE": (b"DELETE /tables/1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
    "a number that is none": (b"GET /tables/99999999999999999999999999 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
}  # fmt: skip


@pytest.mark.parametrize("name", RAW)
def test_what_is_no_honest_request_gets_an_honest_answer(page: Page, name: str) -> None:
    sent, status = RAW[name]
    if b"Connection:" not in sent:
        sent = sent.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with connected(page.url) as opened:
        with suppress(OSError):  # it was refused before it was all sent
            opened.sendall(sent)
        answer = everything(opened)
    head = answer.partition(b"\r\n\r\n")[0]
    # A reset may overtake the answer to one who still sends.
    assert head.startswith(b"HTTP/1.1 " + status) or (not head and len(sent) > 50_000), head
    assert b"access-control-allow-origin" not in head.lower()
    assert b"class Access" not in answer
    assert page.get("/healthz").text == "ok\n"


def test_requests_in_one_piece_are_answered_in_their_order(page: Page) -> None:
    with connected(page.url) as opened:
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50
                       + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")  # fmt: skip
        assert everything(opened).count(b"200 OK") == 51


def test_what_is_searched_for_is_text(page: Page) -> None:
    answer = page.get(f"/?q={quote(EVIL)}&state={quote(EVIL)}")
    assert EVIL not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert page.get(f"/?q={quote('a%0d%0aSet-Cookie: x=y')}").headers.get("set-cookie") is None
    linked = page.get(f"/api/tables?limit=1&q={quote('<>; a')}")
    assert json.loads(linked.text) == []
    for wrong in (
        "limit=0",
        "limit=x",
        "offset=-1",
        "limit=1e9",
        "offset=99999999999",
        "limit=%D9%A1",
        f"q={'a' * 201}",
    ):
        assert page.get(f"/api/tables?{wrong}").status == 400


def test_many_tables_come_a_page_at_a_time(store: StateStore, clock: Clock) -> None:
    fill(store, clock)
    every = [table(f"t{number:03d}") for number in range(250)]
    store.register(every)
    with served(store, most=20) as page:
        first = page.get("/?q=t0")
        assert first.text.count("<tr>") == 101
        assert "1 to 100 of 100" not in first.text
        assert page.get("/").text.count("<tr>") == 101
        assert "101 to 200 of" in page.get("/?offset=100").text
        assert "t199" in page.get("/?q=T199").text
        answer = page.get("/api/tables?limit=100&offset=200&q=s.t")
        assert len(json.loads(answer.text)) == 50
        assert answer.headers["x-total-count"] == "250"
        assert "link" not in answer.headers
        assert 'offset=100&limit=100>; rel="next"' in page.get("/api/tables?limit=100&q=s.t").headers["link"]
        scraped = page.get("/metrics").text
        assert scraped.count("laketier_table_fresh{") == 20
        assert 'laketier_service_tables{service="default",state="NEW"} 250.0' in scraped
        assert page.health("/metrics").text.count("laketier_table_fresh{") == 20
        assert page.health("/").status == page.health("/api/tables").status == 404


def test_requests_at_a_time_ask_once(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.register([table("t")])
    asked = []
    snapshot = store.snapshot
    monkeypatch.setattr(store, "snapshot", lambda: (asked.append(1), snapshot())[1])
    now = [100.0]
    look = SharedLook(store, 2, clock=lambda: now[0])
    threads = [threading.Thread(target=look.now) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(asked) == 1
    now[0] += 2
    look.now()
    assert len(asked) == 2


def test_wrong_tokens_are_slowed_and_logged(store: StateStore, caplog: pytest.LogCaptureFixture) -> None:
    store.register([table("t")])
    with served(store, token=Secret(TOKEN)) as page, caplog.at_level(logging.WARNING):
        cookie = page.get("/login", method="POST", body=f"token={TOKEN}").headers["set-cookie"].partition(";")[0]
        wrong = [page.get("/login", method="POST", body="token=hunter2hunter2hu") for _ in range(FREE)]
        assert {each.status for each in wrong} == {403}
        slowed = page.get("/login", method="POST", body="token=hunter2hunter2hu")
        assert slowed.status == 429
        assert int(slowed.headers["retry-after"]) >= 1
        assert page.get("/api/tables", authorization="Bearer hunter2hunter2hu").status == 429
        assert page.get("/api/tables", authorization=f"Bearer {TOKEN}").status == 200, "behind a proxy with who guesses"
        assert page.get("/login", method="POST", body=f"token={TOKEN}").status == 303
        assert page.get("/api/tables", authorization="Bearer hunter2hunter2hu").status == 429, "and it forgets nothing"
        assert page.get("/api/tables", cookie=cookie).status == 200, "who is in stays in"
        assert page.get("/healthz").status == 200
        assert page.health("/metrics", authorization=f"Bearer {TOKEN}").status == 200, "a listener of its own"
        assert page.health("/metrics").status == 401
    lines = [each.getMessage() for each in caplog.records if "wrong token" in each.getMessage()]
    assert len(lines) == FREE
    assert "from 127.0.0.1 at '/login', the 5. from there" in lines[-1]
    assert "hunter2" not in caplog.text


def test_attempts_are_bounded_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    attempts = Attempts(clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        attempts.failed("::1", "/\x1b[2J\nforged\u202e" + "x" * 1000)
        for number in range(5000):
            attempts.failed(f"10.1.{number // 256}.{number % 256}", "/")
    assert len(attempts._known) == MOST_ADDRESSES
    (line,) = [each.getMessage() for each in caplog.records if "::1" in each.getMessage()]
    assert line.isprintable()
    assert len(line) < 1000
    for number in range(20):
        attempts.failed(f"2001:db8::{number:x}", "/")
    assert attempts.wait("2001:db8::ffff") == 60, "one /64 is one address"
    assert attempts.wait("2001:db8:0:1::1") == 0
    now[0] += 60
    assert attempts.wait("2001:db8::1") == 0
    now[0] += FORGOTTEN_SECONDS
    attempts.failed("2001:db8::1", "/")
    assert attempts.wait("2001:db8::1") == 0


def test_many_connections_at_a_time(page: Page) -> None:
    began = time.process_time()
    with ExitStack() as opened:
        for _ in range(400):
            opened.enter_context(connected(page.url))
        assert page.get("/healthz").text == "ok\n"
    assert time.process_time() - began < 20
