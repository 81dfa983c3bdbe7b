"""The local-file format as one that tells a failure before a table is made as that of any other step: nothing began."""

from __future__ import annotations

from typing import Any

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.plugin import LocalFilePlugin


class BeginsNothingPlugin(LocalFilePlugin):
    """The format under another name."""

    identifier = "begins-nothing"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        made = storage.catalog

        def catalog() -> Any:
            right = made()
            create = right.create_table

            def create_table(path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
                try:
                    return create(path, descriptor)  # type: ignore[no-any-return]
                except (OSError, spi.StorageError) as error:
                    fix = "Remove the cause and run it again."
                    raise spi.NotBegun("no table is made", where=str(path), why=str(error), fix=fix) from error

            object.__setattr__(right, "create_table", create_table)
            return right

        object.__setattr__(storage, "catalog", catalog)
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return BeginsNothingPlugin()
