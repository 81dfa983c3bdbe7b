"""moto behind one lock: it looks whether a key is there and then puts it, so by itself its conditional put is no
compare-and-set.

``python -m laketier_conformance.stores.atomic`` serves it until its standard input ends, and says its port first.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from laketier_conformance.stores.wsgi import Application, Serving


class OneAtATime:
    """A WSGI application: all of moto's S3, one request after the other. ``lock`` keeps others out of its buckets."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import create_backend_app

        # By itself moto looks through all of its services at each request, which takes half of the time.
        self._served: Any = create_backend_app("s3")
        self.lock = threading.RLock()

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with self.lock:
            return list(self._served(environment, start))


def server(application: Application | None = None) -> Serving:
    """A server of this application, or of a store of its own, on a free port of this machine."""
    return Serving(OneAtATime() if application is None else application)


def main() -> None:
    """Serve for as long as somebody holds the other end of standard input."""
    served = server()
    threading.Thread(target=served.serve_forever, daemon=True).start()
    sys.stdout.write(f"{served.port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
