"""The folders, beside its own, that a dataset names for its files: a shallow clone the one of the dataset that it was
made of, others a disk or a bucket more. Lance follows such a path wherever it leads, so whoever wrote the manifest
chooses what is read with the rights of laketier. Names of data files can't lead out: Lance takes ``..`` and slashes in
them as letters."""

from __future__ import annotations

import os
import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from laketier.spi import IncompatibleTable
from laketier_lance.location import local_path

if TYPE_CHECKING:
    from lance import LanceDataset


def refuse_elsewhere(dataset: LanceDataset, location: str) -> None:
    """Raise `IncompatibleTable` where a base path of the dataset leads out of its own folder, also where no file is of
    it: the next commit of another program may name some there."""
    for base in dataset.base_paths().values():
        if not _is_within(base.path, location):
            raise IncompatibleTable(
                f"files of the dataset are elsewhere, in {base.path}",
                where=location,
                why="it is a shallow clone, or has base paths of its own, and the lance plugin of laketier follows no "
                "path out of a table",
                fix="Is the place what it should be, copy what the dataset has there with pylance, and take the copy: "
                "`lance.dataset(…).deep_clone(target, version)`.",
            )


_ODD = re.compile(r"(?:^|[/\\])\.{1,2}(?:[/\\]|$)|[\\\x00-\x1f\x7f]")
"""Steps, in the spellings of which some readers of URLs make steps: a backslash is a slash to Lance where the scheme is
``file``, and it passes over tabs and ends of lines."""


def _is_within(path: str, location: str) -> bool:
    if path == location:
        return True
    local = local_path(location)
    if "://" in path and _ODD.search(unquote(path)):
        return False
    if local is None:
        return _below(_normal(path), _normal(location))
    if "://" in path:
        parts = urlsplit(path)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            return False
        path = unquote(parts.path)
    return _below(os.path.realpath(path), os.path.realpath(local))


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def _normal(uri: str) -> str:
    scheme, there, rest = uri.partition("://")
    return f"{scheme.lower()}://{posixpath.normpath(rest)}" if there else posixpath.normpath(uri)
