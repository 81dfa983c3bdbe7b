"""The failpoints of the protocol, in the order in which a round passes them.

The mechanism lives in `laketier.kit.failpoints`, as plugins and writers have points of their own.
"""

from __future__ import annotations

from laketier.kit.failpoints import VARIABLE, FailpointError, failpoint

ROUND_OPENED = "round.opened"
"""After the table was opened and the token decided, before anything is written."""
PUBLISH_BEFORE = "publish.before"
"""After decision and checks, before the plugin's `publish`. ``error`` here is an error before the effect."""
PUBLISH_AFTER = "publish.after"
"""After `publish` returned. ``error`` here is the applied effect whose answer was lost."""
ACK_BEFORE = "ack.before"
"""After the round is resolved, before the engine is told."""
DISCARD_BEFORE = "discard.before"
"""Before files that certainly did not land are deleted."""

ORPHANS_LISTED = "orphans.listed"
"""After orphans were listed for the first time."""
ORPHANS_FENCED = "orphans.fenced"
"""After the horizon was raised, before orphans are listed again."""
ORPHANS_SELECTED = "orphans.selected"
"""After that, before the first is deleted."""

PROTOCOL = (ROUND_OPENED, PUBLISH_BEFORE, PUBLISH_AFTER, ACK_BEFORE, DISCARD_BEFORE)
COLLECTION = (ORPHANS_LISTED, ORPHANS_FENCED, ORPHANS_SELECTED)

__all__ = [
    "ACK_BEFORE",
    "COLLECTION",
    "DISCARD_BEFORE",
    "ORPHANS_FENCED",
    "ORPHANS_LISTED",
    "ORPHANS_SELECTED",
    "PROTOCOL",
    "PUBLISH_AFTER",
    "PUBLISH_BEFORE",
    "ROUND_OPENED",
    "VARIABLE",
    "FailpointError",
    "failpoint",
]
