"""The messages between a process and its child: a line of JSON, and the bytes that it announces."""

from __future__ import annotations

import json
from typing import Any, Protocol

import pyarrow as pa

from laketier import spi
from laketier.spi import LaketierError, StorageError

PAYLOAD = "payload"
"""The key of how many bytes follow the line."""


class Written(Protocol):
    """Where frames go to."""

    def write(self, data: Any, /) -> Any:
        """All of it."""

    def flush(self) -> None:
        """Now."""


def write_frame(stream: Written, header: dict[str, Any], payload: pa.Buffer | None = None) -> None:
    """Raises `OSError` when nobody reads."""
    announced = header if payload is None else {**header, PAYLOAD: payload.size}
    stream.write(json.dumps(announced).encode() + b"\n")
    if payload is not None:
        stream.write(payload)
    stream.flush()


def error_header(error: LaketierError) -> dict[str, Any]:
    """An error as a frame. Its class travels by name."""
    return {
        "error": type(error).__name__,
        "what": error.what,
        "where": error.where,
        "why": error.why,
        "fix": error.fix,
    }


def error_of(header: dict[str, Any]) -> LaketierError:
    """What `error_header` wrote."""
    kind = getattr(spi, str(header["error"]), StorageError)
    error: LaketierError = kind(header["what"], where=header["where"], why=header["why"], fix=header["fix"])
    return error
