"""Where an object store is, and whether it is reached without TLS. The libraries in Rust ask the environment for an
endpoint, and pyarrow does not. They refuse plain HTTP unless they are told, in words that name no setting: "builder
error"."""

from __future__ import annotations

import os
from collections.abc import Mapping

_ENVIRONMENT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""The first of them that is set counts, as for those libraries."""
_NAMES = ("endpoint_url_s3", "endpoint_url", "endpoint")
_LEAVE = "allow_http"


def endpoint_of_environment() -> str | None:
    """The endpoint of S3 that the environment of the process names; None where it names none. Anywhere."""
    return next((os.environ[name] for name in _ENVIRONMENT if os.environ.get(name)), None)


def endpoint_of(options: Mapping[str, str]) -> str | None:
    """The endpoint of S3 that users' options name, else that of the environment; None where neither does. Anywhere.

    Some libraries prefer ``AWS_ENDPOINT_URL_S3`` of the environment to ``endpoint`` of the options: where several
    libraries must find the same store, give each what this returns.

    Args:
        options: As of `asks_for_plain_http`. Of several endpoints that counts which is for S3 alone.
    """
    given = {key.lower().replace("-", "_").removeprefix("aws_"): value for key, value in options.items()}
    return next((given[name] for name in _NAMES if given.get(name)), None) or endpoint_of_environment()


def asks_for_plain_http(options: Mapping[str, str]) -> bool:
    """Whether an endpoint begins with ``http://``, and nobody has said yet whether that is allowed. Anywhere.

    Args:
        options: What users give a store, such as ``endpoint`` or ``AWS_ENDPOINT_URL``. Where they name no endpoint,
            that of the environment counts.

    Returns:
        Whether to allow plain HTTP: who writes ``http://`` has asked for it.
    """
    given = {key.lower().replace("-", "_"): value for key, value in options.items()}
    if any(key.endswith(_LEAVE) for key in given) or f"AWS_{_LEAVE.upper()}" in os.environ:
        return False
    endpoints = [value for key, value in given.items() if key.endswith(_NAMES)]
    return any(each.lower().startswith("http://") for each in endpoints or [endpoint_of_environment() or ""])
