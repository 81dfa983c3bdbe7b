"""Requests to another process that are about indexes."""

from __future__ import annotations

import base64
import pickle
import sys
from typing import Any, TextIO

from laketier.spi import IndexMode, IndexSpec
from laketier_conformance.asked import say, switch_on
from laketier_conformance.documents import Documents, kind_of_numbers
from laketier_conformance.lake import Lake


def documents(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """Several epochs of texts, one after the other."""
    texts = Documents(lake.table(request["table"]), {}, pipeline=request["pipeline"])
    say(answers, {"ready": True})
    sys.stdin.readline()
    return {"outcomes": [texts.append(epoch, ids).name for epoch, ids in enumerate(request["epochs"])]}


def publish_index(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Publish a plan and what its tasks built, which came as bytes."""
    plan, built = pickle.loads(base64.b64decode(request["sent"]))  # noqa: S301 - as an engine sends it
    switch_on(request)
    return {"segments": list(lake.storage.indexer(lake.table(request["table"]).info).publish(plan, built).segments)}


def index(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Build an index of ``id`` in two parts, in place of the one that is there, and publish it."""
    indexer = lake.storage.indexer(lake.table(request["table"]).info)
    kind = kind_of_numbers(indexer, "id")
    plan = indexer.plan(IndexSpec(request["name"], "id", kind), 2, IndexMode.REPLACE)
    info = indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
    return {"rows": info.rows_indexed}


def drop_index(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Drop an index."""
    lake.storage.indexer(lake.table(request["table"]).info).drop(request["name"])
    return {"dropped": request["name"]}
