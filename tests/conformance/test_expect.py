"""What a failure of the suite says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laketier.spi import CommitError, Conflict, Feature, FeatureNotSupported, Fenced, LaketierError, Op
from laketier_conformance import answer_types, failures
from laketier_conformance.expect import cause_of, difference, ends_for_good, expect, goes_well, refused

MANY = list(range(5_000))


@pytest.mark.parametrize(
    ("found", "expected", "says"),
    [
        (MANY[3:], MANY, "expected 5000 rows, found 4997; 3 are missing: [0, 1, 2]"),
        ([*MANY, 7, 8], MANY, "expected 5000 rows, found 5002; 2 are there more often than expected: [7, 8]"),
        ([*MANY, -1], MANY, "expected 5000 rows, found 5001; 1 is not expected: [-1]"),
        ([], MANY, "found 0; 5000 are missing: [0, 1, 2, 3, 4, 5, ...]"),
        (MANY[::-1], MANY, "expected 5000 rows, found 5000 in another order: row 0 is 4999"),
        (MANY, [*MANY, 7], "1 is there less often than expected: [7]"),
        (5, 6, "expected 6, found 5"),
        ("1", 1, "expected 1, found '1'"),
        ((Op.EQ, 1), (Op.NE, 1), "expected (Op.NE, 1), found (Op.EQ, 1)"),
        ({"a"}, {"b"}, "expected {'b'}, found {'a'}; 1 is missing: ['b'], 1 is not expected: ['a']"),
        ({"a": 1}, {"a": 2}, "expected 1 entries, found 1; 1 is other than expected: ['a' is 1, expected 2]"),
        ({}, {"a": 2}, "expected {'a': 2}, found {}"),
        (pa.table({"a": [1]}), pa.table({"a": ["1"]}), "expected the columns a: string, found a: int64"),
        (pa.table({"a": [1, 1]}), pa.table({"a": [1, 2]}), "1 is missing: [{'a': 2}]"),
        (pa.schema({"a": pa.int8()}), pa.schema({}), "expected the columns , found a: int8"),
    ],
)
def test_a_difference_is_a_line_that_can_be_read(found: object, expected: object, says: str) -> None:
    with pytest.raises(AssertionError) as caught:
        expect(found, expected, "a replay adds no row")
    assert str(caught.value).startswith("a replay adds no row: ")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert "\n" not in str(caught.value)


def test_what_is_equal_says_nothing() -> None:
    expect(pa.table({"a": [1]}), pa.table({"a": [1]}), "x")
    expect(MANY, list(MANY), "x")
    assert difference("1", 1) != difference(1, 1)


def test_no_refusal() -> None:
    with (
        pytest.raises(AssertionError, match=r"a stale state is published: expected Conflict, and no error was raised"),
        refused(Conflict, "a stale state is published"),
    ):
        pass


def test_another_error() -> None:
    with (
        pytest.raises(AssertionError, match=r"x: expected Conflict or Fenced, found ValueError\(no\)") as caught,
        refused((Conflict, Fenced), "x"),
    ):
        raise ValueError("no\nmore")
    assert isinstance(caught.value.__cause__, ValueError)


def test_the_error_without_the_words() -> None:
    with (
        pytest.raises(AssertionError, match=r"x: expected Conflict with 'moved' in its text, found Conflict\(no\)"),
        refused(Conflict, "x", match="moved"),
    ):
        raise Conflict("no")


@pytest.mark.parametrize("wanted", [Conflict, LaketierError, Exception])
def test_the_refusal_of_a_feature_goes_on_to_the_run(wanted: type[Exception]) -> None:
    with pytest.raises(FeatureNotSupported), refused(wanted, "x"):
        raise FeatureNotSupported("upsert", reason="small")


def test_the_error_can_be_looked_at() -> None:
    with refused(Conflict, "x", match="mo.ed") as caught:
        raise Conflict("moved")
    assert (type(caught.value), caught.text) == (Conflict, "moved")


def test_where_any_error_will_do_it_is_a_final_one() -> None:
    says = r"a column is added: expected a final error, .*, found Conflict\(somebody was first\)"
    for block in (refused(LaketierError, "a column is added"), ends_for_good("a column is added")):
        with pytest.raises(AssertionError, match=says), block:
            raise Conflict("somebody was first")
    for wanted in ((LaketierError, CommitError), Conflict):
        with refused(wanted, "a stale state is published"):
            raise Conflict("somebody was first")
    with pytest.raises(Fenced), ends_for_good("a column is added"):
        raise Fenced("it is over")


def test_an_error_in_between_is_told_with_what_was_done() -> None:
    with (
        pytest.raises(
            AssertionError, match=r"^a table is read after a drop: expected no error, found OSError\(gone\)$"
        ),
        goes_well("a table is read after a drop"),
    ):
        raise OSError("gone")
    with pytest.raises(LookupError), goes_well("a table is read", but=(LookupError,)):
        raise LookupError
    with pytest.raises(FeatureNotSupported), goes_well("a table is read"):
        raise FeatureNotSupported(Feature.DROP_TABLE.value, reason="why")


def test_an_error_of_a_method_is_told_with_what_that_does() -> None:
    def opens() -> None:
        raise OSError("gone")

    watched = answer_types._watched(opens, "LakeCommitter.open", object)
    with pytest.raises(OSError, match="gone") as caught:
        watched()
    says = failures.sentence_of(caught)
    assert (
        ", as the newest state of a table is read (LakeCommitter.open): expected no error, found OSError(gone)" in says
    )


def test_what_a_method_does_is_told_of_methods_of_the_spi() -> None:
    contracts = {contract.__name__: contract for contract in answer_types.CONTRACT}
    for named in failures._DOES:
        contract, _, method = named.partition(".")
        assert hasattr(contracts[contract], method), named


def _raised(hides: bool) -> BaseException:
    try:
        try:
            raise KeyError("a login")
        except KeyError as error:
            if hides:
                raise ValueError("no login") from None
            raise ValueError("no login") from error
    except ValueError as error:
        return error


def test_a_cause_is_what_a_traceback_tells() -> None:
    assert isinstance(cause_of(_raised(hides=False)), KeyError)
    hidden = _raised(hides=True)
    assert isinstance(hidden.__context__, KeyError)
    assert cause_of(hidden) is None
