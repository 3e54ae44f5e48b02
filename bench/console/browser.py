"""Pages of the console that stay open in a headless Chromium: those of the job and of a query.

It runs in a process of its own, and tells how often the pages changed and what processor time the browser took. It gives way
to all others: a user's browser is rarely on the machine of the job.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

_PATHS = ("/", "/job/job/query/recent")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
)
_COUNT = """() => {
    window.updates = 0;
    new MutationObserver(() => window.updates++).observe(document.body, {subtree: true, childList: true});
}"""


def open_pages(url: str, seconds: float) -> dict[str, Any]:
    """Keep the pages open for some seconds."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(_FLAGS))
        context = browser.new_context(viewport={"width": 1400, "height": 800})
        context.new_page().goto(url)  # it gets the cookie
        base = url.split("/?", 1)[0]
        pages = []
        for path in _PATHS:
            page = context.new_page()
            page.goto(base + path)
            page.locator(".fact").first.wait_for()
            page.evaluate(_COUNT)
            pages.append(page)
        before, until = _processor_seconds(), time.monotonic() + seconds
        pages[-1].wait_for_timeout(1000 * max(0.0, until - time.monotonic()))
        found = {
            "seconds": seconds,
            "pages": len(pages) + 1,
            "updates": [page.evaluate("window.updates") for page in pages],
            "browser_processor_seconds": round(_processor_seconds() - before, 2),
        }
        browser.close()
    return found


def _give_way() -> None:
    """Take only processor time that nobody else wants. Linux may share it by sessions first, then by processes."""
    os.setsid()
    os.nice(19)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")


def _processor_seconds() -> float:
    """The processor time of this process and all below it."""
    whole = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (whole, *whole.children(recursive=True)))


if __name__ == "__main__":
    _give_way()
    print(json.dumps(open_pages(**json.loads(sys.argv[1]))))
