"""Where data comes from: folders and lake tables, read whole (a `laketier.spi.LakeSource`), and logs, read on and on
(a `laketier.spi.TableLog`)."""

from laketier.sources.content import plan_content
from laketier.sources.folder import ParquetFolder
from laketier.sources.grouping import group_splits
from laketier.sources.log_round import LogRound
from laketier.sources.log_task import LogAnswer, LogTask, OnBadRecordPolicy, run_log_task
from laketier.sources.ranges import NextRange, OnExpired, next_range
from laketier.sources.round_settings import LogRoundResult, LogRoundSettings
from laketier.sources.scan import Scan, plan_scan
from laketier.sources.table import open_source, scan_request

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
    "Scan",
    "group_splits",
    "next_range",
    "open_source",
    "plan_content",
    "plan_scan",
    "run_log_task",
    "scan_request",
]
