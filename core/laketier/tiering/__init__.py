"""The exactly-once protocol, without an engine: rounds, the publish loop, recovery, failpoints; it may use `tables` and
the rooms below that, and knows no source."""

from laketier.tiering.publish import RoundOutcome, RoundResult
from laketier.tiering.retries import RetryPolicy
from laketier.tiering.round import StagedTask, TieringRound, write_task

__all__ = ["RetryPolicy", "RoundOutcome", "RoundResult", "StagedTask", "TieringRound", "write_task"]
