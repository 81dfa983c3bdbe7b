"""The page's server: a thread of the worker's process, which must not stop the worker whatever happens in it."""

from __future__ import annotations

import logging
import socket
import threading
from dataclasses import replace

import uvicorn
from starlette.types import ASGIApp

from laketier.service.web.access import Address
from laketier.service.web.patience import PatientProtocol, patient
from laketier.spi import ConfigError

log = logging.getLogger(__name__)

_AT_A_TIME = 128
_HEAD_BYTES = 16_384
_STOP_SECONDS = 5


class PageServer:
    """Listens from the start on, so that a taken port is told at once; answers after `start`. `close` at the end."""

    def __init__(self, address: Address, protocol: type[PatientProtocol] | None = None) -> None:
        """Raises `ConfigError` when the address can't be listened on."""
        self._protocol = protocol or patient(_AT_A_TIME)
        try:
            family, kind, number, _, place = socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self._socket = socket.socket(family, kind, number)
        except (OSError, UnicodeError) as error:  # a label of more than 63 characters has no IDNA
            raise _refused(address, error) from error
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(place)
            self._socket.listen(128)
        except OSError as error:
            self._socket.close()
            raise _refused(address, error) from error
        self.address = replace(address, port=self._socket.getsockname()[1])
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self, app: ASGIApp) -> None:
        """Answer with ``app`` in a thread."""
        # The protocol limits connections. uvicorn's limit would count those that have just been ended.
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none", http=self._protocol, server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=_STOP_SECONDS,
            h11_max_incomplete_event_size=_HEAD_BYTES,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, args=(self._server,), name="laketier-http", daemon=True)
        self._thread.start()

    def _serve(self, server: uvicorn.Server) -> None:
        try:
            server.run(sockets=[self._socket])
        except (Exception, SystemExit):
            # uvicorn exits the process where it can't start; here that ends the thread.
            log.exception("the web page ended; tiering continues")

    def close(self) -> None:
        """Stop listening. Requests under way have a few seconds."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_STOP_SECONDS + 1)
        self._socket.close()


def _refused(address: Address, error: OSError | UnicodeError) -> ConfigError:
    return ConfigError(
        f"{address.host}:{address.port} can't be listened on",
        why=getattr(error, "strerror", None) or str(error),
        fix="Choose another host or port, or port 0 for any that is free.",
    )
