"""Sends a put on a condition again where the store was busy. What then has the key is its own, of the first time."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.client import library
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_store_faults.py::test_a_rival_before_each_request"
SAYS = "another pipeline published before request"
NAME = "takes-a-rivals-key-for-its-own"


def create(store: S3Store, path: str, data: bytes) -> None:
    for is_again in (False, True):
        try:
            library().put(store._client.once, store._key(path), data, mode="create")
        except Exception as error:  # noqa: BLE001 - whatever the library raises
            if "412" not in str(error):
                continue
            if not is_again:
                raise FileExistsError(path) from None
        return
    raise spi.StorageError("the put failed")


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, create=create)
