"""An error of a lost connection names the address that was called. The key to it is a part of that."""

from __future__ import annotations

import os
import pickle
import socket

from connected import ConnectedPlugin, ConnectedStorage
from rows_on_a_server import ADDRESS
from rows_on_a_server import Harness as Server

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_error_of_a_lost_connection_shows_a_secret"
SAYS = "a reset of the connection before step 1"


class CallingStorage(ConnectedStorage):
    def catalog(self) -> kit.ManifestCatalog:
        port = os.environ[ADDRESS]
        try:
            with socket.create_connection(("127.0.0.1", int(port))) as connection:
                connection.sendall(pickle.dumps(None))
                connection.recv(100)
        except OSError as error:
            address = f"tcp://127.0.0.1:{port}/?login={self.options.login}"
            raise spi.StorageError("the server does not answer", where=address, fix="Run it again.") from error
        return super().catalog()


class CallingPlugin(ConnectedPlugin):
    storage = CallingStorage


class Harness(Server):
    pass


@hookimpl
def laketier_format() -> ConnectedPlugin:
    return CallingPlugin("tells-where-it-called")
