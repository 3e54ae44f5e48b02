from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the console's extra is not installed")

from sash.console.feed import RESTART, Feeds
from sash.console.kept import KeptHistory
from sash.history.limits import HistoryLimits
from tests.console.served import history_of
from tests.history.rings import WrittenHistory, changes


def write(history: WrittenHistory, number: int, *, size: int = 3) -> None:
    given = [("+", number, f"item {number} {place}", place) for place in range(size)]
    history.batch(number, number + 1, {"q": changes(*given)})


def parsed(text: str) -> list[dict[str, Any]]:
    """The events in a text that ends with a whole one."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "event" in fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found


async def read(feeds: Feeds, after: tuple[int, int] | None, until: tuple[int, int]) -> list[dict[str, Any]]:
    """Read events until that of a position has come."""
    text = ""
    stream = feeds.events("q", after)
    async for piece in stream:
        text += piece.decode()
        if f"id: {until[0]}.{until[1]}\n" in text:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    return parsed(text)


def places(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(one["data"]["batch"], one["data"]["index"]) for one in events if one["event"] == "change"]


def test_readers_that_connect_again_anywhere_miss_nothing_and_get_nothing_twice(tmp_path: Path) -> None:
    history = history_of(tmp_path).open(fresh=True)
    write(history, 0)
    history.settled()
    everything = [(number, index) for number in range(1, 6) for index in range(3)]

    async def run() -> None:
        feeds = Feeds(KeptHistory(tmp_path))
        whole = asyncio.create_task(read(feeds, (0, 3), (5, 3)))
        late = asyncio.create_task(read(feeds, None, (5, 3)))
        await asyncio.sleep(0)
        for number in range(1, 6):
            await asyncio.to_thread(write, history, number)
            await asyncio.to_thread(history.settled)
        assert places(await whole) == everything
        assert set(places(await late)) <= set(everything)
        for cut in range(len(everything)):  # the connection is lost after any change
            number, index = everything[cut]
            rest = await read(feeds, (number, index + 1), (5, 3)) if cut < len(everything) - 1 else []
            assert everything[: cut + 1] + places(rest) == everything
        assert feeds.readers == 0

    asyncio.run(run())
    history.close()


def test_an_uncommitted_batch_is_not_sent(tmp_path: Path) -> None:
    history = history_of(tmp_path).open(fresh=True)
    write(history, 0)
    history.batch(1, 2, {"q": changes(("+", 1, "tea", 1))}, commit=False)
    history.settled()

    async def run() -> list[dict[str, Any]]:
        feeds = Feeds(KeptHistory(tmp_path))
        reading = asyncio.create_task(read(feeds, (0, 0), (1, 1)))
        await asyncio.sleep(0)
        history.batch(1, 2, {"q": changes(("+", 1, "jam", 1))})  # it is run again, and committed
        await asyncio.to_thread(history.settled)
        return await reading

    events = asyncio.run(run())
    assert [one["data"]["row"]["item"] for one in events if one["event"] == "change"][3:] == ["jam"]
    assert [one["data"]["watermark"] for one in events if one["event"] == "batch"] == [1_000_000, 2_000_000]
    history.close()


def test_a_reader_that_stands_still_is_told_to_start_again_and_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sash.console.feed._MOST_CHUNKS", 4)
    history = history_of(tmp_path, HistoryLimits(1e9, 1 << 16)).open(fresh=True)
    write(history, 0)
    history.settled()

    async def run() -> None:
        feeds = Feeds(KeptHistory(tmp_path))
        slow = feeds.events("q", (0, 3))
        assert b"event: start" in await anext(slow)
        feed, position, got = feeds._feeds["q"][0], (0, 3), 0
        for number in range(1, 41):
            await asyncio.to_thread(write, history, number, size=200)
            await asyncio.to_thread(history.settled)
            got += len(places(await read(feeds, position, (number, 200))))  # this reader keeps up
            position = number, 200
        assert got == 40 * 200
        assert sum(len(chunk.data) for chunk in feed._chunks) < 9 << 20
        assert len(feed._chunks) == 4
        assert await anext(slow) == RESTART
        assert [piece async for piece in slow] == []

    asyncio.run(run())
    history.close()
