"""A fresh state refuses a table that lost its newest commits. The handle of one that was loaded then tells of it as if
it were whole."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_a_file_of_the_newest_commit_is_damaged[gone]"
SAYS = "and the state of the table that is loaded then tells what a fresh state does: expected 'a refusal, RolledBack'"


class TrustingCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        found = super().load_table(path)
        manifests = self.table_type(self.store(path)).manifests()
        head, _ = manifests.current()
        return found.with_handle(kit.ManifestState(manifests, head, found.descriptor))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("hands-over-what-was-taken-back", catalog=TrustingCatalog)
