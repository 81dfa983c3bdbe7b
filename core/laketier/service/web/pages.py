"""The pages as HTML. They show what people may see who may not change the service: no secret, no record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from laketier.dead_letters.letters import LetterState
from laketier.service.schedule import State
from laketier.service.state import RoundRecord, TableStatus, TieringTable, WorkerSeen
from laketier.service.web import texts
from laketier.service.web.chosen import Chosen
from laketier.service.web.letters import DeadLetters
from laketier.service.web.markup import Html, html, joined
from laketier.service.web.plot import age_plot, lag_plot
from laketier.service.web.turning import searched, turned
from laketier.spi.redaction import redacted

TABLES_PER_PAGE = 100
_SHOWN_ROUNDS = 50
_ATTENTION = {State.FAILED, State.STOPPED}


def page(service: str, title: str, body: Html, *, refreshes: bool = True) -> Html:
    """A whole page."""
    return html(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · {service}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/style.css">{script}</head>'
        '<body><header><a href="/">{service}</a><a href="/dead-letters" class="more">Dead letters</a>'
        '<span id="refreshed"></span></header>'
        "<main>{body}</main></body></html>",
        title=title,
        service=service,
        body=body,
        script=html('<script src="/static/refresh.js" defer></script>') if refreshes else html(""),
    )


def tables_page(
    service: str, statuses: Sequence[TableStatus], workers: Sequence[WorkerSeen], now: int, chosen: Chosen
) -> Html:
    """A page of tables: of all, or those in one state, or those with a name. ``statuses``: all."""
    counts = Counter(each.table.state for each in statuses)
    fresh = sum(each.fresh for each in statuses)
    links = [html('<a href="/?{to}"{on}>all {count}</a>', count=len(statuses), on=_current(chosen.state is None),
                  to=chosen.of_state(None))]  # fmt: skip
    links += [
        html('<a href="/?{to}"{on}>{state} {count}</a>', state=each.value, count=counts[each],
             to=chosen.of_state(each.value), on=_current(chosen.state == each.value))
        for each in State if counts[each]
    ]  # fmt: skip
    body = html(
        "<h1>Tables</h1><p><b>{fresh} of {count}</b> tables are as fresh as they shall be. {workers}.</p>"
        "<nav>{links}{search}</nav>{table}{turning}",
        fresh=fresh,
        count=len(statuses),
        workers=_workers(workers, now),
        links=joined(links),
        search=searched("/", chosen),
        table=_tables(chosen.shown) if chosen.shown else html('<p class="none">No tables.</p>'),
        turning=turned("/", chosen),
    )
    return page(service, "Tables", body)


def _current(is_so: bool) -> Html:
    return html(' aria-current="page"') if is_so else html("")


def _workers(workers: Sequence[WorkerSeen], now: int) -> str:
    if not workers:
        return "No worker has given a sign yet"
    last = max(workers, key=lambda each: each.heartbeat_at)
    return f"A worker was last heard of {texts.ago(last.heartbeat_at, now)} ({last.worker.id})"


def _tables(statuses: Sequence[TableStatus]) -> Html:
    heads = ("table", "state", "behind", "left", "rows", "last round", "trouble")
    return html(
        '<table class="cards"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>',
        heads=joined(html("<th{number}>{name}</th>", name=each, number=_number(each)) for each in heads),
        rows=joined(_table_row(each) for each in statuses),
    )


def _number(head: str) -> Html:
    return html(' class="number"') if head in ("behind", "left", "rows", "bytes", "files", "took", "bad") else html("")


def _table_row(status: TableStatus) -> Html:
    table = status.table
    return html(
        '<tr><td data-head="table"><a href="/tables/{id}">{name}</a><small>{target} ({format})</small></td>'
        '<td data-head="state">{state}</td>'
        '<td data-head="behind" class="number"><span class="{fresh}">{behind}</span><small>of {asked}</small></td>'
        '<td data-head="left" class="number">{left}</td><td data-head="rows" class="number">{rows}{bad}</td>'
        '<td data-head="last round">{last}</td><td data-head="trouble" class="trouble">{trouble}</td></tr>',
        id=table.id, name=table.name, target=table.target, format=table.format, state=_state(table.state),
        fresh=_freshness(status), behind=texts.seconds(status.behind_seconds),
        asked=texts.seconds(table.freshness_seconds), left=_left(table),
        rows=texts.number(table.rows_total), bad=_bad(table), last=_last(status), trouble=_trouble(status),
    )  # fmt: skip


def _state(state: State) -> Html:
    return html('<span class="state {kind}">{state}</span>', kind=state.value.lower(), state=state.value)


def _left(table: TieringTable) -> Html:
    return html("{left}{lag}", left=texts.number(table.lag_offsets), lag=_lag(table))


def _lag(table: TieringTable) -> Html:
    if not table.lag_offsets or table.lag_seconds is None:
        return html("")
    return html("<small>up to {lag} newer</small>", lag=texts.seconds(table.lag_seconds))


def _bad(table: TieringTable) -> Html:
    if not table.bad_records_total:
        return html("")
    return html('<small class="late">{bad} bad</small>', bad=texts.number(table.bad_records_total))


def _freshness(status: TableStatus) -> str:
    if status.behind_seconds is None:
        return "none"
    return "fresh" if status.fresh else "late"


def _last(status: TableStatus) -> Html:
    last = status.last_round
    if last is None:
        return html("{nothing}", nothing=texts.NOTHING)
    return html(
        "{ending} {ago}<small>{rows} rows, {files} files, {took}</small>",
        ending=last.ending.value, ago=texts.ago(last.ended_at, status.at), rows=texts.number(last.rows),
        files=texts.number(last.files), took=texts.seconds((last.ended_at - last.began_at) / 1000),
    )  # fmt: skip


def _trouble(status: TableStatus) -> Html:
    table = status.table
    if table.error is None and table.next_try_at is None:
        return html("")
    told = html("{error}", error=redacted(table.error or ""))
    if table.next_try_at is not None:
        wait = (table.next_try_at - status.at) / 1000
        told = html(
            "{told}<small>try {tries} {when}</small>", told=told, tries=table.failures + 1,
            when=f"in {texts.seconds(wait)}" if wait > 0 else "is due",
        )  # fmt: skip
    return told


def table_page(service: str, status: TableStatus, rounds: Sequence[RoundRecord], has_letters: bool) -> Html:
    """One table. ``rounds``: newest first."""
    table = status.table
    facts = [
        ("state", _state(table.state)),
        ("lake table", html("{name} ({format})", name=table.target, format=table.format)),
        ("behind", html('<span class="{fresh}">{behind}</span> of {asked}',
                        fresh=_freshness(status), behind=texts.seconds(status.behind_seconds),
                        asked=texts.seconds(table.freshness_seconds))),
        ("left in the source", html("{left} offsets{lag}", left=texts.number(table.lag_offsets), lag=_lag(table))),
        ("bad records", html("{bad}", bad=texts.number(table.bad_records_total))),
        ("epoch and fence", html("{epoch}, {fence}", epoch=texts.number(table.epoch), fence=table.fence)),
        ("since registered", html("{rounds} rounds, {rows} rows, {files} files, {bytes}",
                                  rounds=texts.number(table.rounds_total), rows=texts.number(table.rows_total),
                                  files=texts.number(table.files_total), bytes=texts.size(table.bytes_total))),
        ("worker", html("{worker}", worker=table.lease_owner or texts.NOTHING)),
    ]  # fmt: skip
    trouble = _trouble(status)
    body = html(
        '<h1>{name}</h1>{trouble}<dl>{facts}</dl>{letters}<h2>How old the lake was</h2>{plot}'
        '<h2>What rounds left in the source</h2>{lag}<h2>Rounds</h2>{rounds}',
        name=table.name,
        trouble=html('<p class="trouble box">{told}</p>', told=trouble) if trouble else trouble,
        facts=joined(html("<div><dt>{name}</dt><dd>{value}</dd></div>", name=name, value=value)
                     for name, value in facts),
        letters=html('<p><a href="/tables/{id}/dead-letters">Dead letters</a></p>', id=table.id)
        if has_letters else html(""),
        plot=age_plot(status, rounds),
        lag=lag_plot(status, rounds),
        rounds=_rounds(rounds[:_SHOWN_ROUNDS]),
    )  # fmt: skip
    return page(service, table.name, body)


def _rounds(rounds: Sequence[RoundRecord]) -> Html:
    if not rounds:
        return html('<p class="none">None yet.</p>')
    heads = ("ended (UTC)", "ending", "took", "epoch", "rows", "files", "bytes", "bad", "left", "worker")
    return html(
        '<table class="cards"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>',
        heads=joined(html("<th{number}>{name}</th>", name=each, number=_number(each)) for each in heads),
        rows=joined(_round_row(each) for each in rounds),
    )


def _round_row(each: RoundRecord) -> Html:
    error = html("")
    if each.error is not None:
        error = html('<tr class="why"><td colspan="10" class="trouble">{error}</td></tr>', error=redacted(each.error))
    return html(
        '<tr><td data-head="ended">{ended}</td><td data-head="ending">{ending}</td>'
        '<td data-head="took" class="number">{took}</td>'
        '<td data-head="epoch">{epoch}<small>fence {fence}</small></td>'
        '<td data-head="rows" class="number">{rows}</td><td data-head="files" class="number">{files}</td>'
        '<td data-head="bytes" class="number">{bytes}</td>'
        '<td data-head="bad" class="number">{bad}</td><td data-head="left" class="number">{left}</td>'
        '<td data-head="worker" class="worker">{worker}</td></tr>'
        "{error}",
        ended=texts.moment(each.ended_at), ending=each.ending.value,
        took=texts.seconds((each.ended_at - each.began_at) / 1000), epoch=texts.number(each.epoch), fence=each.fence,
        rows=texts.number(each.rows), files=texts.number(each.files), bytes=texts.size(each.bytes),
        bad=texts.number(each.bad_records), left=texts.number(each.lag_offsets), worker=each.worker, error=error,
    )  # fmt: skip


def letters_page(service: str, status: TableStatus, found: DeadLetters | None) -> Html:
    """The newest records that could not be made rows: where and why, not what they hold."""
    table = status.table
    if found is None:
        content = html('<p class="none">None: there is no such table in the lake.</p>')
    else:
        count = f"{found.looked_at:,}" if found.all_seen else f"More than {found.looked_at:,}; those were looked at"
        content = html(
            "<p>{count} in <b>{name}</b>, the newest first. {states}</p>"
            '<table class="cards"><thead><tr><th>written (UTC)</th><th>bucket</th><th class="number">offset</th>'
            "<th>state</th><th>why</th></tr></thead><tbody>{rows}</tbody></table>",
            count=count, name=found.table,
            states=", ".join(f"{found.states[each]:,} {each.value}" for each in LetterState if found.states[each]),
            rows=joined(
                html('<tr><td data-head="written">{at}</td><td data-head="bucket">{bucket}</td>'
                     '<td data-head="offset" class="number">{offset}</td><td data-head="state">{state}</td>'
                     '<td data-head="why" class="trouble">{error}'
                     "</td></tr>", at=texts.moment(each.at), bucket=each.bucket, offset=each.offset,
                     state=each.state.value, error=redacted(each.error))
                for each in found.newest
            ),
        )  # fmt: skip
    body = html(
        '<h1>Dead letters of <a href="/tables/{id}">{name}</a></h1>{content}', id=table.id, name=table.name,
        content=content,
    )  # fmt: skip
    return page(service, f"Dead letters of {table.name}", body, refreshes=False)


def letter_tables_page(service: str, chosen: Chosen, has_letters: Callable[[str], bool]) -> Html:
    """The tables that left records out, and where these are. What the lake holds is looked at on a table's own page."""
    shown = chosen.shown
    rows = joined(
        html(
            '<tr><td data-head="table"><a href="/tables/{id}">{name}</a></td>'
            '<td data-head="bad" class="number">{bad}</td><td data-head="in the last round" class="number">{last}</td>'
            '<td data-head="kept">{kept}</td></tr>',
            id=each.table.id, name=each.table.name, bad=texts.number(each.table.bad_records_total),
            last=texts.number(None if each.last_round is None else each.last_round.bad_records),
            kept=html('<a href="/tables/{id}/dead-letters">dead letters</a>', id=each.table.id)
            if has_letters(each.table.name) else html("not kept"),
        )
        for each in shown
    )  # fmt: skip
    table = html(
        '<table class="cards"><thead><tr><th>table</th><th class="number">bad</th>'
        '<th class="number">in the last round</th><th>kept</th></tr></thead><tbody>{rows}</tbody></table>',
        rows=rows,
    )
    body = html(
        "<h1>Dead letters</h1><p>Records that were no rows when they were read, since each table was registered.</p>"
        "{table}{turning}",
        table=table if shown else html('<p class="none">None.</p>'),
        turning=turned("/dead-letters", chosen),
    )
    return page(service, "Dead letters", body)


def login_page(service: str, wrong: bool) -> Html:
    """Asks for the token."""
    body = html(
        '<h1>Token</h1>{wrong}<form method="post" action="/login"><label>Token '
        '<input type="password" name="token" autocomplete="current-password" required autofocus></label> '
        "<button>Show the service</button></form>",
        wrong=html('<p class="trouble box">That is not the token.</p>') if wrong else html(""),
    )
    return page(service, "Token", body, refreshes=False)


def told_page(service: str, title: str, text: str) -> Html:
    """Something that is not there, or not now."""
    return page(service, title, html("<h1>{title}</h1><p>{text}</p>", title=title, text=text), refreshes=False)
