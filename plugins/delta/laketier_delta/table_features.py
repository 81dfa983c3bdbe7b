"""Features that a Delta table may ask of those who use it and that laketier does not have, and how to be rid of each.

`DROP FEATURE` of delta-spark has two forms. With `TRUNCATE HISTORY` it forgets the versions that need the feature, once
these are a day old. Without, it drops a feature that old versions need at once, and gives the table another one in its
place, `checkpointProtection`, which only the first form drops. Neither drops clustering, identity columns or column
defaults (tried with delta-spark 4.4.0): for these, and for what is not known here, there is only another table.
"""

from __future__ import annotations

from collections.abc import Iterable

_OF_HISTORY = {
    "checkpointProtection",
    "columnMapping",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
"""Old versions need them, so `TRUNCATE HISTORY` is for them."""
_AT_ONCE = {"inCommitTimestamp", "rowTracking"}
"""Dropped by `DROP FEATURE`, which takes no `TRUNCATE HISTORY` for these."""
_LAST = {"domainMetadata"}
"""Comes with others, so these go first."""


def advice(features: Iterable[str]) -> str:
    """What to do about a table with these features, as an imperative sentence."""
    names = set(features)
    known = _OF_HISTORY | _AT_ONCE | _LAST
    if not names or not names <= known:
        return "Write to a table without it, and read this one with the engine that made it, for example Spark."
    first = sorted(names & _AT_ONCE)
    last = sorted(names & _LAST)
    steps = [f"ALTER TABLE … DROP FEATURE {name}" for name in (*first, *last)]
    history = sorted(names & _OF_HISTORY)
    steps += [f"ALTER TABLE … DROP FEATURE {name} TRUNCATE HISTORY" for name in history]
    text = f"Run with Spark: {'; '.join(steps)}"
    if history:
        text += (
            ". Without TRUNCATE HISTORY it puts checkpointProtection in its place; with it the versions so far can't "
            "be read any more, and the first run says how long to wait before the second"
        )
    return f"{text}."
