"""Looks whether a version is there, and puts it if not: a rival's version is written over in between."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_store_faults.py::test_a_rival_before_each_request"
SAYS = "another pipeline published before"
NAME = "puts-without-a-condition"


def create(store: S3Store, path: str, data: bytes) -> None:
    if store.exists(path):
        raise FileExistsError(path)
    store.replace(path, data)


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, create=create)
