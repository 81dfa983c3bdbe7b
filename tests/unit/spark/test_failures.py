"""An error of ours that comes out of Spark as text is whole again."""

from __future__ import annotations

import pytest

from laketier.spark.failures import cause_of
from laketier.spi import Feature, FeatureNotSupported, LaketierError, OffsetsExpired

AROUND = "[PYTHON_DATA_SOURCE_ERROR] Failed to initialize it: Traceback (most recent call last):\n  File x\n{}: {}\n"


def through_spark(error: LaketierError) -> LaketierError | None:
    name = f"{type(error).__module__}.{type(error).__name__}"
    return cause_of(RuntimeError(AROUND.format(name, error) + " SQLSTATE: 38000"))


@pytest.mark.parametrize("feature", list(Feature))
def test_a_refusal_still_names_its_feature(feature: Feature) -> None:
    told = through_spark(FeatureNotSupported(feature.value, format="acme", reason="rows stay", fix="Append."))
    assert isinstance(told, FeatureNotSupported)
    assert (told.feature, told.format, told.reason) == (feature.value, "acme", "rows stay. Append.")


def test_a_format_that_was_not_known_stays_so() -> None:
    told = through_spark(FeatureNotSupported("upsert", reason="rows stay"))
    assert isinstance(told, FeatureNotSupported)
    assert (told.feature, told.format) == ("upsert", None)


def test_ranges_that_spark_does_not_tell_may_not_be_skipped() -> None:
    told = through_spark(OffsetsExpired("offsets are gone", gone={"0": [(1, 2)]}))
    assert isinstance(told, OffsetsExpired)
    assert told.gone == {}


def test_what_is_not_ours_has_no_cause() -> None:
    assert cause_of(RuntimeError("x\nValueError: laketier.spi.errors.Conflict: no\n")) is None
