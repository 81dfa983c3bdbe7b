"""Hides secrets in text for people: messages, logs, tables and pages.

Settings with secret values are marked where they are declared, and are never written out at all.
"""

from __future__ import annotations

import re

# As greedy as a line without blanks allows: a password may hold any character, also an unquoted "@" or "/".
_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^\s'\"]*@(?=[^@/\s]*(?:[/?\s'\",;)]|$))")
_NAME = (
    r"(?:password|passphrase|passfile|sslpassword|secret|token|(?:account|secret|private|access)[-_.]?key|credential)"
)
_SECRET_KEY = re.compile(rf"(?i)({_NAME}(?:['\"]?\s*=\s*['\"]?|['\"]\s*:\s*['\"]))[^&\s'\",;)}}\]]+")
_PORT = re.compile(r"://(?:\[[^\]\s]*\]|[^:/@\s]*):\d*(?=/)")
_SECRET_NAME = re.compile(rf"(?i){_NAME}")
HIDDEN = "***"


def is_secret(name: str) -> bool:
    """Whether a setting with this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def holds_secret(url: str) -> bool:
    """Whether a URL holds a password, or a secret in its query. The path does not count: names in it may hold any
    character, and `redacted` may hide a part of them."""
    address, _, query = url.partition("?")
    has_password = _PASSWORD.search(_PORT.sub("://", url)) is not None
    return has_password or ("://" in address and _SECRET_KEY.search(query) is not None)


def redacted(text: str) -> str:
    """The text without the passwords of URLs, well formed or not, and without the values of settings with secret names
    (``s3.secret-access-key=…``, ``password: …``)."""
    return _SECRET_KEY.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1{HIDDEN}@", text))
