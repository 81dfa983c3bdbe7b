"""Which version a local dataset is at, told without Lance: by the names of its manifests and `os.stat`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from laketier.kit.file_identity import file_identity
from laketier.kit.looks import is_absent
from laketier_lance.durable import TOP, VERSIONS, manifest_names
from laketier_lance.location import local_path

_NAME = re.compile(r"(\d{1,20})\.manifest")
_KNOWN = re.compile(r"(\d{1,20}):(\d{1,20}\.manifest):[0-9a-f.]+")
_OLD_NAMES = 10**19
"""Manifests are named by their versions, or by the complement, which has twenty digits, so that the newest is listed
first. A detached version is no version of the table, and has a name with a ``d``."""


def latest_version(location: str, known: str | None) -> str | None:
    """For `LakeCatalog.table_version`. None in an object store, where a dataset that was made anew has manifests of the
    same names, and telling one from the other takes as long as opening it."""
    local = local_path(location)
    if local is None:
        return None
    folder = local / VERSIONS
    if known is not None and (match := _KNOWN.fullmatch(known)) is not None:
        number = int(match[1])
        # Versions have no gaps: where this one is as it was and the next is not there, it is the newest.
        next_names = [folder / name for name in manifest_names(number + 1)]
        if _named(folder, number, match[2]) == known and all(map(is_absent, next_names)):
            return known
    try:
        names = [name for name in os.listdir(folder) if _NAME.fullmatch(name)]
    except OSError:
        return None
    if not names:
        return None
    newest = max(names, key=_number)
    return _named(folder, _number(newest), newest)


def manifest_number(name: str) -> int | None:
    """The version whose manifest has this name; None for other names."""
    return _number(name) if _NAME.fullmatch(name) else None


def _number(name: str) -> int:
    number = int(name.partition(".")[0])
    return TOP - number if number >= _OLD_NAMES else number


def _named(folder: Path, number: int, name: str) -> str | None:
    identity = file_identity(folder / name)
    return None if identity is None else f"{number}:{name}:{identity}"


def manifest_identity(location: str, version: int) -> str | None:
    """The identity of a version's manifest: a dataset that was dropped and made anew has other manifests of the same
    names. None where it is not on a local disk."""
    local = local_path(location)
    identities = (file_identity(local / VERSIONS / name) for name in manifest_names(version)) if local else ()
    return next((identity for identity in identities if identity is not None), None)


def manifest_bytes(location: str, version: int) -> int | None:
    """The size of a version's manifest, None where it is not on a local disk."""
    local = local_path(location)
    for name in manifest_names(version) if local is not None else ():
        try:
            return os.stat(Path(location, VERSIONS, name)).st_size
        except OSError:
            continue
    return None
