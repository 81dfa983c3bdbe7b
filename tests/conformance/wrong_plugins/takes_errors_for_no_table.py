"""Whatever the client of the catalog raises while a table is loaded counts as "there is no such table"."""

from __future__ import annotations

import os
import pickle
import socket

from crooked import CrookedPlugin
from rows_on_a_server import ADDRESS
from rows_on_a_server import Harness as Server

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_effect_of_a_round_fails"
SAYS = "the round ended in TableNotFound, and that was not to be seen"


class AskingCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        try:
            with socket.create_connection(("127.0.0.1", int(os.environ[ADDRESS]))) as connection:
                connection.sendall(pickle.dumps(None))
                connection.recv(100)
        except OSError as error:
            raise spi.TableNotFound("there is no such table", where=str(path)) from error
        return super().load_table(path)


class Harness(Server):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-errors-for-no-table", catalog=AskingCatalog)
