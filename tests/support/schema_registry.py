"""A schema registry over HTTP, as far as readers ask one: schemas by id, and the versions of a subject."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlparse


class SchemaRegistry:
    """Serves on loopback until it is stopped. With ``password``, user ``reader`` must give it."""

    def __init__(self, password: str | None = None) -> None:
        self._password = password
        self._by_id: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, list[int]] = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, answer = registry.answer(self.path, self.headers.get("Authorization"))
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: list[Any] | None = None) -> int:
        """The id of a new version. Protobuf: the serialised file, in base64."""
        number = len(self._by_id) + 1
        self._by_id[number] = {"schema": schema, "schemaType": kind, "references": references or []}
        self._subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str, authorization: str | None) -> tuple[int, Any]:
        """Status and body."""
        if self._password is not None:
            wanted = "Basic " + base64.b64encode(f"reader:{self._password}".encode()).decode()
            if authorization != wanted:
                return 401, {"error_code": 401, "message": "Unauthorized"}
        parts = [unquote(part) for part in urlparse(path).path.strip("/").split("/")]
        match parts:
            case ["schemas", "ids", number] if int(number) in self._by_id:
                return 200, self._by_id[int(number)]
            case ["subjects", subject, "versions", version] if subject in self._subjects:
                versions = self._subjects[subject]
                index = len(versions) if version == "latest" else int(version)
                number = versions[index - 1]
                return 200, {"subject": subject, "id": number, "version": index, **self._by_id[number]}
        return 404, {"error_code": 40403 if parts[0] == "schemas" else 40401, "message": f"{parts[-1]} not found."}

    def stop(self) -> None:
        """Refuse connections from now on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> SchemaRegistry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def framed(schema_id: int, payload: bytes, indexes: bytes = b"") -> bytes:
    """A value as producers with a registry write it."""
    return b"\x00" + schema_id.to_bytes(4, "big") + indexes + payload
