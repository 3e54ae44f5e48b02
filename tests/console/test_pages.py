"""The pages in a real browser, over the model job of `fake_view`. One server and one browser serve all tests."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.console import hostile
from tests.console.browser import PATIENCE, chromium
from tests.console.fake_view import HOSTILE

pytest.importorskip("nicegui", reason="needs sash[console]")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
pytestmark = pytest.mark.skipif(chromium() is None, reason="needs Chromium: scripts/setup-chromium.sh")
ROOT = Path(__file__).parents[2]


class Server:
    """The process that serves the pages."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        command = [sys.executable, "-m", "tests.console.serve", str(self.port)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == b"ready"

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def advance(self, seconds: int) -> None:
        self.post(f"advance/{seconds}")

    def post(self, path: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/{path}", method="POST")).close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.stop()


@pytest.fixture
def page(browser: sync_api.Browser) -> Iterator[sync_api.Page]:
    opened = browser.new_page(viewport={"width": 1400, "height": 800})
    opened.set_default_timeout(PATIENCE)
    problems: list[str] = []
    opened.on("pageerror", lambda problem: problems.append(str(problem)))
    opened.on("request", lambda request: _stays(request.url) or problems.append(request.url))
    opened.on("websocket", lambda socket: _stays(socket.url) or problems.append(socket.url))
    yield opened
    opened.close()
    assert not problems


def _stays(url: str) -> bool:
    """Whether a request does not leave the machine."""
    return url.startswith(("data:", "blob:")) or urlsplit(url).hostname == "127.0.0.1"


def keys(page: sync_api.Page) -> set[str]:
    return set(
        page.locator(".answer tbody tr:not(.row-leave-active)").evaluate_all(
            "rows => rows.map(r => r.cells[0].innerText)"
        )
    )


def test_the_page_of_a_job_lists_queries_and_errors(server: Server, page: sync_api.Page) -> None:
    page.goto(server.address)
    page.get_by_role("link", name="totals").wait_for()
    assert page.url == f"{server.address}/job/shop"
    assert page.locator(".state.running").count() == 3
    assert page.get_by_text("row without a time was dropped").is_visible()
    assert page.get_by_text("trigger every 1 s").is_visible()
    assert page.get_by_text("3 files").is_visible()
    assert page.get_by_text("1.5 s to catch up").is_visible()
    assert page.locator("svg .spark").count() > 5


def test_rows_enter_change_and_leave(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/query/totals")
    page.locator(".answer tbody tr").first.wait_for()
    page.evaluate("""() => {
        window.seen = new Set();
        new MutationObserver((all) => all.forEach((m) => {
            if (m.type === "attributes") m.target.classList.forEach((c) => window.seen.add(c));
        })).observe(document.querySelector(".answer"), {subtree: true, attributes: true, attributeFilter: ["class"]});
    }""")
    assert "bread" in keys(page)
    server.advance(29)  # second 119: bread was last sold in second 59
    page.wait_for_function("!document.querySelector('.answer tbody').innerText.includes('bread')")
    page.wait_for_function("['flash', 'row-leave-active'].every(c => window.seen.has(c))")
    server.advance(12)
    page.wait_for_function("document.querySelector('.answer tbody').innerText.includes('bread')")
    assert "bread" in keys(page)
    page.wait_for_function("window.seen.has('row-enter-active') || window.seen.has('row-enter-to')")


def test_the_slider_shows_earlier_answers(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/query/totals")
    page.locator(".answer tbody tr").first.wait_for()
    page.wait_for_function("document.querySelector('.answer tbody').rows.length > 1")
    box = page.locator(".q-slider").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.02, box["y"] + box["height"] / 2)
    page.get_by_text("The answer at").wait_for()
    page.get_by_role("button", name="Next change").click()
    at = int(page.locator("[data-at]").get_attribute("data-at") or 0)
    shown = page.locator(".answer tbody tr:not(.row-leave-active)")
    from tests.console.fake_view import SECOND, START, FakeView

    moment = (at - START) // SECOND
    assert 0 < moment < 90
    expected = {row[0] for row in FakeView().answer("totals", at)["rows"]}
    page.wait_for_function(
        "n => document.querySelectorAll('.answer tbody tr:not(.row-leave-active)').length === n", arg=len(expected)
    )
    assert set(shown.evaluate_all("rows => rows.map(r => r.cells[0].innerText)")) == expected
    page.get_by_role("button", name="Live").click()
    page.get_by_text("The latest answer").wait_for()


def test_a_query_without_a_history_says_why_it_has_no_answer(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/query/alerts")
    page.get_by_text("no history is kept: the job was started with --history off").wait_for()
    page.get_by_text("No answer is kept").wait_for()
    assert page.get_by_text("connection refused").is_visible()
    assert not page.locator(".nicegui-echart").is_visible()
    assert not page.locator(".trouble > div").count()


def test_a_hostile_value_is_text(server: Server, page: sync_api.Page) -> None:
    for path in ("", "/query/totals"):
        page.goto(f"{server.address}/job/shop{path}")
        page.get_by_text(HOSTILE).first.wait_for()
        assert "hacked" not in page.title()
        assert page.evaluate("[...document.querySelectorAll('.card script')].length") == 0


def test_hostile_names_and_values_of_a_large_answer_are_text(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop")
    page.get_by_role("link", name=hostile.NAME).click()
    page.get_by_text("100 k rows, the first 202 shown, 60 of 1,000 columns shown").wait_for()
    assert page.url.endswith(quote(hostile.NAME, safe=""))
    assert page.title() == f"{hostile.NAME} · Sash"
    cells = page.locator(".answer tbody tr").evaluate_all(
        "rows => rows.slice(0, 5).map(r => [...r.cells].slice(0, 6).map(c => c.innerText))"
    )
    assert cells[0] == [
        hostile.ATTACK,
        "NaN",
        "12345678901234567890.120",
        "2023-11-14 22:13:20.123456",
        "[{a: NULL}, {a: 2}]",
        "1",
    ]
    assert cells[1][:4] == ["nul ␀ and mark <U+202E>txt.exe", "Infinity", "-0.001", "NULL"]
    assert cells[2][3] == "0001-01-01 00:00:00"
    assert len(cells[4][0]) == 300
    assert page.locator(".answer td.absent").count() > 4
    assert page.locator(".answer tbody tr").first.locator("td").last.inner_text() == "3"
    assert page.get_by_text("at '<U+202E>gnp.exe'").is_visible()
    page.locator(".nicegui-echart").hover()
    page.get_by_role("button", name=f"{hostile.ATTACK}0").click()
    page.wait_for_function("document.querySelector('.answer tbody').rows[0]?.cells[0].innerText.startsWith('<img')")
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_failure_of_the_view_is_shown_until_it_is_mended(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop")
    page.get_by_role("link", name="totals").wait_for()
    server.post("broken/true")
    page.get_by_role("alert").get_by_text("RuntimeError: the run folder is <gone>").wait_for()
    server.post("broken/false")
    page.get_by_text("<gone>").wait_for(state="detached")


def test_pages_of_a_job_that_does_not_run_say_so(server: Server, page: sync_api.Page) -> None:
    server.post("stopped/true")
    page.goto(f"{server.address}/job/shop")
    page.get_by_text("started 2023-11-14 22:13:20").wait_for()
    for path, what in (("plan", "plan"), ("windows", "windows")):
        page.goto(f"{server.address}/job/shop/{path}")
        page.get_by_text(f"The job does not run (stopped): its {what} can be seen while it runs.").wait_for()
    page.goto(f"{server.address}/job/shop/query/totals")
    page.locator(".answer tbody tr").first.wait_for()  # what is kept is still shown
    page.goto(f"{server.address}/job/shop/query/none")
    page.get_by_text("No answer is kept").wait_for()
    server.post("stopped/false")


def test_the_choice_of_colours_holds_on_all_pages(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop")
    page.get_by_role("button", name="Colours: system").click()
    page.locator(".body--dark").wait_for()
    page.goto(f"{server.address}/job/shop/plan")
    page.get_by_role("button", name="Colours: dark").wait_for()
    page.locator(".body--dark").wait_for()


def test_explain_changes_and_chart(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/query/totals")
    page.get_by_text("EXPLAIN", exact=True).click()
    page.get_by_text("Plan of totals").wait_for()
    assert page.locator(".log .sign.plus").count() > 10
    assert page.locator(".nicegui-echart svg path").count() > 5


def test_the_plan_is_drawn(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/plan")
    page.locator("[data-node='1.0.Aggregate'] .heat").wait_for()
    assert page.locator("[data-node]").count() == 8
    assert page.locator("svg .edge").count() == 7
    assert page.locator("svg .shard.hot").count() == 1
    assert page.locator("[data-node='1.0.Aggregate'] .part").count() == 4
    assert page.get_by_role("cell", name="2.0", exact=True).count() == 4  # the skew of every operator
    assert page.get_by_role("cell", name="Aggregate in stage 1").count() == 4  # and its shards
    assert page.get_by_role("cell", name="probe limits first").count() == 2


def test_windows_and_a_snapshot(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/windows")
    page.locator("[data-part]").first.wait_for()
    assert page.locator("[data-part]").count() == 12
    assert [page.locator(f"svg .read.{kind}").count() for kind in ("done", "reading", "unread")] == [3, 1, 2]
    assert page.get_by_text(re.compile(r"^now \d+; then \d+, \d+$")).is_visible()
    page.get_by_label("Snapshot SQL").fill("SELECT 1")
    page.get_by_role("button", name="Run").click()
    page.get_by_text("write FROM sales").wait_for()
    page.get_by_label("Snapshot SQL").fill("SELECT item FROM sales [RANGE 1 MINUTE]")
    page.get_by_role("button", name="Run").click()
    page.get_by_text("scan of sub-windows").wait_for()
    assert "apples" in keys(page)


def test_an_error_is_marked_and_mended_in_a_preview(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/sql")
    page.locator(".cm-content").click()
    page.keyboard.insert_text("SELECT item FRM sales [RANGE 1 MINUTE]")
    page.locator(".cm-wrong").wait_for()
    assert page.locator(".cm-wrong").inner_text() == "FRM"
    page.get_by_role("button", name="Preview for").click()
    page.get_by_text("did not run").wait_for()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("SELECT item FROM sales [RANGE 1 MINUTE]")
    page.locator(".cm-wrong").wait_for(state="detached")
    page.get_by_role("button", name="Preview for").click()
    page.locator(".answer tbody tr").first.wait_for()
    assert "apples" in keys(page)
    page.get_by_role("button", name="Add to job").click()
    page.get_by_text("Give the query a name").wait_for()
    page.get_by_label("Name of the query").fill("items")
    page.get_by_role("button", name="Add to job").click()
    page.get_by_text("Created query: `items`").wait_for()


def complete(page: sync_api.Page, text: str, name: str) -> None:
    """Type a text until a name is offered: on a busy machine the editor may lose the focus, and with it some letters."""
    offered = page.locator(".cm-tooltip-autocomplete").get_by_text(name)
    for _ in range(10):
        page.locator(".cm-content").click()
        page.keyboard.press("Control+A")
        page.keyboard.type(text)
        try:
            offered.wait_for(timeout=PATIENCE / 10)
        except sync_api.TimeoutError:
            page.keyboard.press("Escape")
        else:
            return
    offered.wait_for()


def test_streams_and_columns_are_completed(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/sql")
    page.get_by_role("cell", name="returns").wait_for()
    page.locator("[data-ready=true]").wait_for(state="attached")
    complete(page, "SELECT pri", "price")
    page.keyboard.press("Escape")
    complete(page, "SELECT price FROM sal", "sales")


def test_the_page_goes_on_after_the_server_restarts(server: Server, page: sync_api.Page) -> None:
    page.goto(f"{server.address}/job/shop/query/totals")
    page.locator(".answer tbody tr").first.wait_for()
    server.stop()
    page.evaluate("window.old = true")
    server.start()
    page.wait_for_function("window.old === undefined")
    page.locator(".answer tbody tr").first.wait_for()
