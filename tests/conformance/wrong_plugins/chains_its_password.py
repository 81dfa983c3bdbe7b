"""Its own error names no password. Its cause, the error of the client below, has the address as it was used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_text_for_people_shows_a_secret"
SAYS = "the text of a ConnectionError has the secret of an option in it"


@dataclass(frozen=True)
class Options:
    user: str = spi.option("", "Who logs in.")
    password: spi.Secret | None = spi.option(None, "Their password.")


@dataclass(frozen=True)
class ConnectedCatalog(kit.ManifestCatalog):
    options: Options = Options()

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        try:
            return super().load_table(path)
        except spi.TableNotFound as error:
            password = "" if self.options.password is None else self.options.password.reveal()
            cause = ConnectionError(f"404 from https://{self.options.user}:{password}@catalog/{path}")
            raise spi.TableNotFound(error.what, where=error.where) from cause


@dataclass(frozen=True)
class ConnectedStorage(CrookedStorage):
    options: Options = Options()

    def catalog(self) -> kit.ManifestCatalog:
        return ConnectedCatalog(self.parts.table, self.warehouse, options=self.options)


class ConnectedPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return ConnectedStorage(Path(config.warehouse), self._parts, config.options)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return ConnectedPlugin("chains-its-password")
