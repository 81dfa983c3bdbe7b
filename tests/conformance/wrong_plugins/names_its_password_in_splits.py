"""A split has the address of its file in it, as the reader is somewhere else, and the plan is kept by the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from connected import NOBODY, ConnectedPlugin, ConnectedStorage, Options
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_secret_is_stored"
SAYS = "the message of a split has the secret of an option in it"


@dataclass(frozen=True)
class AddressedFile:
    path: str
    host: str


@dataclass(frozen=True)
class AddressedSource(Source):
    split_payload: ClassVar[type] = AddressedFile
    options: Options = NOBODY

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        files = [AddressedFile(split.payload.path, f"{self.options.login}@host") for split in plan.splits]
        splits = [replace(split, payload=file) for split, file in zip(plan.splits, files, strict=True)]
        return replace(plan, splits=tuple(splits))


@dataclass(frozen=True)
class AddressedStorage(ConnectedStorage):
    def source(self, table: spi.TableInfo) -> Source:
        return AddressedSource(self.parts.at(table), self.options)


class AddressedPlugin(ConnectedPlugin):
    storage = AddressedStorage


@hookimpl
def laketier_format() -> ConnectedPlugin:
    return AddressedPlugin("names-its-password-in-splits")
