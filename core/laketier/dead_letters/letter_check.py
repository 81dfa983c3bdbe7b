"""Letters of a round that was killed before its rows were published, when it is run again.

Their records are passed over then, as they are in the dead-letter table already. But with other settings, or a schema
that a registry has by now, such a record may be a row when it is read again; it would be both, and a replay would
double it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from laketier.config import LakeConfig
from laketier.dead_letters.letters import Letter, in_chunks, scan_letters
from laketier.dead_letters.table import dead_letter_table
from laketier.spi import BadRecord, ConfigError, FeatureNotSupported, TableLog

_NAMED = 5


def check_still_letters(config: LakeConfig, log: TableLog, start: Mapping[str, int], known: Mapping[str, int]) -> None:
    """Raise `ConfigError` when a letter between ``start``, where the lake table has read to, and ``known``, where its
    letters go to, is a row by now. Looks at nothing unless a round was killed there. Driver.

    A source that can't decode what was kept of a record can't tell; then nothing is checked.
    """
    letters_at: set[tuple[str, int]] = set()
    still: set[tuple[str, int]] = set()
    try:
        for letters in in_chunks(_ahead(config, start, known)):
            letters_at |= {(letter.record.bucket, letter.record.offset) for letter in letters}
            unfit: list[BadRecord] = []
            for _ in log.decode([letter.record for letter in letters], on_bad_record=unfit.append):
                pass
            still |= {(record.bucket, record.offset) for record in unfit}
    except FeatureNotSupported:
        return
    fit = sorted(letters_at - still)
    if fit:
        places = ", ".join(f"{bucket}:{offset}" for bucket, offset in fit[:_NAMED])
        raise ConfigError(
            f"{len(fit)} dead letters of a round that was killed are rows by now: a replay would double them "
            f"(bucket:offset {places})",
            where=str(config.table),
            why="`read`, or a schema, was changed after the round published its letters and before its rows",
            fix="Put the former settings back until the round is through, then replay the letters. Or drop "
            f"{dead_letter_table(config.table)}: what is still bad goes there again.",
        )


def _ahead(config: LakeConfig, start: Mapping[str, int], known: Mapping[str, int]) -> Iterator[Letter]:
    for bucket, end in known.items():
        first = start.get(bucket, 0)
        if end > first:
            for letter in scan_letters(config, bucket=bucket) or ():
                if first <= letter.record.offset < end:
                    yield letter
