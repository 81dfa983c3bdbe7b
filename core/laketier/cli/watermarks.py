"""Watermarks as the commands show them."""

from __future__ import annotations

import datetime
from typing import Any

from laketier.spi import Watermark


def watermark_document(watermark: Watermark | None) -> dict[str, Any] | None:
    """For machines."""
    if watermark is None:
        return None
    token = watermark.token
    return {
        "pipeline": token.pipeline,
        "run": token.run,
        "epoch": token.epoch,
        "fence": token.fence,
        "content": token.content,
        "rows": watermark.rows,
        "committed_at": watermark.committed_at,
        "snapshot": watermark.snapshot_id,
        "forgotten": watermark.forgotten,
        "renamed_to": watermark.renamed_to,
    }


def watermark_text(pipeline: str | None, watermark: Watermark | None) -> str:
    """For people: one line."""
    if pipeline is None:
        return "name a pipeline to see it: --set lake.pipeline=…"
    if watermark is None:
        return f"pipeline {pipeline} never published here"
    token = watermark.token
    forgotten = " (forgotten)" if watermark.forgotten else ""
    if watermark.renamed_to is not None:
        forgotten = f" (goes on as {watermark.renamed_to})"
    return (
        f"pipeline {pipeline} at epoch {token.epoch} of run {token.run}{forgotten}: {watermark.rows} rows, "
        f"{moment(watermark.committed_at)}, snapshot {watermark.snapshot_id}"
    )


def moment(milliseconds: int | None) -> str:
    """Milliseconds since 1970 as UTC text."""
    if milliseconds is None:
        return ""
    then = datetime.datetime.fromtimestamp(milliseconds / 1000, tz=datetime.UTC)
    return then.isoformat(sep=" ", timespec="seconds")
