"""Checks the dead letters of a round that was killed before it published its rows.

The next round reads the same records again and does not report them twice. With other settings, or a newer schema from
a registry, such a record may be a row that can be stored. It would then be a row and a dead letter, and a replay would
append it again.
"""

from __future__ import annotations

from collections.abc import Iterable

from laketier.config import LakeConfig
from laketier.dead_letters.records import DeadLetter, in_chunks
from laketier.dead_letters.table import dead_letter_table
from laketier.dead_letters.unfit import unfit
from laketier.spi import ConfigError, FeatureNotSupported, TableLog
from laketier.tiering.unstorable import Trial

_NAMED = 5


def check_still_bad(config: LakeConfig, log: TableLog, ahead: Iterable[DeadLetter], trial: Trial) -> None:
    """Check that the dead letters of a round that was killed are no rows by now that the table can store. Driver. A
    source that can't decode dead letters is not checked, and ``ahead`` not taken to its end.

    Args:
        config: The lake table.
        log: The log of its source's table.
        ahead: The dead letters beyond where the lake table has read to.
        trial: Attempts to write to the lake table.

    Raises:
        ConfigError: One of ``ahead`` is a row by now.
    """
    found: set[tuple[str, int]] = set()
    still: set[tuple[str, int]] = set()
    try:
        for dead_letters in in_chunks(ahead):
            found |= {(dead_letter.record.bucket, dead_letter.record.offset) for dead_letter in dead_letters}
            bad = unfit(log, [dead_letter.record for dead_letter in dead_letters], trial)
            still |= {(record.bucket, record.offset) for record in bad.values()}
    except FeatureNotSupported:
        return
    fit = sorted(found - still)
    if fit:
        places = ", ".join(f"{bucket}:{offset}" for bucket, offset in fit[:_NAMED])
        raise ConfigError(
            f"{len(fit)} dead letters of a killed round can be decoded and stored now: a replay would append them "
            f"twice (bucket:offset {places})",
            where=str(config.table),
            why="`read`, a schema or an option of the lake table changed after the round published its dead letters "
            "and before its rows",
            fix="Put the former settings back until the round is through, then replay the dead letters. Or drop "
            f"{dead_letter_table(config.table)}: records that are still bad are stored there again.",
        )
