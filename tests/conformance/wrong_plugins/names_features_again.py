"""A table with times without a zone needs a feature, and whoever creates it commits that. Also who finds it there."""

from __future__ import annotations

import pyarrow.types as pt
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests.committer import next_manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_creating_again_commits_nothing"
SAYS = "the snapshot of a table with a timestamp[us] that is created again, as it is"


class NamingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        if not any(pt.is_timestamp(field.type) and field.type.tz is None for field in info.schema):
            return info
        manifests = self.table_type(self.store(path)).manifests()
        head, _ = manifests.current()
        manifests.append(next_manifest(head, commit_id=spi.new_attempt_id(), kind="alter"))
        return self.load_table(path)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("names-features-again", catalog=NamingCatalog)
