"""The schema is remembered from when the committer was made... by the name of the table alone."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Committer, Manifest

from laketier.registry import hookimpl


class CachedState(Manifest):
    @property
    def schema_fingerprint(self) -> str:
        return FIRST_SEEN.setdefault(self.home, super().schema_fingerprint)


FIRST_SEEN: dict[str, str] = {}


class CachingCommitter(Committer):
    def open(self) -> Manifest:
        return CachedState(**vars(super().open()))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("trusts-old-schemas", committer=CachingCommitter)
