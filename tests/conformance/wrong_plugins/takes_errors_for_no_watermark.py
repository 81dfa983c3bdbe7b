"""Watermarks are asked of a server. Whatever the client raises counts as "there is none"."""

from __future__ import annotations

import os
import pickle
import socket

from crooked import CrookedPlugin
from rows_on_a_server import ADDRESS
from rows_on_a_server import Harness as Server

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_request_of_a_replay_fails"
SAYS = "in a replay: the rows: expected 5 rows, found 10"


class AskingState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        try:
            with socket.create_connection(("127.0.0.1", int(os.environ[ADDRESS]))) as connection:
                connection.sendall(pickle.dumps(None))
                connection.recv(100)
        except OSError:
            return None
        return super().watermark(pipeline)


class AskingCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        state = super().open()
        object.__setattr__(state, "__class__", AskingState)
        return state


class Harness(Server):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-errors-for-no-watermark", committer=AskingCommitter)
