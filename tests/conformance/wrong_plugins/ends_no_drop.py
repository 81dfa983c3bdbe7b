"""A drop deletes the table's mark first, so that it is gone at once. One that was cut off after that has files left,
which nobody deletes: what is without its mark is no table, and keeps the name from every other."""

from __future__ import annotations

from collections.abc import Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_object_stores.py::test_a_drop_that_is_cut_off"
SAYS = "and asked for again: no table can be made under the name"
NAME = "ends-no-drop"


def delete_rest(store: S3Store, _sign: str, table_file: str) -> None:
    raise spi.TableNotFound("there is no table", where=store.where(table_file))


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, delete_rest=delete_rest)
