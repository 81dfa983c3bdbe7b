"""Whether a file is a report of the conformance suite of today, and agrees with itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, ValidationError
from pydantic_core import ErrorDetails

from laketier.spi import DeliveryLevel, Feature
from laketier_conformance.manifest import expected_tests
from laketier_conformance.plugin import LANES
from laketier_conformance.proof import REPORT
from laketier_conformance.verdict import COMPLETE, CONFORMANT, FAIL, PARTIAL, Result, judge
from laketier_conformance.words import plainly

_MOST = 5
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_VERSION = r"[A-Za-z0-9][A-Za-z0-9.!+_-]*"

Name = Annotated[str, Field(pattern=f"^{_NAME}$")]
Distribution = Annotated[str, Field(pattern=f"^{_NAME}=={_VERSION}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class TestResult(_Strict):
    """Of one test."""

    outcome: Literal["passed", "refused", "failed", "skipped", "not interposed", "not run"]
    seconds: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)]
    detail: str = ""
    interposed: dict[str, NonNegativeInt] = {}
    places: dict[str, NonNegativeInt] = {}
    unseen: list[str] = []
    strides: list[str] = []


class Report(_Strict):
    """The keys of `laketier_conformance.proof.Proof.report`."""

    report: Annotated[int, Field(ge=REPORT, le=REPORT)]
    format: Name
    plugin: Distribution
    suite: Distribution
    versions: dict[Name, str]
    at: AwareDatetime
    seconds: Annotated[NonNegativeFloat, Field(allow_inf_nan=False)]
    seeds: dict[str, list[int]]
    options: list[str] = []
    lanes: Annotated[list[Literal[LANES]], Field(min_length=1)]
    delivery: Literal[tuple(level.value for level in DeliveryLevel)]
    features: dict[Literal[tuple(feature.value for feature in Feature)], str]
    shown: dict[str, Literal["full", "refused", "not shown", "failed"]]
    unknown_features: list[str]
    interposed: dict[str, NonNegativeInt]
    places: dict[str, NonNegativeInt]
    not_interposed: list[str]
    strides: list[str]
    verdict: Literal[(*COMPLETE, PARTIAL, FAIL)]
    conformant: bool
    as_asked: bool
    why: list[str]
    unproven: dict[str, str]
    results: dict[str, TestResult]


def faults(file: Path) -> list[str]:
    """What is wrong with a report: a line each, with the file and the field."""
    text = file.read_bytes()
    try:
        report = Report.model_validate_json(text)
        found = [*_disagreements(report, file.stem), *_not_plain(json.loads(text))]
    except ValidationError as error:
        found = [_told(each) for each in error.errors(include_url=False, include_context=False)]
    more = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
    return [f"{file.name}: {line}" for line in (*found[:_MOST], *more)]


def other_tests(report: Mapping[str, Any]) -> str:
    """How the tests of a report differ from those of today's MANIFEST; nothing where they don't."""
    today, then = set(expected_tests()), set(report["results"])
    if today == then:
        return ""
    return f"its tests are others: missing of today's MANIFEST: {len(today - then)}, unknown to it: {len(then - today)}"


def _disagreements(report: Report, named: str) -> Iterator[str]:
    if any(option.startswith("--lake-by-turns") for option in report.options):
        yield "options: the run had --lake-by-turns, so its formats left tests to each other: run make reports"
    if report.format != named:
        yield f"format: it is {report.format}, and the file is named after {named}"
    for name in ("laketier", "pyarrow", "python"):
        if name not in report.versions:
            yield f"versions: {name} is not there"
    if report.shown.keys() != report.features.keys():
        yield f"shown: it has {len(report.shown)} features, and `features` has {len(report.features)}, or others"
    results = [
        Result(name, each.outcome, detail=each.detail, unseen=dict.fromkeys(each.unseen))
        for name, each in report.results.items()
    ]
    judged = judge(results, report.results, pytest.ExitCode.OK).name
    allowed = {FAIL: (FAIL,), PARTIAL: (PARTIAL, FAIL)}.get(judged, (judged, PARTIAL, FAIL))
    if report.verdict not in allowed:
        yield f"verdict: it is {report.verdict}, and its results make it {judged}"
    if report.conformant != (report.verdict in COMPLETE):
        yield f"conformant: it is {report.conformant}, and the verdict is {report.verdict}"
    if report.conformant and not report.as_asked:
        yield "as_asked: it is False, and the format is conformant"
    if bool(report.why) != (report.verdict != CONFORMANT):
        yield f"why: it gives {len(report.why)} reasons for the verdict {report.verdict}"


def _not_plain(words: Any, where: str = "") -> Iterator[str]:
    """Texts of others that no run writes into a report as they are: of many lines, or that act upon a terminal."""
    if isinstance(words, dict):
        for key, value in words.items():
            field = f"{where}.{plainly(key)}" if where else plainly(key)
            if plainly(key) != key:
                yield f"{field}: the key is no plain text"
            yield from _not_plain(value, field)
    elif isinstance(words, list):
        for value in words:
            yield from _not_plain(value, where)
    elif isinstance(words, str) and plainly(words) != words:
        yield f"{where}: it is no plain text: {plainly(words)[:100]}"


def _told(error: ErrorDetails) -> str:
    where = plainly(".".join(map(str, error["loc"])))
    found = "" if error["type"] == "missing" or not where else f", found {plainly(repr(error['input']))[:100]}"
    return f"{where or 'the whole'}: {plainly(error['msg'])}{found}"
