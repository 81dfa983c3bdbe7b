"""A split has the address of its file in it, as the reader is somewhere else, and the plan is kept by the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from crooked import CrookedPlugin, CrookedStorage
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_secret_is_stored"
SAYS = "the message of a split has the secret of an option in it"


@dataclass(frozen=True)
class Options:
    user: str = spi.option("", "Who logs in.")
    password: spi.Secret | None = spi.option(None, "Their password.")


@dataclass(frozen=True)
class AddressedFile:
    path: str
    host: str


@dataclass(frozen=True)
class AddressedSource(Source):
    split_payload: ClassVar[type] = AddressedFile
    options: Options = Options()

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        password = "" if self.options.password is None else self.options.password.reveal()
        host = f"{self.options.user}:{password}@host"
        files = [AddressedFile(split.payload.path, host) for split in plan.splits]
        splits = [replace(split, payload=file) for split, file in zip(plan.splits, files, strict=True)]
        return replace(plan, splits=tuple(splits))


@dataclass(frozen=True)
class AddressedStorage(CrookedStorage):
    options: Options = Options()

    def source(self, table: spi.TableInfo) -> Source:
        return AddressedSource(self.parts.at(table), self.options)


class AddressedPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return AddressedStorage(Path(config.warehouse), self._parts, config.options)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return AddressedPlugin("names-its-password-in-splits")
