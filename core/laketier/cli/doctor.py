"""``laketier doctor``: what this machine and this environment lack."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow
import typer

import laketier
from laketier.cli.lakes import Json, LakeOptions, takes_lake
from laketier.cli.maintain import horizon_text
from laketier.cli.shown import console, print_json
from laketier.registry import Lake, installed_formats, load_format
from laketier.spark.session import require_java
from laketier.spi import ConfigError, FeatureNotSupported, LaketierError, LakeTieringFactory, TableInfo
from laketier.tiering import TieringRound
from laketier.tiering.horizon import Horizon, show_horizon

EPILOG = "Example: [bold]laketier doctor[/], or [bold]laketier doctor sales.orders -c lake.yaml[/] to check a table too"


@dataclass(frozen=True)
class Finding:
    """One line of the report. ``level`` is ok, advice or problem."""

    level: str
    subject: str
    finding: str
    fix: str = ""


@takes_lake
def doctor(options: LakeOptions, json: Json = False) -> None:
    """Check Python, Java, Spark, the installed formats, and a table if one is named. Exit code 2 on a problem."""
    findings = [*_python(), *_java(), *_spark(), *_formats()]
    if options.table or options.config:
        findings += _table(options)
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        colours = {"ok": "green", "advice": "yellow", "problem": "red"}
        out = console()
        for finding in findings:
            out.print(f"[{colours[finding.level]}]{finding.level:8}[/] [bold]{finding.subject}[/]: ", end="")
            out.print(finding.finding + (f". {finding.fix}" if finding.fix else ""), markup=False, soft_wrap=True)
    if any(finding.level == "problem" for finding in findings):
        raise typer.Exit(2)


def _python() -> Iterator[Finding]:
    yield Finding("ok", "laketier", f"{laketier.__version__} on Python {platform.python_version()} ({sys.executable})")
    yield Finding("ok", "pyarrow", pyarrow.__version__)


def _java() -> Iterator[Finding]:
    try:
        require_java()
    except ConfigError as error:
        yield Finding("problem", "Java", str(error))
    else:
        yield Finding("ok", "Java", os.environ.get("JAVA_HOME") or shutil.which("java") or "")


def _spark() -> Iterator[Finding]:
    if importlib.util.find_spec("pyspark") is None:
        yield Finding("problem", "Spark", "pyspark is not installed", "Install laketier's extra `spark`.")
        return
    yield Finding("ok", "Spark", f"pyspark {importlib.metadata.version('pyspark')}")
    if importlib.util.find_spec("pandas") is None:
        yield Finding("problem", "pandas", "not installed, and pyspark needs it", "Install laketier's extra `spark`.")
    elif int(importlib.metadata.version("pandas").split(".")[0]) >= 3:
        yield Finding("problem", "pandas", "version 3 or newer", "Install laketier's extra `spark`: it pins pandas<3.")
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen is None:
        yield Finding(
            "advice",
            "PYSPARK_PYTHON",
            "not set: workers take `python3` from PATH, which may be another one",
            f"Set PYSPARK_PYTHON={sys.executable} for jobs of your own; `laketier run` does.",
        )
    elif shutil.which(chosen) is None:
        yield Finding("problem", "PYSPARK_PYTHON", f"{chosen} is not a program", f"Set it to {sys.executable}.")
    yield _arrow_setting()


def _arrow_setting() -> Finding:
    from laketier.spark.arrow_batches import ADVICE, MAX_BYTES

    defaults = _spark_defaults()
    if MAX_BYTES in defaults:
        return Finding("ok", MAX_BYTES, f"{defaults[MAX_BYTES]} in spark-defaults.conf")
    return Finding("advice", MAX_BYTES, "not set in spark-defaults.conf", ADVICE)


def _spark_defaults() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    file = Path(folder) / "spark-defaults.conf"
    if not file.is_file():
        return {}
    lines = (line.split(None, 1) for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    return {words[0]: words[1].strip() for words in lines if len(words) == 2}


def _formats() -> Iterator[Finding]:
    offers = installed_formats()
    if not offers:
        yield Finding(
            "problem", "formats", "none installed", "Install a plugin, for example `pip install ./plugins/…`."
        )
    for name in dict.fromkeys(offer.name for offer in offers):
        try:
            plugin = load_format(name)
        except LaketierError as error:
            yield Finding("problem", f"format {name}", str(error))
        else:
            yield Finding("ok", f"format {name}", f"{type(plugin).__module__}, {plugin.delivery.value}")


def _table(options: LakeOptions) -> Iterator[Finding]:
    try:
        lake, info = options.opened()
        _begin(lake.tiering_factory(info))
        horizon = show_horizon(lake.state(info))
    except LaketierError as error:
        yield Finding("problem", "table", str(error))
        return
    yield Finding("ok", "table", f"{info.path}, {lake.config.format}, snapshot {info.snapshot_id}: ready for rounds")
    yield _horizon(options, horizon)
    yield from _metadata(options, lake, info)


def _begin(factory: LakeTieringFactory[Any]) -> None:
    """Raises what a round would raise that begins now."""
    tiering = TieringRound(factory)
    try:
        tiering.begin()
    finally:
        tiering.close()


def _horizon(options: LakeOptions, horizon: Horizon | None) -> Finding:
    if horizon is None or not horizon.ahead:
        return Finding("ok", "orphans", horizon_text(horizon))
    return Finding(
        "problem",
        "orphans",
        f"{horizon_text(horizon)}; rounds that were under way when it was set are refused, and what fails now is not "
        "collected until then, because a clock was ahead then, or this one is behind",
        f"Set the clocks right, then run `laketier maintain horizon --lower {options.words}`.",
    )


def _metadata(options: LakeOptions, lake: Lake, info: TableInfo) -> Iterator[Finding]:
    """What other tools stumble over."""
    try:
        for each in lake.maintenance(info).findings():
            fix = each.fix or f"Run `laketier maintain repair --apply {options.words}`."
            yield Finding("problem", "table", f"{each.what}: {each.why}", fix)
    except FeatureNotSupported:
        return  # the format has no maintenance
    except LaketierError as error:
        yield Finding("problem", "table", str(error))
