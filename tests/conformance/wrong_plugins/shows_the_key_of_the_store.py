"""Says in an error with which settings the store was asked, and the secret key is one of them."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.client import library
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_store_faults.py::test_no_error_shows_a_key"
SAYS = "has the secret key of the store in it"
NAME = "shows-the-key-of-the-store"


def read(store: S3Store, path: str) -> bytes:
    try:
        return bytes(library().get(store._client.store, store._key(path)).bytes())
    except FileNotFoundError:
        raise
    except Exception as error:
        given = " and ".join(store.storage.values())
        raise spi.StorageError(
            "the store refused", where=store.where(path), why=f"it was asked with {given}"
        ) from error


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, read=read)
