"""The toolbox for authors of formats and sources. It helps to keep the contract, and is no part of it. It may use
`spi`, pyarrow and the standard library."""

from laketier.kit.before_effect import before_effect
from laketier.kit.confine import confined, escapes
from laketier.kit.conform import conform
from laketier.kit.failpoints import FailpointError, failpoint
from laketier.kit.local_folder import LocalFolder
from laketier.kit.manifests import (
    ManifestCatalog,
    ManifestChanges,
    ManifestCommitter,
    ManifestFactory,
    ManifestFile,
    ManifestHistory,
    ManifestLayout,
    ManifestMaintenance,
    ManifestPlugin,
    ManifestSource,
    ManifestState,
    ManifestStorage,
    ManifestTable,
    warehouse_folder,
)
from laketier.kit.one_file import AttemptNames, OneFileWriter, OpenFile
from laketier.kit.parquet_reader import naming_damage
from laketier.kit.predicates import predicate_from_json, predicate_to_json
from laketier.kit.record import RecordStore
from laketier.kit.table_folder import TableFolder

__all__ = [
    "AttemptNames",
    "FailpointError",
    "LocalFolder",
    "ManifestCatalog",
    "ManifestChanges",
    "ManifestCommitter",
    "ManifestFactory",
    "ManifestFile",
    "ManifestHistory",
    "ManifestLayout",
    "ManifestMaintenance",
    "ManifestPlugin",
    "ManifestSource",
    "ManifestState",
    "ManifestStorage",
    "ManifestTable",
    "OneFileWriter",
    "OpenFile",
    "RecordStore",
    "TableFolder",
    "before_effect",
    "confined",
    "conform",
    "escapes",
    "failpoint",
    "naming_damage",
    "predicate_from_json",
    "predicate_to_json",
    "warehouse_folder",
]
