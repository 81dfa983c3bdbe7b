"""Its own error names no password. Its cause, the error of the client below, has the address as it was used."""

from __future__ import annotations

from dataclasses import dataclass

from connected import NOBODY, ConnectedPlugin, ConnectedStorage, Options

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_text_for_people_shows_a_secret"
SAYS = "the text of a ConnectionError has the secret of an option in it"


@dataclass(frozen=True)
class ChainingCatalog(kit.ManifestCatalog):
    options: Options = NOBODY

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        try:
            return super().load_table(path)
        except spi.TableNotFound as error:
            cause = ConnectionError(f"404 from https://{self.options.login}@catalog/{path}")
            raise spi.TableNotFound(error.what, where=error.where) from cause


@dataclass(frozen=True)
class ChainingStorage(ConnectedStorage):
    def catalog(self) -> kit.ManifestCatalog:
        return ChainingCatalog(self.parts.table, self.warehouse, options=self.options)


class ChainingPlugin(ConnectedPlugin):
    storage = ChainingStorage


@hookimpl
def laketier_format() -> ConnectedPlugin:
    return ChainingPlugin("chains-its-password")
