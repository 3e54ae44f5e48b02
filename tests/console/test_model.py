from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from sash.console.pages.model import Poll


def test_a_page_that_is_closed_while_it_reads_takes_nothing_from_others() -> None:
    begun, goes_on, calls = threading.Event(), threading.Event(), [0]

    def status() -> dict[str, str]:
        calls[0] += 1
        begun.set()
        assert goes_on.wait(60)
        return {"state": "running"}

    async def read() -> tuple[bool, Any, Any]:
        view: Any = SimpleNamespace(status=status)
        poll = Poll(view)
        closed = asyncio.create_task(poll.read(status))
        await asyncio.to_thread(begun.wait, 60)
        others = [asyncio.create_task(poll.read(status)) for _ in range(2)]
        closed.cancel()
        goes_on.set()
        found = await asyncio.gather(*others)
        await asyncio.gather(closed, return_exceptions=True)
        return closed.cancelled(), *found

    assert asyncio.run(read()) == (True, {"state": "running"}, {"state": "running"})
    assert calls[0] == 2
