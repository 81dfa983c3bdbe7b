"""A log into a lake table: ranges, tasks, merges by key, schema, commit; it may use `dead_letters` and the rooms below
that, and opens sources through `registry`, never a connector."""

from laketier.rounds.log_round import LogRound
from laketier.rounds.log_task import LogAnswer, LogTask, OnBadRecordPolicy, run_log_task
from laketier.rounds.ranges import NextRange, OnExpired, next_range
from laketier.rounds.round_settings import LogRoundResult, LogRoundSettings

__all__ = [
    "LogAnswer",
    "LogRound",
    "LogRoundResult",
    "LogRoundSettings",
    "LogTask",
    "NextRange",
    "OnBadRecordPolicy",
    "OnExpired",
    "next_range",
    "run_log_task",
]
