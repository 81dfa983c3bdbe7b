"""A table of data files and a chain of manifests on a local or mounted file system, for formats with files and
without an atomic log. See `ManifestTable`."""

from laketier.kit.manifests.catalog import ManifestCatalog
from laketier.kit.manifests.chain import files_before, written_with
from laketier.kit.manifests.changes import ManifestChanges
from laketier.kit.manifests.committer import ManifestCommitter
from laketier.kit.manifests.expiry import has_expired
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.folding import FoldSettings
from laketier.kit.manifests.growth import Growth, growth_of, growth_text
from laketier.kit.manifests.history import ManifestHistory
from laketier.kit.manifests.layout import ManifestLayout
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.maintenance import ManifestMaintenance
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.rollup import files_at
from laketier.kit.manifests.snapshot import ManifestSnapshot
from laketier.kit.manifests.source import ManifestFile, ManifestSource, whole_file
from laketier.kit.manifests.storage import ManifestFactory, ManifestPlugin, ManifestStorage, warehouse_folder
from laketier.kit.manifests.table import ManifestState, ManifestTable
from laketier.kit.manifests.versions import FORMAT_DETAIL, FORMAT_PROPERTY, OUTSIDE_PROPERTY

__all__ = [
    "FORMAT_DETAIL",
    "FORMAT_PROPERTY",
    "OUTSIDE_PROPERTY",
    "FileEntry",
    "FoldSettings",
    "Growth",
    "Manifest",
    "ManifestCatalog",
    "ManifestChanges",
    "ManifestCommitter",
    "ManifestFactory",
    "ManifestFile",
    "ManifestHistory",
    "ManifestLayout",
    "ManifestLog",
    "ManifestMaintenance",
    "ManifestPlugin",
    "ManifestSnapshot",
    "ManifestSource",
    "ManifestState",
    "ManifestStorage",
    "ManifestTable",
    "files_at",
    "files_before",
    "growth_of",
    "growth_text",
    "has_expired",
    "warehouse_folder",
    "whole_file",
    "written_with",
]
