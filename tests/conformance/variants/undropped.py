"""The local-file format as one that declares no drop: it is asked for in stores, too."""

from __future__ import annotations

from typing import Any

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.features import FEATURES
from laketier_localfile.plugin import LocalFilePlugin

NAME = "undropped"
DECLARED = {**FEATURES, spi.Feature.DROP_TABLE: spi.unsupported("this one keeps all tables")}


class UndroppedPlugin(LocalFilePlugin):
    """The format under another name."""

    identifier, features = NAME, DECLARED

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        made = storage.catalog

        def catalog() -> Any:
            right = made()
            object.__setattr__(right, "drop_table", _refuse)
            return right

        object.__setattr__(storage, "catalog", catalog)
        return storage  # type: ignore[no-any-return]


def _refuse(*_: Any, **__: Any) -> None:
    spi.require(NAME, DECLARED, spi.Feature.DROP_TABLE)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return UndroppedPlugin()
