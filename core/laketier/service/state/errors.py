"""Errors of the state store."""

from __future__ import annotations

import re

from laketier.spi import LaketierError


class StateError(LaketierError):
    """The state database can't be used, or did not answer. Nothing is known to have changed; a call may be made again
    on the same store."""


class LeaseLost(StateError):
    """The lease is not (or no longer) held with this fence by this worker. Nothing was changed. The round must not be
    published: the table's watermark refuses its fence once a newer one has published."""


_PASSWORD = re.compile(r"(://[^:/@\s]*:).*@(?=[^@/]*(?:[/?\s]|$))")
_SECRET_KEY = re.compile(r"(?i)((?:password|passfile|sslpassword|secret|token)=)[^&\s]*")


def redacted(text: str) -> str:
    """The text without the passwords that URLs in it hold, be they well formed or not."""
    return _SECRET_KEY.sub(r"\1***", _PASSWORD.sub(r"\1***@", text))
