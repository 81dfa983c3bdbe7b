"""How people find their way in many tables: a search, and pages."""

from __future__ import annotations

from laketier.service.web import texts
from laketier.service.web.chosen import Chosen
from laketier.service.web.markup import Html, html, joined


def searched(path: str, chosen: Chosen) -> Html:
    """The form."""
    return html(
        '<form action="{path}">{state}<input type="search" name="q" value="{query}" placeholder="part of a name" '
        'aria-label="Search tables" maxlength="200"></form>',
        path=path,
        query=chosen.query,
        state=html('<input type="hidden" name="state" value="{state}">', state=chosen.state)
        if chosen.state
        else html(""),
    )


def turned(path: str, chosen: Chosen) -> Html:
    """Where in all that was found this page is, and the ways to the next one and the one before."""
    if chosen.found <= len(chosen.shown):
        return html("")
    links = []
    if chosen.offset:
        before = chosen.at(max(0, chosen.offset - chosen.limit))
        links.append(html('<a href="{path}?{to}" rel="prev">before</a>', path=path, to=before))
    if chosen.has_more:
        links.append(
            html('<a href="{path}?{to}" rel="next">next</a>', path=path, to=chosen.at(chosen.offset + chosen.limit))
        )
    return html(
        "<nav><span>{first} to {last} of {found}</span>{links}</nav>",
        first=texts.number(chosen.offset + 1),
        last=texts.number(chosen.offset + len(chosen.shown)),
        found=texts.number(chosen.found),
        links=joined(links),
    )
