"""The tables that a request asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from starlette.exceptions import HTTPException

from laketier.service.state import TableStatus

_MOST = 10_000
_LONGEST = 200


@dataclass(frozen=True)
class Chosen:
    """``shown``: those of the page, of ``found`` that fit. ``query``: a part of a table's or a lake table's name."""

    shown: Sequence[TableStatus]
    found: int
    limit: int
    offset: int = 0
    state: str | None = None
    query: str = ""

    @classmethod
    def of(cls, statuses: Sequence[TableStatus], asked: Mapping[str, str], *, limit: int) -> Chosen:
        """By the parameters ``q``, ``state``, ``limit`` and ``offset``. Raises `HTTPException` for others."""
        limit = _number(asked, "limit", limit, 1)
        offset = _number(asked, "offset", 0, 0)
        query = asked.get("q", "").strip()
        if len(query) > _LONGEST:
            raise HTTPException(400, f"q has up to {_LONGEST} characters.")
        state, part = asked.get("state") or None, query.casefold()
        fitting = [
            each
            for each in statuses
            if (state is None or each.table.state.value == state)
            and (not part or part in each.table.name.casefold() or part in each.table.target.casefold())
        ]
        return cls(fitting[offset : offset + limit], len(fitting), limit, offset, state, query)

    @property
    def has_more(self) -> bool:
        """Whether there are others behind these."""
        return self.offset + len(self.shown) < self.found

    def at(self, offset: int) -> str:
        """The parameters of another page of the same."""
        given = {"q": self.query, "state": self.state, "offset": offset or None, "limit": self.limit}
        return urlencode({name: value for name, value in given.items() if value})

    @property
    def before(self) -> str:
        """The parameters of the page before this one."""
        return self.at(max(0, self.offset - self.limit))

    @property
    def next(self) -> str:
        """The parameters of the page behind this one."""
        return self.at(self.offset + self.limit)

    def of_state(self, state: str | None) -> str:
        """The parameters of the first page of another state."""
        return replace(self, state=state).at(0)


def _number(asked: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = asked.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text)):
        raise HTTPException(400, f"{name} is a number, {least} or more.")
    return min(int(text), _MOST) if name == "limit" else int(text)
