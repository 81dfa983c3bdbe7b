"""What Lance leaves to the operating system: that a version is on the device. It syncs nothing on a local disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from laketier.kit.durable import fsync_directory, fsync_file, fsync_published, make_directories
from laketier.kit.looks import is_there
from laketier_lance.location import local_path

VERSIONS = "_versions"
TRANSACTIONS = "_transactions"
_HINT = "latest_version_hint.json"
TOP = 2**64 - 1


def manifest_names(version: int) -> tuple[str, str]:
    """Lance names manifests by version, or by its complement so that the newest is listed first."""
    return f"{TOP - version}.manifest", f"{version}.manifest"


def make_folders(location: str) -> None:
    """The folders of a new dataset, durable. Nothing in an object store."""
    local = local_path(location)
    if local is not None:
        make_directories(local / VERSIONS)


def local_versions(location: str) -> Path | None:
    """The folder of the manifests, None in an object store."""
    local = local_path(location)
    return None if local is None else local / VERSIONS


def remove_version(location: str, version: int, transaction: str) -> None:
    """Take back a version that was committed to another dataset than was meant, with the hint at it and the file of its
    ``transaction``: beside files that were staged it would tell of a dataset that was lost."""
    remove_transaction(location, version, transaction)
    versions = local_versions(location)
    if versions is not None:
        for name in (*manifest_names(version), _HINT):
            (versions / name).unlink(missing_ok=True)


def remove_transaction(location: str, version: int, transaction: str) -> None:
    """Take back what Lance writes before it makes ``version``. Its name can't be another commit's."""
    local = local_path(location)
    if local is not None:
        (local / TRANSACTIONS / f"{version - 1}-{transaction}.txn").unlink(missing_ok=True)


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
    for name in manifest_names(version):
        if is_there(versions / name):
            fsync_published(versions / name)
    fsync_directory(versions)
