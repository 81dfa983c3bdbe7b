"""Drops what begins with the table's key, without the slash behind it: a sibling goes along."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.client import library
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_object_stores.py::test_a_drop"
SAYS = "keys of the bucket after a table was made and dropped, and before"
NAME = "drops-by-prefix"


def drop(store: S3Store, sign: str, table_file: str) -> None:
    objects = store._client.store
    for page in library().list(objects, store.prefix.rpartition("/")[0]):
        library().delete(objects, [each["path"] for each in page if each["path"].startswith(store.prefix)])


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, drop=drop)
