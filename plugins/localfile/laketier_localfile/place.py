"""The place of a table, from the text that `TableInfo.location` has: a folder on a disk, or one in S3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from laketier.kit.manifests import warehouse_folder
from laketier.kit.table_store import TableStore, Warehouse
from laketier.kit.warehouse import local_warehouse
from laketier.spi import ConfigError, FeatureNotSupported, Passthrough
from laketier_localfile.features import FEATURES, IDENTIFIER

if TYPE_CHECKING:
    from laketier_localfile.options import LocalFileOptions
    from laketier_localfile.s3.store import S3Store

_IN_S3 = "s3://"
_COPIED_AT_ONCE = 5 << 30
"""S3 copies no larger object in one request, and a published file is copied to its place."""


def place_of(location: str, storage: Passthrough) -> Path | TableStore:
    """The place of a table. Asks nothing of it."""
    if not location.startswith(_IN_S3):
        return Path(location)
    from laketier_localfile.s3.store import S3Warehouse

    return S3Warehouse.table_at(location, storage)


def warehouse_of(warehouse: str, options: LocalFileOptions) -> Path | Warehouse:
    """What ``lake.warehouse`` names. Raises `ConfigError` and `FeatureNotSupported`."""
    if local_warehouse(warehouse) is not None:
        return warehouse_folder(warehouse, format=IDENTIFIER, features=FEATURES)
    if options.open_files:
        raise FeatureNotSupported(
            "files that stay open across epochs on S3",
            format=IDENTIFIER,
            reason="an object can't be appended to",
            fix="Leave lake.localfile.open-files out: small files are folded, see lake.localfile.fold-files.",
        )
    if options.target_file_bytes > _COPIED_AT_ONCE - (1 << 30):
        raise ConfigError(
            f"lake.localfile.target-file-bytes is {options.target_file_bytes}",
            why="S3 copies objects of 5 GiB at most in one request, and published files are copied to their place",
            fix="Set it to 4 GiB or less.",
        )
    from laketier_localfile.s3.store import S3Warehouse

    return S3Warehouse.of(warehouse, options.storage)


def in_s3(place: Path | TableStore) -> S3Store | None:
    """The place as a store of S3. None where it is on a disk."""
    if isinstance(place, Path) or place.folder is not None:
        return None
    from laketier_localfile.s3.store import S3Store

    assert isinstance(place, S3Store)
    return place
