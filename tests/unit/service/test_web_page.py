"""The page, asked over HTTP, of a state store that is real."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

import pytest
from jinja2 import UndefinedError

from laketier.service.state import StateStore
from laketier.service.status import status_document
from laketier.service.web import pages
from service_page import EVIL, Page, fill, served
from state_tables import A, Clock, table


@pytest.fixture
def page(store: StateStore, clock: Clock) -> Iterator[Page]:
    fill(store, clock)
    with served(store) as made:
        yield made


def _id(page: Page, name: str) -> int:
    return max(each.table.id for each in page.store.snapshot() if each.table.source_table == name)


def _all(page: Page) -> list[str]:
    ids = [each.table.id for each in page.store.snapshot()]
    return ["/", "/dead-letters", "/api/tables", "/metrics", "/healthz", *(f"/tables/{each}" for each in ids)]


def test_the_list_shows_each_table_with_its_state_and_its_trouble(page: Page) -> None:
    answer = page.get("/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    rows = re.findall(r'<tr>\s*<td data-head="table">.*?</tr>', answer.text, re.DOTALL)
    statuses = page.store.snapshot()
    assert len(rows) == len(statuses) == 7
    for row, status in zip(rows, statuses, strict=True):
        assert f'href="/tables/{status.table.id}"' in row
        assert f">{status.table.state.value}</span>" in row
        assert ('class="fresh"' in row) == status.fresh
    (failed,) = (row for row in rows if ">s.failed<" in row)
    assert "the broker at kafka://me:***@broker/x said &lt;script&gt;" in failed
    assert re.search(r"<small>try 2 (in|is due)", failed)
    assert "of 1 min" in failed
    assert f"<b>{sum(each.fresh for each in statuses)} of 7</b>" in answer.text


def test_the_list_of_one_state(page: Page) -> None:
    text = page.get("/?state=STOPPED").text
    assert len(re.findall(r'<td data-head="table">', text)) == 1
    assert "offsets 5 to 9 of bucket 0 expired" in text
    assert "No tables." in page.get("/?state=nonsense").text


def test_a_table_has_its_rounds_and_how_old_the_lake_was(page: Page) -> None:
    text = page.get(f"/tables/{_id(page, 'orders')}").text
    assert "<h1>s.orders</h1>" in text
    assert text.count('<td data-head="ending">') == 13
    assert "the catalog did not answer" in text
    assert text.count('class="broken" d=') == 1
    (line,) = re.findall(r'class="age" d="M([^"]*)"', text)
    # Two corners per round that was published but for the first's one, and now.
    assert len(line.split(" L")) == 2 * 12 - 1 + 1
    assert all(0 <= float(number) <= 560 for number in re.findall(r"[\d.]+", line))


def test_a_table_shows_what_its_rounds_left(page: Page) -> None:
    text = page.get(f"/tables/{_id(page, 'orders')}").text
    # One per round that left something: all but the one that failed.
    bars = re.findall(r'class="left" d="M([\d.]+) ([\d.]+)V([\d.]+)"', text)
    assert len(bars) == 12
    heights = [float(bottom) - float(top) for _, bottom, top in bars]
    # As `fill` says: 7, then each round's epoch.
    assert [round(height / max(heights) * 12) for height in heights] == [7, *(n for n in range(1, 13) if n != 7)]
    assert "Nothing: each round read all" in page.get(f"/tables/{_id(page, 'stopped')}").text


def test_the_tables_that_left_records_out_are_listed(page: Page) -> None:
    text = page.get("/dead-letters").text
    listed = re.findall(r'<td data-head="table"><a href="/tables/\d+">([^<]*)</a></td>\s*<td [^>]*>(\d+)</td>', text)
    assert sorted(listed) == sorted([(html.escape(f"s.{name}"), "3") for name in ("orders", "late", "paused", EVIL)])
    assert text.count("not kept") == 4


def test_a_table_without_rounds_has_no_plot(page: Page) -> None:
    text = page.get(f"/tables/{_id(page, 'stopped')}").text
    assert "<svg" not in text
    assert "No round was published yet." in text


def test_the_documents_are_those_of_the_command_line(page: Page) -> None:
    answer = page.get("/api/tables")
    assert answer.headers["content-type"] == "application/json"
    documents = json.loads(answer.text)
    assert [each["table"] for each in documents] == [each.table.name for each in page.store.snapshot()]
    same = json.loads(json.dumps([status_document(each) for each in page.store.snapshot()], default=str))
    assert documents == same


def test_nothing_that_others_named_is_markup(page: Page) -> None:
    for path in _all(page):
        answer = page.get(path)
        assert answer.status == 200
        if answer.headers["content-type"].startswith("text/html"):
            assert EVIL not in answer.text
            assert "alert(1)" not in re.sub(r"&lt;script&gt;alert\(1\)&lt;/script&gt;", "", answer.text)


def test_nothing_that_others_named_turns_a_text(store: StateStore) -> None:
    store.register([table("a\u202eb\x1b[2J")])
    (lease,) = store.acquire(A, 1, 3600)
    store.fail(lease, "no \u2066such\x9b file", retryable=False)
    with served(store) as page:
        for path in ("/", "/dead-letters", f"/tables/{lease.table.id}"):
            text = page.get(path).text
            assert text.replace("\n", "").isprintable()
            assert r"a\u202eb\x1b[2J" in text or path == "/dead-letters"
        assert r"no \u2066such\x9b file" in page.get("/").text


def test_what_a_template_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'text' is undefined"):
        pages._TEMPLATES.get_template("told.html").render(service="s", title="t")


def test_no_address_shows_a_password(page: Page) -> None:
    for path in _all(page):
        assert "hunter2" not in page.get(path).text


def test_nothing_comes_from_elsewhere_and_nothing_runs_but_its_own_script(page: Page) -> None:
    for path in _all(page):
        answer = page.get(path)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        if answer.headers["content-type"].startswith("text/html"):
            assert not re.search(r"(src|href)=\"(https?:)?//", answer.text)
            assert " style=" not in answer.text
            assert " onclick=" not in answer.text
    assert page.get("/static/style.css").headers["content-type"].startswith("text/css")
    assert page.get("/static/refresh.js").headers["content-type"].startswith("text/javascript")
    assert page.get("/static/app.py").status == 404
    assert page.get("/static/..%2fapp.py").status == 404


def test_what_is_not_there_and_what_may_not_be_done(page: Page) -> None:
    assert page.get("/tables/999").status == 404
    assert page.get("/tables/1'%20or%201=1").status == 404
    assert page.get(f"/tables/{_id(page, 'orders')}/dead-letters").status == 404
    assert page.get("/login").status == 404
    for method in ("POST", "PUT", "DELETE"):
        assert page.get("/", method=method).status == 405


def test_a_database_that_does_not_answer_is_said_and_not_the_end(page: Page, url: str) -> None:
    import sqlite3

    with sqlite3.connect(url.removeprefix("sqlite:///")) as broken:
        broken.execute("ALTER TABLE tiering_workers RENAME TO elsewhere")
    broken.close()
    assert page.get("/").status == 503
    assert "state database" in page.get("/").text
    assert page.get("/healthz").text == "the state database does not answer\n"
    assert page.get("/healthz").status == 503
    assert 'laketier_state_database_up{service="default"} 0.0' in page.get("/metrics").text
    with sqlite3.connect(url.removeprefix("sqlite:///")) as mended:
        mended.execute("ALTER TABLE elsewhere RENAME TO tiering_workers")
    mended.close()
    assert page.get("/healthz").text == "ok\n"
