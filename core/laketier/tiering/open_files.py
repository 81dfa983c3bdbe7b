"""Files that stay open across epochs, as an engine sees them: who may ask for them, and rounds without rows that finish
what got old."""

from __future__ import annotations

import os
import resource
from typing import Any

from laketier.spi import ConfigError, LakeTieringFactory, OpenFilesSlot, WriterInitContext, new_attempt_id, unpack
from laketier.tiering.publish import RoundResult
from laketier.tiering.round import TieringRound, write_task

_SHARE = 2
"""Open files may take the process to a half of its descriptors; rounds need the others."""


def is_crowded() -> bool:
    """Whether the process has so many files open that no more should stay open across epochs."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        return most != resource.RLIM_INFINITY and len(os.listdir("/dev/fd")) > most // _SHARE
    except OSError:
        return True  # there is none left to look with


def refuse_open_files(factory: LakeTieringFactory[Any], *, where: str, why: str) -> None:
    """Raise `ConfigError` where options ask for files that stay open across epochs. Driver, before anything is written,
    for engines that give writers no `OpenFilesSlot`. ``why``: a clause."""
    if factory.leaves_files_open:
        raise ConfigError(
            "files can't stay open across epochs here (an option named open-files asks for that)",
            where=where,
            why=why,
            fix="Leave the option out: small files are then written as one. Or write from a process that lives over "
            "epochs: `laketier serve --engine local`, or `laketier.open_writer`.",
        )


def finish_open_files(factory: LakeTieringFactory[Any], slot: OpenFilesSlot, *, ending: bool) -> RoundResult | None:
    """Finish what is due of the files in ``slot``, or with ``ending`` all of them, in a commit without rows and without
    a token. Driver, in the process that has them. None where there is nothing to finish. Raises as
    `TieringRound.commit`; the files are then given up, and whoever commits next finishes them."""
    if slot.is_empty or not (ending or slot.is_due):
        return None
    slot.ending = slot.ending or ending
    message = write_task(factory, [], WriterInitContext(attempt=new_attempt_id(), open_files=slot))
    result = unpack(factory.write_result_serializer, message)
    # Of files that somebody else has finished meanwhile, nothing is left to be said.
    return TieringRound(factory).commit([result]) if result.files else None
