"""A table's document is never changed, so it is read once: who commits does not see that the table was dropped."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.layout import LAYOUT
from laketier_localfile.s3.client import library
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_object_stores.py::test_a_drop"
SAYS = "a round is published in a store, whose table was dropped since `open`"
NAME = "keeps-documents-of-tables"
_kept: dict[str, bytes] = {}


def read(store: S3Store, path: str) -> bytes:
    where = store.where(path)
    if where not in _kept:
        found = bytes(library().get(store._client.store, store._key(path)).bytes())
        if not path.endswith(LAYOUT.table_file):
            return found
        _kept[where] = found
    return _kept[where]


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, read=read)
