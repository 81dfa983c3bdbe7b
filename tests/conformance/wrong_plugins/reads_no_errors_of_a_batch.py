"""Objects are deleted by one request for many. Its answer is 200, so they are gone: each that is not is named in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import boto3
from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_late_stores.py::test_what_a_store_does_not_delete_is_not_called_gone"
SAYS = "those that `remove_orphans` says are gone, and that are still there"
NAME = "reads-no-errors-of-a-batch"


def delete_all(store: S3Store, paths: Sequence[str]) -> None:
    given = {name.lower().removeprefix("aws_"): value for name, value in store.storage.items()}
    client = boto3.client(
        "s3",
        endpoint_url=given["endpoint_url"],
        aws_access_key_id=given["access_key_id"],
        aws_secret_access_key=given["secret_access_key"],
        region_name=given["region"],
    )
    bucket = store.root.removeprefix("s3://").partition("/")[0]
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": store._key(path)} for path in paths]})


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, delete_all=delete_all)
