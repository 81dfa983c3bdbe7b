"""A client is kept for each bucket, with its first user's endpoint and key. The second one's rows go there, too."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import patch

from in_a_bucket import MARK, in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.client import Client, client_of

CAUGHT_BY = "test_object_stores.py::test_each_storage_has_its_own_settings"
SAYS = "requests of another storage of its bucket that came to the endpoint of the second one: expected"
NAME = "keeps-clients-by-the-bucket"
_kept: dict[str, Client] = {}


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


def _client(bucket: str, storage: spi.Passthrough) -> Client:
    right = client_of(bucket, storage)
    return _kept.setdefault(bucket, right) if storage.get(MARK) == NAME else right


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    patch("laketier_localfile.s3.store.client_of", _client).start()
    return in_a_bucket(NAME)
