"""Which rule of the contract the code of a mutant serves, told by where it is."""

from __future__ import annotations

import re

_RULES = (
    ("what is acknowledged is durable", r"durable|fsync|sync_names|\.finish|settle"),
    ("orphans and discards: only what is nobody's", r"discard|staged|orphan|maintenance|removal|expiry|collect|abort"),
    ("a path stays within its table", r"location|local_folder|confine|access|references|neighbours|refuse_links"),
    ("overwrites and upserts", r"upsert|keyed|overwrite|replaced|_removed|removals"),
    ("one epoch, one atomic commit", r"publish|commit|append|check_staged|transaction|retries|rollup|round"),
    ("the watermark and the look before a commit", r"watermark|token|state|\.open|head|hint|pipelines|horizon"),
    ("history and time travel", r"history|as_of|snapshot|\.at$|times|clock"),
    ("changes and the feed", r"change|feed"),
    ("tables: create, alter, drop", r"catalog|create|drop|alter|layout|schema|descriptor|table|protocol|spec|features"),
    ("reads and filters", r"source|read|scan|split|filter|pruning|predicate|stats|metrics|partition|projection|log"),
    (
        "staging and types",
        r"writer|write|parquet|types|nested|conform|nulls|serializer|results|entry|manifest|document",
    ),
)
OTHER = "the rest"
RULES = (*(name for name, _ in _RULES), OTHER)


def rule_of(module: str, function: str) -> str:
    """The first rule that the function's name speaks of, else the module's."""
    if module.endswith(".durable"):
        return RULES[0]
    for text in (function, module.rpartition(".")[2], module):
        for name, pattern in _RULES:
            if re.search(pattern, text, re.IGNORECASE):
                return name
    return OTHER
