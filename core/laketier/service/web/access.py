"""Access to the page: its token and its address."""

from __future__ import annotations

import hmac
import ipaddress
import math
import os
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from laketier.config.origins import HTTP_TOKEN
from laketier.service.web.attempts import Attempts
from laketier.spi import ConfigError, Secret

COOKIE = "laketier"
_OPEN = ("/healthz", "/login", "/static/")
_SHORTEST = 16
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]/\s]*):)?(?P<port>\d{1,5})\Z")
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True)
class Address:
    """Where the page listens. ``port`` 0: any that is free. ``token`` is needed where others than this machine can
    reach it."""

    host: str
    port: int
    token: Secret | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        """For people."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    @classmethod
    def parse(cls, text: str, token: Secret | None, option: str = "--http") -> Address:
        """``HOST:PORT``, or a port of 127.0.0.1. Raises `ConfigError`, also for a host without a token that others can
        reach."""
        match = _ADDRESS.match(text)
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"{text!r} is not HOST:PORT", where=option, fix=f"For example {option} 127.0.0.1:8080.")
        host = (match["host"] or "127.0.0.1").strip("[]")
        if token is None and not is_loopback(host):
            raise ConfigError(
                f"{option} {text} needs a token",
                why="others than this machine can reach it",
                fix=f"Give --http-token-file, or set {HTTP_TOKEN}; or listen on 127.0.0.1.",
            )
        return cls(host, int(match["port"]), token)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, as far as the name alone can tell."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_token(file: Path | None) -> Secret | None:
    """The token: a file's content, or the environment's. Raises `ConfigError`, whose message never has it."""
    given = os.environ.get(HTTP_TOKEN)
    if file is None and given is None:
        return None
    if file is not None and given is not None:
        raise ConfigError(f"--http-token-file and {HTTP_TOKEN} are both set", fix="Keep one of them.")
    where = HTTP_TOKEN
    if file is not None:
        where = str(file)
        try:
            given = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError("the token can't be read", where=where, why=type(error).__name__) from None
    token = given or ""
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"the token must be {_SHORTEST} or more ASCII characters without spaces",
            where=where,
            fix="For example what `openssl rand -hex 24` prints.",
        )
    return Secret(token)


class Access:
    """Lets in who shows the token, as a bearer or in the cookie of the login form. Without a token, only requests that
    name this machine: a page elsewhere could otherwise read this one through a name that it makes point here."""

    def __init__(self, app: ASGIApp, token: Secret | None, attempts: Attempts) -> None:
        self._app = app
        self._token = token
        self._attempts = attempts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refused = self._refused(Request(scope))
        await (refused or self._app)(scope, receive, send_with_headers)

    def _refused(self, request: Request) -> Response | None:
        if self._token is None:
            if is_loopback(_name(request.headers.get("host", ""))):
                return None
            return PlainTextResponse("This page answers only to a name of this machine itself.", 403)
        if request.url.path.startswith(_OPEN) or same(request.cookies.get(COOKIE, ""), cookie_of(self._token)):
            return None
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and bearer.strip():
            return self._refused_bearer(request, bearer.strip(), self._token)
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/login", 303)
        return PlainTextResponse("A token is needed.", 401, {"www-authenticate": "Bearer"})

    def _refused_bearer(self, request: Request, bearer: str, token: Secret) -> Response | None:
        # The right one first: behind a proxy, whoever guesses has the address of those who know it.
        if same(bearer, token.reveal()):
            return None
        address = "" if request.client is None else request.client.host
        wait = self._attempts.wait(address)
        if wait > 0:
            return PlainTextResponse("Too many wrong tokens.", 429, too_soon(wait))
        self._attempts.failed(address, request.url.path)
        return PlainTextResponse("That is not the token.", 401, {"www-authenticate": "Bearer"})


def too_soon(wait: float) -> dict[str, str]:
    """The headers of an answer to who has to wait."""
    return {"retry-after": str(math.ceil(wait))}


def _name(host: str) -> str:
    """The name in a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def cookie_of(token: Secret) -> str:
    """What the login form gives in exchange for the token: it opens the page and does not tell the token."""
    return hmac.new(token.reveal().encode(), b"laketier serve --http", sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())
