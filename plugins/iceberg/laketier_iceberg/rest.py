"""REST catalogs, whose servers may never answer: pyiceberg sets no limit of time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyiceberg.catalog.rest import RestCatalog

if TYPE_CHECKING:
    from requests import Session

ANSWER_SECONDS = 120.0
"""For a connection, and between two pieces of an answer. What stands before a server gives up sooner, as a rule."""


class PatientRestCatalog(RestCatalog):
    """pyiceberg's, and each request ends with an error of requests where nobody answers for `ANSWER_SECONDS`. A commit
    may have landed then, as with any lost answer."""

    def _config_headers(self, session: Session) -> None:
        # The first that has the session: what comes next may ask the server already.
        session.request = partial(session.request, timeout=ANSWER_SECONDS)  # type: ignore[method-assign]
        super()._config_headers(session)
