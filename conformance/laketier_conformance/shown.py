"""What a run shows of each feature: full, refused, not shown, or failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from laketier.spi import Feature, LakeStoragePlugin, support_of
from laketier_conformance.verdict import Result

FULL, REFUSED, NOT_SHOWN, FAILED = "full", "refused", "not shown", "failed"


def shown(plugin: LakeStoragePlugin, results: Iterable[Result], unproven: Mapping[str, str]) -> dict[str, str]:
    """By feature. Full: declared so, and each test of the feature that ran passed. Refused: declared unsupported, and
    refused wherever it was asked for. Not shown: no test of it ran, or a test said that it could not show it."""
    outcomes: dict[str, set[str]] = {feature.value: set() for feature in Feature}
    for result in results:
        for name in result.features:
            outcomes.setdefault(name, set()).add(result.outcome)
    told = {}
    for feature in Feature:
        seen = outcomes[feature.value]
        if "failed" in seen:
            told[feature.value] = FAILED
        elif feature.value in unproven or not seen & {"passed", "refused"}:
            told[feature.value] = NOT_SHOWN
        else:
            told[feature.value] = FULL if support_of(plugin.features, feature).full else REFUSED
    return told
