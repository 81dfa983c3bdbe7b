"""Where a table is: its URI for delta-rs, and its files for pyarrow."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from laketier.kit import LocalFolder, TableFolder
from laketier.kit.store_endpoint import asks_for_plain_http, endpoint_of
from laketier.kit.warehouse import local_warehouse
from laketier.spi import ConfigError, Passthrough, TablePath

LOG = "_delta_log"
Settings = tuple[tuple[str, str], ...]

_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|\\|[\x00-\x1f\x7f]")
"""delta-rs takes paths for URLs: what looks encoded is decoded, a backslash becomes a slash. It makes a table at the
one place, looks for it at the other, and calls it damaged."""
_DURATION = re.compile(r"(?P<number>[0-9]+) *(?P<unit>ms|s|m)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60}
_ENDS_A_URL = re.compile(r"[?#]")


@dataclass(frozen=True)
class Location:
    """A warehouse, or a table in it. Picklable: executors open its files, and never its log."""

    uri: str
    storage: Passthrough

    @classmethod
    def of(cls, warehouse: str, storage: Passthrough) -> Location:
        """Read ``lake.warehouse``: an absolute or relative path, ``file://`` or ``s3://``. Raises `ConfigError`."""
        folder = local_warehouse(warehouse)
        if folder is not None:
            return cls(_addressable(str(folder)), storage)
        scheme = urlsplit(warehouse).scheme
        if scheme in ("s3", "s3a"):
            return cls(_addressable("s3://" + warehouse.split("://", 1)[1].rstrip("/")), storage)
        raise ConfigError(
            f"the warehouse {warehouse!r} is on {scheme}://, which the delta plugin does not reach",
            fix="Use a path, file:// or s3://.",
        )

    def table(self, path: TablePath) -> Location:
        """The place of a table in this warehouse. Raises `ConfigError` for the name that Delta keeps to itself."""
        if LOG in (path.database, path.table):
            raise ConfigError(
                f"{LOG!r} is not a name for a database or table of Delta",
                where=str(path),
                why="readers take such a folder for the log of a table",
                fix="Choose another name.",
            )
        return Location(f"{self.uri}/{path.database}/{path.table}", self.storage)

    @property
    def is_local(self) -> bool:
        """Whether the files are on a file system that can be flushed and linked."""
        return "://" not in self.uri

    @property
    def root(self) -> str:
        """The path on `filesystem`."""
        return self.uri if self.is_local else self.uri.split("://", 1)[1]

    @property
    def storage_options(self) -> dict[str, str] | None:
        """For delta-rs, with leave to use plain HTTP where an endpoint asks for it, and with the endpoint of
        `s3_arguments`: it would prefer ``AWS_ENDPOINT_URL_S3`` of the environment to what it is given by another name,
        and of two others takes that which stands first."""
        if self.is_local:
            return None
        leave = {"AWS_ALLOW_HTTP": "true"} if asks_for_plain_http(self.storage) else {}
        endpoint = endpoint_of(self.storage)
        return {**self.storage, **leave, **({"AWS_ENDPOINT_URL_S3": endpoint} if endpoint else {})}

    @property
    def filesystem(self) -> pafs.FileSystem:
        """For data files and watermark records."""
        if self.is_local:
            return pafs.LocalFileSystem()
        environment = (each for each in os.environ.items() if each[0].startswith("AWS_"))
        return _store(os.getpid(), tuple(sorted(self.storage.items())), tuple(sorted(environment)))

    @property
    def folder(self) -> TableFolder:
        """The table's files, for what lists, compares and deletes them."""
        return TableFolder(self.filesystem, self.root)

    def refuse_links(self, path: str = LOG) -> None:
        """Raise `OutsideTable` where ``path`` of a local table is reached through a link, as the log of another table
        might be. For what writes and deletes; readers may follow it, as delta-rs does."""
        if self.is_local:
            LocalFolder(Path(self.uri)).refuse_links(path)

    def local(self, relative: str) -> Path:
        """A file of a local table."""
        return Path(self.uri, relative)


def _addressable(uri: str) -> str:
    found = _MISREAD.search(uri) or (_ENDS_A_URL.search(uri) if "://" in uri else None)
    if found is not None or LOG in uri.split("/"):
        what = LOG if found is None else found[0]
        raise ConfigError(
            f"the warehouse {uri!r} has {what!r} in its path",
            where="lake.warehouse",
            why="delta-rs and other readers would look for the tables elsewhere",
            fix="Use a warehouse without percent-encoding, backslashes, control characters and folders named "
            f"{LOG}; in an object store also without ? and #.",
        )
    return uri


@lru_cache(maxsize=32)
def _store(pid: int, storage: Settings, environment: Settings) -> pafs.FileSystem:  # noqa: ARG001 - what else it depends on
    """One for each process and setting. Each new one connects anew; and pyarrow makes none while another thread of the
    process waits for a request of one, so a table whose store hangs would hold up all others."""
    try:
        return pafs.S3FileSystem(**s3_arguments(dict(storage)))
    except ValueError as error:
        raise ConfigError(
            "pyarrow refuses the settings of the object store",
            where="lake.delta.storage",
            why=str(error).strip(),
            fix="Set both access_key_id and secret_access_key there, or neither; and an endpoint with http:// or https://.",
        ) from error


def s3_arguments(storage: Mapping[str, str]) -> dict[str, Any]:
    """Pyarrow's arguments for what delta-rs calls ``AWS_…``, so that both see the same bucket, and give it up alike.
    Both get the endpoint from one rule: by its own rules each would find another store, one for the log and one for its
    data files."""
    given = {key.lower().removeprefix("aws_"): value for key, value in storage.items()}
    endpoint = endpoint_of(storage)
    arguments: dict[str, Any] = {
        "access_key": given.get("access_key_id"),
        "secret_key": given.get("secret_access_key"),
        "session_token": given.get("session_token") or given.get("token"),
        "region": given.get("region") or given.get("default_region"),
    }
    if endpoint:
        parts = urlsplit(endpoint)
        virtual = given.get("virtual_hosted_style_request", "false").lower() == "true"
        arguments |= {
            "endpoint_override": parts.netloc,
            "scheme": parts.scheme,
            "force_virtual_addressing": virtual,
        }
    arguments |= _patience(given)
    return {key: value for key, value in arguments.items() if value is not None}


def _patience(given: Mapping[str, str]) -> dict[str, Any]:
    """How long and how often a request is tried. With tries of the user's, waits begin short and double, as those of
    delta-rs do."""
    found: dict[str, Any] = {}
    for name, theirs in (("timeout", "request_timeout"), ("connect_timeout", "connect_timeout")):
        time = _DURATION.fullmatch(given.get(name, ""))
        if time is not None:
            found[theirs] = float(time["number"]) * _SECONDS[time["unit"]]
    if given.get("max_retries", "").isdecimal():
        found["retry_strategy"] = pafs.AwsDefaultS3RetryStrategy(max_attempts=1 + int(given["max_retries"]))
    return found
