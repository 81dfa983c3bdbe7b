"""A store that lets nobody list says 403 of a key that is not there. So 403 is 404, and a log ends at the commit that
can't be read."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_store_faults.py::test_what_cant_be_read_is_not_gone"
SAYS = "rows and watermark of a table in a store that refuses HEAD of"
NAME = "takes-what-is-refused-for-the-end"


def exists(store: S3Store, path: str) -> bool:
    try:
        return store._head(path) is not None
    except spi.StorageError:
        return False


def replace(store: S3Store, path: str, data: bytes) -> None:
    """Without a hint of the newest commit."""


def names(store: S3Store, folder: str) -> list[str]:
    """The first one: the others are looked for, until one is not there."""
    objects, _ = store.directly_in(folder)
    return sorted(objects)[:1]


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, exists=exists, replace=replace, names=names)
