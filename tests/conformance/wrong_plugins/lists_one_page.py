"""Takes the first page of a listing for all of it: a drop leaves the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from in_a_bucket import in_a_bucket, options

from laketier import spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.store import Listed, S3Store

CAUGHT_BY = "test_object_stores.py::test_a_listing_comes_in_pages"
SAYS = "keys after a table was made and dropped, where listings have pages"
NAME = "lists-one-page"


def pages(store: S3Store, folder: str = "") -> Iterator[list[Listed]]:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=store.storage["AWS_ENDPOINT_URL"],
        region_name=store.storage["AWS_REGION"],
        aws_access_key_id=store.storage["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=store.storage["AWS_SECRET_ACCESS_KEY"],
    )
    found = client.list_objects_v2(Bucket=store.bucket, Prefix=f"{store._key(folder) if folder else store.prefix}/")
    cut = len(store.prefix) + 1
    yield [Listed(each["Key"][cut:], each["Size"], 0, "") for each in found.get("Contents", ())]


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, pages=pages)
