"""A warehouse in a bucket of its own, and what the store was asked for it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import get_type_hints

from laketier.spi import Feature, LakeStoragePlugin, Passthrough
from laketier_conformance.expect import NotShown
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_conformance.stores.found import Store
from laketier_conformance.stores.proxy import Proxy
from laketier_conformance.stores.store import ObjectStore

DATES_BY = timedelta(seconds=1)
"""S3 dates objects by whole seconds."""


@dataclass(frozen=True)
class Stored:
    """``before``: how many requests the store had seen, and how many of them it had not answered as it should."""

    lake: Lake
    store: Store
    bucket: ObjectStore
    before: tuple[int, int]
    options_of: Callable[[ObjectStore], Mapping[str, str] | None] = field(repr=False)

    @classmethod
    def of(cls, store: Store, plugin: LakeStoragePlugin, harness: Harness, folder: Path) -> Stored:
        """An empty warehouse of a format. Raises `NotShown` where nobody told how the format reaches a store."""
        bucket = store.bucket(folder)
        with ExitStack() as left:
            left.callback(store.clear, bucket.bucket)

            def options_of(bucket: ObjectStore) -> Mapping[str, str] | None:
                given = harness.object_store(bucket)
                return _usual(plugin, bucket) if given is None else given

            options = options_of(bucket)
            if options is None:
                raise NotShown(Feature.OBJECT_STORES, "the format's harness has no object_store")
            left.pop_all()
        lake = Lake(plugin.identifier, bucket.warehouse, options, dates_by=DATES_BY)
        return cls(lake, store, bucket, _counts(store.proxy), options_of)

    def at_endpoint(self, endpoint: str, access_key_id: str) -> Lake:
        """The same warehouse, of a storage that reaches its bucket at another endpoint, by another key."""
        options = self.options_of(dataclasses.replace(self.bucket, endpoint=endpoint, access_key_id=access_key_id))
        assert options is not None, "a harness tells the options of each bucket"
        return dataclasses.replace(self.lake, options=options)

    @property
    def proxy(self) -> Proxy:
        """Before the store."""
        return self.store.proxy

    def keys(self, prefix: str = "") -> list[str]:
        """All keys of the bucket, sorted, but for those of folders: some libraries make an empty object of a folder's
        name as they write or delete in it, and nothing is in it."""
        return [key for key in self.store.keys(self.bucket.bucket, prefix) if not key.endswith("/")]

    @property
    def uploads(self) -> list[str]:
        """What was begun in parts, and neither completed nor aborted."""
        return self.store.uploads(self.bucket.bucket)

    @property
    def seen(self) -> int:
        """How many requests the proxy saw."""
        return _counts(self.proxy)[0] - self.before[0]

    @property
    def requests(self) -> dict[str, int]:
        """How many the store answered as it should, and how many it did not."""
        faults = _counts(self.proxy)[1] - self.before[1]
        told = Counter({"store requests": self.seen - faults, "store faults": faults})
        return dict(+told)

    def clear(self) -> None:
        """Delete all of it."""
        self.store.clear(self.bucket.bucket)


def _usual(plugin: LakeStoragePlugin, bucket: ObjectStore) -> dict[str, str] | None:
    """The options of a format that hands its options below ``storage`` on to its library. None of another one."""
    kinds = get_type_hints(plugin.options_type) if dataclasses.is_dataclass(plugin.options_type) else {}
    if kinds.get("storage") is not Passthrough:
        return None
    return {f"storage.{name}": value for name, value in bucket.usual_options.items()}


def _counts(proxy: Proxy) -> tuple[int, int]:
    return proxy.seen.total(), proxy.faults.total()
