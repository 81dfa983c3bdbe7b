"""A put that was not answered, and whose object is not there, did not land, it is thought. It may be under way."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.client import library
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_late_stores.py::test_a_put_arrives_late"
SAYS = "which means that nothing of it landed. Where no object is found after a put without an answer"
NAME = "takes-an-absence-for-a-conflict"


def create(store: S3Store, path: str, data: bytes) -> None:
    try:
        library().put(store._client.once, store._key(path), data, mode="create")
    except Exception as error:  # noqa: BLE001 - whatever the library raises
        if "412" in str(error) or not store.exists(path):
            raise FileExistsError(path) from None
        if store.read(path) != data:
            raise FileExistsError(path) from None


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, create=create)
