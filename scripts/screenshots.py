"""Take the pictures of docs/console.md, or of every page of the console: wide and narrow, light and dark.

    python scripts/screenshots.py
    python scripts/screenshots.py --all FOLDER

It serves the model job of tests/console, and needs Playwright and Chromium.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
PAGES = {
    "job": "/job/shop",
    "query": "/job/shop/query/totals",
    "plan": "/job/shop/plan",
    "windows": "/job/shop/windows",
    "sql": "/job/shop/sql",
}
QUERY = "SELECT item, SUM(price) AS total, COUNT(*) AS sales\nFROM sales [RANGE 1 MINUTE]\nGROUP BY item"
"""The query whose answer the model job gives."""


DOCUMENTED = {*(f"{name}-wide-light" for name in PAGES), "query-phone-dark"}


def prepare(page: Page, name: str) -> None:
    """Bring a page to where it has something to show."""
    if name == "windows":
        page.get_by_label("Snapshot SQL").fill(QUERY)
        page.get_by_role("button", name="Run").click()
        page.get_by_text("Access path").wait_for()
    if name == "sql":
        page.locator(".cm-content").click()
        page.keyboard.insert_text(QUERY)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Preview for").click()
        page.locator(".answer tbody tr").first.wait_for()
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(1500)


def main() -> None:
    """Serve, and take the pictures."""
    everything = sys.argv[1:2] == ["--all"]
    folder = Path(sys.argv[2]) if everything else ROOT / "docs" / "pictures" / "console"
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.console.serve",
            str(port),
            str((int(time.time()) - 90) * 1_000_000),
        ],  # as if begun 90 s ago
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
    )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{base}/job/shop").close()  # noqa: S310
                break
            except OSError:
                time.sleep(0.2)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for width, kind in ((1400, "wide"), (390, "phone")):
                for scheme in ("light", "dark"):
                    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
                    for name, path in PAGES.items():
                        if not everything and f"{name}-{kind}-{scheme}" not in DOCUMENTED:
                            continue
                        page.goto(base + path)
                        prepare(page, name)
                        page.screenshot(path=folder / f"{name}-{kind}-{scheme}.png", full_page=True)
                        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                        print(f"{name} {kind} {scheme}" + (f": {over} pixels too wide" if over > 0 else ""))
                    page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
