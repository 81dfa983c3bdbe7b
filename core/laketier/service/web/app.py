"""The page's addresses. All but the login only read."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from laketier.config import LakeConfig
from laketier.service.looked import SharedLook
from laketier.service.metrics import CONTENT_TYPE, prometheus_text
from laketier.service.state import StateError, StateStore, TableStatus
from laketier.service.status import status_document
from laketier.service.web import pages
from laketier.service.web.access import COOKIE, Access, cookie_of, same, too_soon
from laketier.service.web.attempts import Attempts
from laketier.service.web.chosen import Chosen
from laketier.service.web.dead_letters import read_dead_letters
from laketier.spi import LaketierError, Secret
from laketier.spi.redaction import redacted

log = logging.getLogger(__name__)

_ROUNDS = 200
_DOCUMENTS = 1000
_LONGEST_FORM = 4096
_STATIC = {"style.css": "text/css", "refresh.js": "text/javascript"}

DeadLetterConfigOf = Callable[[str], LakeConfig | None]
"""The lake table of a table (``source.table``) whose bad records go to dead letters; None for any other."""


@dataclass(frozen=True)
class ServicePages:
    """The data of the pages. ``look`` has a store of its own, so that no reader takes a connection from the worker."""

    look: SharedLook
    registry: CollectorRegistry
    dead_letter_config_of: DeadLetterConfigOf
    token: Secret | None = None
    attempts: Attempts = field(default_factory=Attempts)

    @property
    def store(self) -> StateStore:
        """Of the look."""
        return self.look.store

    def health_app(self) -> ASGIApp:
        """The application for machines alone, for a listener of its own."""
        routes = [Route("/metrics", self._metrics), Route("/healthz", self._health)]
        handlers = {StateError: self._no_state, HTTPException: _refused_plainly}
        return Access(Starlette(routes=routes, exception_handlers=handlers), self.token, Attempts())

    def app(self) -> ASGIApp:
        """The application. Its endpoints run in threads, as they wait for the database."""
        routes = [
            Route("/", self._tables),
            Route("/tables/{id:int}", self._table),
            Route("/tables/{id:int}/dead-letters", self._dead_letters),
            Route("/dead-letters", self._dead_letter_tables),
            Route("/api/tables", self._documents),
            Route("/metrics", self._metrics),
            Route("/healthz", self._health),
            Route("/static/{name}", _static),
        ]
        if self.token is not None:
            routes += [Route("/login", self._form), Route("/login", self._login, methods=["POST"])]
        return Access(
            Starlette(routes=routes, exception_handlers={StateError: self._no_state, HTTPException: self._refused}),
            self.token,
            self.attempts,
        )

    def _tables(self, request: Request) -> Response:
        looked = self.look.now()
        chosen = Chosen.of(looked.statuses, request.query_params, limit=pages.TABLES_PER_PAGE)
        return HTMLResponse(pages.tables_page(self.store.service, looked.statuses, looked.workers, looked.at, chosen))

    def _table(self, request: Request) -> Response:
        status = self._status(request)
        rounds = self.store.rounds(status.table.id, _ROUNDS)
        has_dead_letters = self.dead_letter_config_of(status.table.name) is not None
        return HTMLResponse(pages.table_page(self.store.service, status, rounds, has_dead_letters))

    def _dead_letter_tables(self, request: Request) -> Response:
        statuses = [
            each
            for each in self.look.now().statuses
            if each.table.bad_records_total or self.dead_letter_config_of(each.table.name) is not None
        ]
        chosen = Chosen.of(statuses, request.query_params, limit=pages.TABLES_PER_PAGE)
        return HTMLResponse(
            pages.dead_letter_tables_page(
                self.store.service, chosen, lambda name: self.dead_letter_config_of(name) is not None
            )
        )

    def _dead_letters(self, request: Request) -> Response:
        status = self._status(request)
        config = self.dead_letter_config_of(status.table.name)
        if config is None:
            raise HTTPException(404, "The table's bad records do not go to dead letters.")
        try:
            found = read_dead_letters(config)
        except LaketierError as error:
            text = redacted(str(error))
            return HTMLResponse(pages.told_page(self.store.service, "The lake did not answer", text), 503)
        return HTMLResponse(pages.dead_letters_page(self.store.service, status, found))

    def _status(self, request: Request) -> TableStatus:
        status = self.look.now().by_id.get(request.path_params["id"])
        if status is None:
            raise HTTPException(404, "The service has no such table.")
        return status

    def _documents(self, request: Request) -> Response:
        chosen = Chosen.of(self.look.now().statuses, request.query_params, limit=_DOCUMENTS)
        text = json.dumps([status_document(each) for each in chosen.shown], default=str, ensure_ascii=False)
        headers = {"x-total-count": str(chosen.found)}
        if chosen.has_more:
            headers["link"] = f'</api/tables?{chosen.next}>; rel="next"'
        return Response(text, media_type="application/json", headers=headers)

    def _metrics(self, _: Request) -> Response:
        return Response(prometheus_text(self.registry), headers={"content-type": CONTENT_TYPE})

    def _health(self, _: Request) -> Response:
        self.look.alive()
        return PlainTextResponse("ok\n")

    def _form(self, _: Request) -> Response:
        return HTMLResponse(pages.login_page(self.store.service, wrong=False))

    async def _login(self, request: Request) -> Response:
        assert self.token is not None
        address = "" if request.client is None else request.client.host
        body = b""
        try:
            async for part in request.stream():
                body += part
                if len(body) > _LONGEST_FORM:
                    raise HTTPException(413, "That is too long for a token.")
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not same(given, self.token.reveal()):
            wait = self.attempts.wait(address)
            if wait > 0:
                raise HTTPException(429, f"Too many wrong tokens: try again in {wait:.0f} s.", too_soon(wait))
            self.attempts.failed(address, request.url.path)
            return HTMLResponse(pages.login_page(self.store.service, wrong=True), 403)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            COOKIE, cookie_of(self.token), httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return answer

    def _no_state(self, request: Request, error: Exception) -> Response:
        if request.url.path == "/healthz":
            # Asked by anybody: where the database is, is for those with the token.
            return PlainTextResponse("the state database does not answer\n", 503)
        return HTMLResponse(pages.told_page(self.store.service, "No state", redacted(str(error))), 503)

    def _refused(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        page = pages.told_page(self.store.service, f"{error.status_code}", error.detail)
        return HTMLResponse(page, error.status_code, error.headers)


def _refused_plainly(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404)
    text = files("laketier.service.web").joinpath(name).read_text(encoding="utf-8")
    return Response(text, media_type=_STATIC[name])
