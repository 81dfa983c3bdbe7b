"""The place of files that lie there, on a disk or in S3."""

from __future__ import annotations

from laketier.kit.table_store import TableStore
from laketier_localfile.lying import LyingPlace
from laketier_localfile.lying_on_disk import DiskPlace
from laketier_localfile.place import in_s3


def lying_place_of(store: TableStore) -> LyingPlace:
    """What a table's place is before there is a table, and after its manifests were lost."""
    bucket = in_s3(store)
    if bucket is not None:
        from laketier_localfile.s3.lying import BucketPlace

        return BucketPlace(bucket)
    assert store.folder is not None
    return DiskPlace(store.folder)
