"""Names the rows that a plan reads."""

from __future__ import annotations

import hashlib
import json

from laketier.kit.predicates import predicate_to_json
from laketier.spi import ScanPlan, ScanRequest, to_plain


def plan_content(request: ScanRequest, plan: ScanPlan) -> str:
    """A digest of what a plan reads, for `Token.content`: the same again means the same rows.

    A table's snapshot never changes, so its id stands for its splits; a folder's plan has none, and its splits name
    each file's size and time.
    """
    described = {
        "columns": request.columns,
        "filters": [predicate_to_json(predicate) for predicate in request.filters],
        "snapshot": plan.snapshot_id,
        "splits": [] if plan.snapshot_id is not None else [to_plain(split) for split in plan.splits],
    }
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
