"""Rows of staged files are put into the table, and the files deleted afterwards. So no commit names them, and who is
killed in between leaves some that may be published once more."""

from __future__ import annotations

from crooked import CrookedPlugin
from rows_on_a_server import Client, committed

from laketier.registry import hookimpl

CAUGHT_BY = "test_old_results.py::test_its_publish_was_killed"
SAYS = "ids that are there twice: "


class Copying(Client):
    def ask(self, request: object) -> object:
        return committed(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-what-it-left-behind", committer=Copying)
