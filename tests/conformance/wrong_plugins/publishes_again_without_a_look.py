"""Takes a lost answer for a failure, and stages and publishes the same rows once more."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from in_a_bucket import in_a_bucket, options

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_conformance.stores import ObjectStore
from laketier_localfile.s3.client import library
from laketier_localfile.s3.store import S3Store

CAUGHT_BY = "test_store_faults.py::test_requests_fail[append]"
SAYS = "after its effect: it was answered, and then a reader finds"
NAME = "publishes-again-without-a-look"


def create(store: S3Store, path: str, data: bytes) -> None:
    try:
        library().put(store._client.once, store._key(path), data, mode="create")
    except Exception as error:  # noqa: BLE001 - whatever the library raises
        if "412" in str(error):
            raise FileExistsError(path) from None
        raise spi.StorageError("the put failed") from None


class Committer(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except spi.StorageError:
            again = [replace(result, files=tuple(map(self._copied, result.files))) for result in results]
            return super().publish(self.open(), again, watermark)

    def _copied(self, file: spi.StagedFile) -> spi.StagedFile:
        store: Any = self.table.store
        path = file.path.replace("-0000.", f"-{secrets.randbelow(9000) + 1000}.")
        store.copy(file.path, path)
        return replace(file, path=path)


class Harness:
    def object_store(self, store: ObjectStore) -> Mapping[str, str]:
        return options(NAME, store)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return in_a_bucket(NAME, Committer, create=create)
