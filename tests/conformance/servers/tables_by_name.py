"""A server that knows its warehouses by names, and lets in the accounts that it knows. What it says of others, it says
in words of its own. All of it is a folder here."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crooked import CrookedPlugin, CrookedStorage

from laketier import spi
from laketier.registry import hookimpl
from laketier.spi.options import option
from laketier_conformance.harness import Warehouse

KNOWN = "WAREHOUSES_BY_NAME"
ACCOUNTS = ("writer", "anybody")


@dataclass(frozen=True)
class Options:
    account: str = option("writer", "Whom the server lets in.")


class ByName(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        options: Any = config.options
        if "/" in config.warehouse or ":" in config.warehouse or not config.warehouse.strip():
            raise spi.ConfigError(
                "the warehouse is no name of one", where="lake.warehouse", fix="Ask the server's owner."
            )
        if options.account not in ACCOUNTS:
            why = f"role {options.account!r} does not exist"
            raise spi.StorageError("the server refuses it", where=config.warehouse, why=why)
        return super().create_storage(spi.LakeStorageConfig(os.environ[f"{KNOWN}_{config.warehouse}"], Options()))


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        name = f"w{secrets.token_hex(8)}"
        os.environ[f"{KNOWN}_{name}"] = str(folder / "warehouse")
        return Warehouse(name)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return ByName("tables-by-name")
