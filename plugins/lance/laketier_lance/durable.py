"""What Lance leaves to the operating system: that a version is on the device. It syncs nothing on a local disk."""

from __future__ import annotations

from collections.abc import Iterable

from laketier.kit.durable import fsync_directory, fsync_file, fsync_published, make_directories
from laketier.kit.looks import is_there
from laketier_lance.location import local_path

VERSIONS = "_versions"


def make_folders(location: str) -> None:
    """The folders of a new dataset, durable. Nothing in an object store."""
    local = local_path(location)
    if local is not None:
        make_directories(local / VERSIONS)


def make_durable(location: str, version: int, files: Iterable[str] = ()) -> None:
    """A version survives a power cut, and ``files`` of it, which are relative to the dataset. An object store sees to
    that itself."""
    local = local_path(location)
    if local is None:
        return
    paths = [local / file for file in files]
    for path in paths:
        fsync_file(path)
    for folder in {path.parent for path in paths}:
        fsync_directory(folder)
        fsync_directory(folder.parent)
    versions = local / VERSIONS
    # Lance names manifests by version, or by its complement so that the newest is listed first.
    for name in (f"{2**64 - 1 - version}.manifest", f"{version}.manifest"):
        if is_there(versions / name):
            fsync_published(versions / name)
    fsync_directory(versions)
