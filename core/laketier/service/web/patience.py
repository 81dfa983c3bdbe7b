"""How long a connection may take: one that never ends its request must not keep others out.

The server below (uvicorn) closes idle connections between requests, and waits for ever for the rest of a head or
of a body, and for a client that does not read.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""From the connection, or the first byte of a later request, to the end of the request, its body too."""
REQUEST_SECONDS = 60.0
"""From there to the end of the answer, and from there to the end of the connection."""


class PatientProtocol(H11Protocol):
    """One connection. A server has a subclass of its own (`patient`), as ``waiting`` is its list of connections with no
    whole request under way: the one that waits longest goes when there are too many."""

    most: ClassVar[int]
    head_seconds: ClassVar[float]
    request_seconds: ClassVar[float]
    waiting: ClassVar[dict[PatientProtocol, None]]
    _deadline: asyncio.TimerHandle | None = None
    _timed: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            oldest = next(iter(self.waiting), self)
            self.waiting.pop(oldest, None)
            oldest.transport.abort()
            if oldest is self:
                return
        self.waiting[self] = None
        self._end_within(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Called by the server below."""
        super().on_response_complete()
        self._look()

    def shutdown(self) -> None:
        """Called by the server below when it ends, which then waits for each request under way, also for its body."""
        cycle: Any = self.cycle
        if cycle is not None and cycle.more_body and not cycle.response_complete:
            self.transport.abort()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        self.waiting.pop(self, None)
        self._end_within(None)

    def _look(self) -> None:
        if self.transport.is_closing() and not self.transport.get_write_buffer_size():
            return
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and cycle is not self._timed and not cycle.more_body:
            self._timed = cycle
            self.waiting.pop(self, None)
            self._end_within(self.request_seconds)
        elif (cycle is None or cycle.response_complete or cycle.more_body) and self not in self.waiting:
            # A client that does not read its answer, or begins a request and does not end it.
            self.waiting[self] = None
            self._end_within(self.request_seconds if self.transport.is_closing() else self.head_seconds)

    def _end_within(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


def patient(
    most: int, *, head_seconds: float = HEAD_SECONDS, request_seconds: float = REQUEST_SECONDS
) -> type[PatientProtocol]:
    """The protocol of one server, for ``most`` connections at a time."""
    settings = {"most": most, "head_seconds": head_seconds, "request_seconds": request_seconds, "waiting": {}}
    return type("Patient", (PatientProtocol,), settings)
