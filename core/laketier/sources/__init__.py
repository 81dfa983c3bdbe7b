"""Where data comes from: folders and lake tables, read whole (a `laketier.spi.LakeSource`), and logs, read on and on
(a `laketier.spi.TableLog`)."""

from laketier.sources.folder import ParquetFolder
from laketier.sources.log_round import LogRound
from laketier.sources.log_task import LogAnswer, LogTask, OnBadRecordPolicy, run_log_task
from laketier.sources.ranges import NextRange, OnExpired, next_range
from laketier.sources.round_settings import LogRoundResult, LogRoundSettings

__all__ = [
    "LogAnswer",
    "LogRound",
    "LogRoundResult",
    "LogRoundSettings",
    "LogTask",
    "NextRange",
    "OnBadRecordPolicy",
    "OnExpired",
    "ParquetFolder",
    "next_range",
    "run_log_task",
]
