"""Formats that log in. What of them lets the password out is each one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crooked import CrookedPlugin, CrookedStorage

from laketier import spi


@dataclass(frozen=True)
class Options:
    user: str = spi.option("", "Who logs in.")
    password: spi.Secret | None = spi.option(None, "Their password.")

    @property
    def login(self) -> str:
        """Both, as a part of an address."""
        return f"{self.user}:{'' if self.password is None else self.password.reveal()}"


NOBODY = Options()


@dataclass(frozen=True)
class ConnectedStorage(CrookedStorage):
    options: Options = NOBODY


class ConnectedPlugin(CrookedPlugin):
    options_type = Options
    storage: ClassVar[type[ConnectedStorage]]

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return self.storage(Path(config.warehouse), self._parts, config.options)
