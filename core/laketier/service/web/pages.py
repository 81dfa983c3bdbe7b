"""The pages as HTML. They show what people may see who may not change the service: no secret, no record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from laketier.dead_letters.records import DeadLetterState
from laketier.service.schedule import State
from laketier.service.state import RoundRecord, TableStatus, WorkerSeen
from laketier.service.web import texts
from laketier.service.web.chosen import Chosen
from laketier.service.web.dead_letters import ShownDeadLetters
from laketier.service.web.plot import age_plot, lag_plot
from laketier.spi.redaction import redacted
from laketier.spi.visible import visible

TABLES_PER_PAGE = 100
_SHOWN_ROUNDS = 50


def tables_page(
    service: str, statuses: Sequence[TableStatus], workers: Sequence[WorkerSeen], now: int, chosen: Chosen
) -> str:
    """A page of tables: of all, or those in one state, or those with a name. ``statuses``: all."""
    counts = Counter(each.table.state for each in statuses)
    return _page(
        "tables",
        service,
        fresh=sum(each.fresh for each in statuses),
        count=len(statuses),
        counts={each.value: counts[each] for each in State if counts[each]},
        last_heard=max(workers, key=lambda each: each.heartbeat_at, default=None),
        now=now,
        chosen=chosen,
    )


def table_page(service: str, status: TableStatus, rounds: Sequence[RoundRecord], has_dead_letters: bool) -> str:
    """One table. ``rounds``: newest first."""
    return _page(
        "table",
        service,
        status=status,
        ages=age_plot(status, rounds),
        left=lag_plot(status, rounds),
        rounds=rounds[:_SHOWN_ROUNDS],
        has_dead_letters=has_dead_letters,
    )


def dead_letters_page(service: str, status: TableStatus, found: ShownDeadLetters | None) -> str:
    """The newest records that could not be made rows: where and why, not what they hold."""
    return _page("dead_letters", service, status=status, found=found, states=list(DeadLetterState))


def dead_letter_tables_page(service: str, chosen: Chosen, has_dead_letters: Callable[[str], bool]) -> str:
    """The tables that left records out, and where these are. What the lake holds is looked at on a table's own page."""
    return _page("dead_letter_tables", service, chosen=chosen, has_dead_letters=has_dead_letters)


def login_page(service: str, wrong: bool) -> str:
    """Asks for the token."""
    return _page("login", service, wrong=wrong)


def told_page(service: str, title: str, text: str) -> str:
    """Something that is not there, or not now."""
    return _page("told", service, title=title, text=text)


def _page(name: str, service: str, **values: Any) -> str:
    return _TEMPLATES.get_template(f"{name}.html").render(service=service, **values)


def _shown(value: Any) -> Any:
    """Names and errors may hold what turns the direction of a text; markup is escaped after this."""
    return visible(value) if type(value) is str else value


def _freshness(status: TableStatus) -> str:
    if status.behind_seconds is None:
        return "none"
    return "fresh" if status.fresh else "late"


def _took(of: RoundRecord) -> str:
    return texts.seconds((of.ended_at - of.began_at) / 1000)


def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("laketier.service.web"), autoescape=True, undefined=StrictUndefined, finalize=_shown,
        auto_reload=False, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    for each in (texts.seconds, texts.number, texts.size, texts.moment, texts.clock, texts.ago, redacted):
        found.filters[each.__name__] = each
    found.filters |= {"freshness": _freshness, "took": _took}
    return found


_TEMPLATES = _templates()
