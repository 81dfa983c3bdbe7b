"""Local files in a bucket, with some of the store's methods replaced for one format: the others keep the right ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from local import tiering

from laketier import kit, spi
from laketier_conformance.stores import ObjectStore
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.s3.store import S3Store
from laketier_localfile.storage import LocalFileTieringFactory

MARK = "user_agent"
"""A setting of the library that any store takes."""


def options(named: str, store: ObjectStore) -> Mapping[str, str]:
    """For the harness."""
    given = {**store.usual_options, "timeout": "1s", MARK: named}
    return {f"storage.{name}": value for name, value in given.items()}


def in_a_bucket(
    named: str,
    committer: type[kit.ManifestCommitter] | None = None,
    **methods: Callable[..., Any],
) -> spi.LakeStoragePlugin:
    """The plugin."""
    for name, wrong in methods.items():
        _replace(named, name, wrong)

    if committer is None:

        class Stored(LocalFilePlugin):
            identifier = named

        return Stored()

    class Factory(LocalFileTieringFactory):
        def create_committer(self, context: spi.CommitterInitContext) -> spi.LakeCommitter[spi.WriteResult]:
            right: Any = super().create_committer(context)
            return committer(right.table, context)

    return tiering(named, Factory)


def _replace(named: str, name: str, wrong: Callable[..., Any]) -> None:
    right = getattr(S3Store, name)

    def call(self: S3Store, *arguments: Any) -> Any:
        return (wrong if self.storage.get(MARK) == named else right)(self, *arguments)

    setattr(S3Store, name, call)
