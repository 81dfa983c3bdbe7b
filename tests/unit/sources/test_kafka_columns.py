"""What producers set beside the value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from laketier.sources.kafka.columns import StoredMessage, unfit
from laketier.spi import BadRecord

WANTED = (("headers", "_headers"), ("offset", "_offset"))


@dataclass(frozen=True)
class Headed(StoredMessage):
    said: Any = None

    def headers(self) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def of(*headers: Any) -> list[Headed]:
    return [Headed(BadRecord(bucket="0", offset=at, error="", value=b""), said) for at, said in enumerate(headers)]


@pytest.mark.parametrize("bad", [[("a\udcff", b"x")], UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")])
def test_a_header_that_is_no_text_is_its_records_own(bad: Any) -> None:
    found = unfit(WANTED, of(None, [("a", b"x")], bad, [], bad))
    assert list(found) == [2, 4]
    assert all(why.startswith("column '_headers': ") for why in found.values())


def test_an_error_of_the_machine_is_nobodys_record() -> None:
    with pytest.raises(OSError, match="disk"):
        unfit(WANTED, of(None, OSError(5, "disk")))
