"""Guards taken away, to see that the matrix notices: each is named by the setting ``broken`` of a life."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def publish_ignores_done() -> None:
    """An epoch that is in the table already is published again."""
    from laketier.spi import Decision

    for module in ("laketier.tiering.publish", "laketier.tiering.round"):
        import_module(module).decide = lambda watermark, token: Decision.PROCEED  # type: ignore[attr-defined]


def commit_forgets_a_task() -> None:
    """The result of the last task is left out."""
    from laketier.tiering import TieringRound

    whole = TieringRound.commit_messages

    def half(self: TieringRound, messages: Iterable[bytes]) -> Any:
        return whole(self, list(messages)[:-1])

    TieringRound.commit_messages = half  # type: ignore[method-assign]


def unknown_is_taken_for_lost() -> None:
    """A commit that failed in an unknown way is taken for one that did not land, and its files are deleted. Each format
    looks before it deletes; that of Iceberg, which keeps files where they were staged, sees nothing here."""
    publish: Any = import_module("laketier.tiering.publish")
    import_module("laketier_iceberg.references").References.names = frozenset()

    def lost(self: Any, error: Exception) -> None:
        publish.discard(self.committer, self.results)
        raise error

    publish._Loop._unknown = lost


def all_of_an_open_file_is_finished() -> None:
    """Who finishes an open file copies what lies behind the recorded length, too."""
    growing: Any = import_module("laketier_localfile.growing")
    copy = growing.copy_bytes
    growing.copy_bytes = lambda source, target, size: copy(source, target, os.fstat(source).st_size)


BROKEN: dict[str, Callable[[], None]] = {
    action.__name__: action
    for action in (
        publish_ignores_done,
        commit_forgets_a_task,
        unknown_is_taken_for_lost,
        all_of_an_open_file_is_finished,
    )
}
