"""Records of bytes that are no row, whatever they are: each is told, with the bytes and the time that it had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from laketier.spi import BadRecord, FeatureNotSupported
from laketier_conformance.expect import expect
from laketier_source_conformance.reads import Read, expect_ms, read_range
from laketier_source_conformance.records import identity
from laketier_source_conformance.system import CannotBe, Table

_VALUES = (
    *(
        b"",
        b" ",
        b"null",
        b"\x00",
        b"\xff\xfe",
        b"caf\xe9",
        b"\xc3(",
        b"\xef\xbb\xbf{",
        b"{ \t ",
        b" {",
        b"{\r",
        b"\xed\xa0\x80",
    ),
    b"{" + b"x" * 1_200_000,
)
"""Nothing, blanks, no UTF-8, a mark at their beginning, a half of an end of a line, and more than a mebibyte."""


def test_bytes_of_all_kinds_are_told_as_they_were(table: Table) -> None:
    """As dead letters they are replayed once their schema is mended: what is passed over, or altered, is lost."""
    table.append(2)
    values = list(table.ask("append_bytes", _VALUES))
    table.append(2)
    log = table.log()
    found = read_range(log)
    table.expect_rows(found.rows, "the rows around records of bytes that are none")
    told = [each.value for each in found.bad]
    for doing, some in (
        ("are not told with their bytes", Counter(values) - Counter(told)),
        ("are told, and were never appended", Counter(told) - Counter(values)),
    ):
        assert not some, (
            f"records of bytes that are no row: {len(some)} of {len(values)} {doing}, {_begins(some)}. What the "
            "system can't hold, or its format takes for another record, `append_bytes` of the harness leaves out"
        )
    again: list[BadRecord] = []
    try:
        rows = Read(list(table.log().decode(found.bad, on_bad_record=again.append))).rows
    except FeatureNotSupported:
        return
    expect(rows, [], "records of bytes that are no row are decoded")
    other = Counter(map(identity, found.bad)) - Counter(map(identity, again))
    assert not other, f"records of bytes that are no row are decoded: {len(other)} are not told again as they were"


def test_a_record_of_which_one_row_is_none_is_left_out_whole(table: Table) -> None:
    """Its replay gives all of its rows, once they can be read: one that was read before would be there twice."""
    if not table.system.has("append_several"):
        table.ask("append_several", table.numbers(2))
    table.append(2)
    value = table.ask("append_partly_bad", table.numbers(2))
    table.append(2)
    found = read_range(table.log())
    table.expect_rows(found.rows, "a log is read that has a record of three rows, one of which is none")
    expect([each.value for each in found.bad], [value], "the records that are told, of which one row is none")


def test_the_time_of_a_bad_record_is_in_milliseconds(table: Table) -> None:
    table.append(1)
    table.ask("append_bad")
    for each in read_range(table.log()).bad:
        if each.at is None:
            raise CannotBe("at: the source's records have no time")
        expect_ms(each.at, f"`at` of the bad record at {each.offset}")


def _begins(some: Iterable[bytes | None]) -> str:
    return ", ".join(repr(each and each[:20]) for each in some)
