"""The schema is remembered from when the committer was made... by the name of the table alone."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_stale_states.py::test_a_schema_that_changed_after_staging"
SAYS = "files are committed that were staged before a column was added: expected TableChanged, and no error was raised"


class CachedState(kit.ManifestState):
    @property
    def schema_fingerprint(self) -> str:
        return FIRST_SEEN.setdefault(str(self.manifests.location), super().schema_fingerprint)


FIRST_SEEN: dict[str, str] = {}


class CachingCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        return CachedState(**vars(super().open()))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("trusts-old-schemas", committer=CachingCommitter)
