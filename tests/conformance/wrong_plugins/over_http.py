"""A table behind a server of HTTP: a commit is one POST that carries its rows. The parts of a right client, and of
wrong ones."""

from __future__ import annotations

import http.client
import os
import pickle
from pathlib import Path

import rows_on_a_server
from crooked import CrookedPlugin
from http_serving import QuietHandler, port_of

from laketier import spi
from laketier_conformance.harness import Warehouse

_PORT = "CATALOG_OVER_HTTP"


class Handler(QuietHandler):
    def do_POST(self) -> None:  # noqa: N802 - its name
        asked = pickle.loads(self.rfile.read(int(self.headers["Content-Length"])))  # noqa: S301 - of our own tests
        self.answer(200, pickle.dumps(rows_on_a_server.committed(asked)))


class Catalog:
    """The harness."""

    def setup(self, folder: Path) -> Warehouse:
        os.environ[_PORT] = str(port_of(Handler))
        return Warehouse(str(folder / "warehouse"))


class Client(rows_on_a_server.Client):
    """Errors but a conflict pass: nobody knows whether the rows have landed."""

    def ask(self, request: object) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", int(os.environ[_PORT]), timeout=1)
        try:
            connection.request("POST", "/commit", pickle.dumps(request))
            answer = connection.getresponse()
            if answer.status != 200:
                raise spi.UnknownOutcome(f"the catalog answered {answer.status}", where=str(self.table.location))
            return pickle.loads(answer.read())  # noqa: S301 - of our own tests
        except http.client.HTTPException as error:
            raise ConnectionError("the catalog did not answer") from error
        finally:
            connection.close()


def over_http(named: str, committer: type[Client]) -> CrookedPlugin:
    """The plugin."""
    return CrookedPlugin(named, committer=committer)
