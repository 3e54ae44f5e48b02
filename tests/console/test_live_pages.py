"""The console in a browser over a job on Spark: one job and one browser for all tests, each of which sells items of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from sash.console.job_view import JobView
from sash.errors import ControlError
from sash.job_index import find_job
from sash.testing import replay
from sash.time import SECOND
from tests.cli.command import QUICK, ROOT
from tests.console.browser import PATIENCE, chromium

pytest.importorskip("nicegui", reason="needs sash[console]")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="needs Chromium: scripts/setup-chromium.sh"),
]

TOTALS = "SELECT item, COUNT(*) AS n, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item"
SCRIPT = """
CREATE STREAM sales (ts BIGINT, item STRING, price BIGINT) USING csv OPTIONS (path '{path}', header true);
KEEP sales WINDOW '60 seconds' EVERY '10 seconds';
CREATE QUERY totals AS {totals} INTO noop;
CREATE QUERY highest AS SELECT MAX(price) AS highest FROM sales [RANGE 30 SECONDS] INTO noop;
"""
ATTACK = "<img src=x onerror=document.title=1>"
SHOWN = "[...document.querySelectorAll('.answer tbody tr:not(.row-leave-active)')].map(r => r.cells[0].innerText)"


def started(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **QUICK, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "sash.cli", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def read_until(process: subprocess.Popen[str], *keys: str) -> dict[str, Any]:
    """What the lines of JSON say, up to where each of the keys was among them."""
    found: dict[str, Any] = {}
    assert process.stdout is not None
    for line in process.stdout:
        found |= json.loads(line) if line.startswith("{") else {}
        if found.keys() >= set(keys):
            return found
    raise AssertionError(f"the process ended without {', '.join(keys)}")


class Shop:
    """The job, its sales, and its console."""

    def __init__(self, home: Path) -> None:
        self.home, self.rows = home, []
        self.folder = home / "sales"
        self.folder.mkdir()
        self.sell("tea", 5)
        self.sell("tea", 1)
        file = home / "shop.sql"
        file.write_text(SCRIPT.format(path=self.folder, totals=TOTALS))
        self.checkpoint = str(home / "checkpoint")
        options = ["--shards", "2", "--master", "local[1]", "--console", "0", "--allow-changes", "--json"]
        self.job = started("run", str(file), "--checkpoint", self.checkpoint, *options)
        self.console: subprocess.Popen[str] | None = None  # at first there is the one beside the job
        self._opened(str(read_until(self.job, "url", "batch")["url"]))

    def _opened(self, url: str) -> None:
        self.url = url
        self.port = urlsplit(self.url).port or 0
        self.address = f"http://127.0.0.1:{self.port}"

    def sell(self, item: str, price: int, after: int = 1) -> int:
        """Sell an item some seconds after the last one; return the instant. What was before it becomes known."""
        ts = (self.rows[-1]["ts"] if self.rows else 0) + after * SECOND
        self.rows.append({"ts": ts, "item": item, "price": price})
        draft = self.folder / f".{len(self.rows)}"
        draft.write_text(f'ts,item,price\n{ts},"{item}",{price}\n')
        draft.rename(self.folder / f"{len(self.rows):04d}.csv")
        return ts

    def kill_console(self) -> None:
        """Kill the console beside the job."""
        (process,) = (p for p in psutil.Process(self.job.pid).children() if "console" in p.cmdline())
        process.kill()

    def open_console(self) -> None:
        """Start another console on the same port."""
        self.console = started("console", self.checkpoint, "--port", str(self.port), "--allow-changes", "--json")
        self._opened(str(read_until(self.console, "url")["url"]))

    def close(self) -> None:
        if self.console is not None:
            self.console.send_signal(signal.SIGTERM)
            self.console.communicate()
        self.job.kill()
        self.job.communicate()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    home = tmp_path_factory.mktemp("shop")
    found = Shop(home)
    yield found
    found.close()


@pytest.fixture
def page(browser: sync_api.Browser, shop: Shop) -> Iterator[sync_api.Page]:
    opened = browser.new_page(viewport={"width": 1400, "height": 800})
    opened.set_default_timeout(PATIENCE)
    problems: list[str] = []
    opened.on("pageerror", lambda problem: problems.append(str(problem)))
    opened.goto(shop.url)
    opened.get_by_role("link", name="totals").wait_for()
    yield opened
    opened.close()
    assert not problems


def shown(page: sync_api.Page) -> list[str]:
    return list(page.evaluate(SHOWN))


def wait_for_row(page: sync_api.Page, item: str, there: bool = True) -> None:
    page.wait_for_function(f"([item, there]) => {SHOWN}.includes(item) === there", arg=[item, there])


def test_the_job_and_its_plan(shop: Shop, page: sync_api.Page) -> None:
    assert "token" not in page.url
    page.locator(".state.running").nth(2).wait_for()
    shop.sell("tea", 2)
    page.locator("svg .spark").first.wait_for()
    page.get_by_role("link", name="Plan").click()
    page.locator("[data-node='out:totals']").wait_for()
    labels = page.locator("svg text.on").all_text_contents()
    assert len(labels) == 2 * page.locator("svg .edge").count() > 4
    assert {"WKS", "STR"} & {label.split()[0] for label in labels if label}
    page.get_by_role("cell", name="Aggregate").first.wait_for()


def test_rows_enter_and_leave_and_the_slider_shows_earlier_answers(shop: Shop, page: sync_api.Page) -> None:
    page.get_by_role("link", name="totals").click()
    shop.sell("jam", 3)
    entered = shop.sell(ATTACK, 2)
    wait_for_row(page, "jam")
    shop.sell("honey", 4)
    wait_for_row(page, ATTACK)
    assert page.locator("img").count() == 0
    shop.sell("bread", 1, after=61)
    shop.sell("bread", 1)
    wait_for_row(page, "jam", there=False)
    wait_for_row(page, ATTACK, there=False)
    page.get_by_text("The latest answer").wait_for()
    for _ in range(2):
        before = page.locator("[data-at]").count() and page.locator("[data-at]").get_attribute("data-at")
        page.get_by_role("button", name="Previous change").click()
        page.wait_for_function(
            "before => (document.querySelector('[data-at]')?.dataset.at ?? 0) !== before", arg=before or 0
        )
    at = int(page.locator("[data-at]").get_attribute("data-at") or 0)
    assert entered < at < shop.rows[-1]["ts"]
    wanted = replay(TOTALS, {"sales": shop.rows}, unit="us", until=shop.rows[-1]["ts"]).at(at)
    page.wait_for_function(
        f"wanted => {SHOWN}.sort().join() === wanted", arg=",".join(sorted(r["item"] for r in wanted))
    )
    page.get_by_role("button", name="Live").click()
    page.get_by_text("The latest answer").wait_for()
    page.get_by_text("EXPLAIN", exact=True).click()
    page.get_by_text("Aggregate").first.wait_for()


def test_a_window_and_a_snapshot(shop: Shop, page: sync_api.Page) -> None:
    page.get_by_role("link", name="Windows").click()
    shop.sell("salt", 9)
    shop.sell("salt", 9, after=11)
    shop.sell("salt", 9, after=11)
    page.locator("[data-part]").first.wait_for()
    page.get_by_label("Snapshot SQL").fill("SELECT item, COUNT(*) AS n FROM sales [RANGE 1 MINUTE] GROUP BY item")
    for _ in range(100):  # until the window has the update
        page.get_by_role("button", name="Run").click()
        page.get_by_role("button", name="Run", disabled=False).wait_for()
        page.get_by_text("Access path").wait_for()
        if "salt" in shown(page):
            break
    assert "salt" in shown(page)


def test_a_preview_with_an_error_that_is_mended(shop: Shop, page: sync_api.Page) -> None:
    page.get_by_role("link", name="SQL").click()
    page.get_by_role("cell", name="sales").first.wait_for()
    page.locator("[data-ready=true]").wait_for(state="attached")
    page.locator(".cm-content").click()
    page.keyboard.insert_text("SELECT item, COUNT(*) AS n FROM sales [RANGE 1 MINUTE] GROUP BY itm")
    page.locator(".cm-wrong").wait_for()
    page.get_by_role("button", name="Preview for").click()
    page.get_by_text("did not run").wait_for()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("SELECT item, COUNT(*) AS n FROM sales [RANGE 1 MINUTE] GROUP BY item")
    page.locator(".cm-wrong").wait_for(state="detached")
    page.get_by_role("button", name="Preview for").click()
    page.locator(".answer tbody tr").first.wait_for()
    assert shown(page)


def test_wrong_tokens_and_origins_are_refused(shop: Shop, browser: sync_api.Browser) -> None:
    stranger = browser.new_page()
    for path, status in (("/", 401), ("/job/shop", 401), ("/?token=wrong", 403)):
        response = stranger.goto(f"{shop.address}{path}")
        assert response is not None
        assert response.status == status
        assert not stranger.locator(".card").count()
    stranger.goto(shop.url)
    cookies = {cookie["name"]: cookie["value"] for cookie in stranger.context.cookies()}
    stranger.close()
    for origin, expected in (("http://evil.example", 403), (shop.address, 200)):
        request = urllib.request.Request(f"{shop.address}/api/jobs")
        request.add_header("Origin", origin)
        request.add_header("Cookie", "; ".join(f"{name}={value}" for name, value in cookies.items()))
        try:
            with urllib.request.urlopen(request) as reply:
                found = reply.status
        except urllib.error.HTTPError as problem:
            found = problem.code
        assert found == expected


def test_a_query_is_added_if_the_console_may_change_the_job(shop: Shop, page: sync_api.Page) -> None:
    statement = "CREATE QUERY lowest AS SELECT MIN(price) AS lowest FROM sales [RANGE 30 SECONDS] INTO noop"
    with pytest.raises(ControlError, match="--allow-changes"):
        JobView(find_job(shop.checkpoint)).add(statement)
    page.get_by_role("link", name="SQL").click()
    page.locator("[data-ready=true]").wait_for(state="attached")
    page.locator(".cm-content").click()
    page.keyboard.insert_text(statement)
    page.get_by_role("button", name="Add to job").click()
    page.get_by_text("Created query").wait_for()
    page.get_by_role("link", name="Job", exact=True).click()
    page.get_by_role("link", name="lowest").click()
    shop.sell("rice", 1)
    shop.sell("rice", 1)
    wait_for_row(page, "1")


def test_a_page_and_the_job_go_on_after_the_console_beside_it_was_killed(shop: Shop, page: sync_api.Page) -> None:
    page.get_by_role("link", name="totals").click()
    page.locator(".answer tbody tr").first.wait_for()
    page.evaluate("window.old = true")
    shop.kill_console()
    while "the console was ended by signal 9; the job goes on" not in read_until(shop.job, "message")["message"]:
        pass
    shop.sell("flour", 1)
    shop.open_console()
    page.wait_for_function("window.old === undefined")
    page.locator(".answer tbody tr").first.wait_for()
    shop.sell("oil", 1)
    shop.sell("oil", 1)
    wait_for_row(page, "oil")
    wait_for_row(page, "flour")
    assert shop.job.poll() is None
