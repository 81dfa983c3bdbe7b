"""Secrets are not shown: the one rule of what in a text is one.

It is for what people read: messages, logs, tables, pages. Settings whose values are secret are marked where they are
declared, and are never written out at all.
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
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def holds_secret(url: str) -> bool:
    """Whether a password is in a URL, or a secret in its query. Not in its path: names there may hold any
    character, and `redacted` may hide a part of them all the same."""
    address, _, query = url.partition("?")
    has_password = _PASSWORD.search(_PORT.sub("://", url)) is not None
    return has_password or ("://" in address and _SECRET_KEY.search(query) is not None)


def redacted(text: str) -> str:
    """The text without the passwords of URLs in it, be they well formed or not, and without the values of settings
    whose names say that they are secret (``s3.secret-access-key=…``, ``password: …``)."""
    return _SECRET_KEY.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1{HIDDEN}@", text))
