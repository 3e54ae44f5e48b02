"""The load: readers of server-sent events that check that no change is missing, and requests for answers at a steady rate.

It runs in a process of its own, and tells what processor time it took itself.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

_QUERY = "recent"


@dataclass
class Reader:
    """One reader: where it is, how many changes it got, and whether it missed or repeated any."""

    position: tuple[int, int] | None = None
    changes: int = 0
    wrong: int = 0
    restarts: int = 0
    rest: bytes = b""

    def take(self, data: bytes) -> None:
        """Read events, of which the last may not be whole."""
        *events, self.rest = (self.rest + data).split(b"\n\n")
        for event in events:
            if b"event: restart" in event:
                self.restarts += 1
            elif b"event: change" in event:
                self._change(event)

    def _change(self, event: bytes) -> None:
        head = event[event.index(b"id: ") + 4 :]
        number, _, end = head[: head.index(b"\n")].partition(b".")
        place = int(number), int(end) - 1
        before, self.position = self.position, place
        self.changes += 1
        follows = before is None or place == (before[0], before[1] + 1) or (place[0] > before[0] and place[1] == 0)
        self.wrong += not follows


@dataclass
class Requests:
    """The requests for answers: how long they took, and how many failed."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0


async def _read(reader: Reader, port: int, token: str, until: float) -> None:
    head = (
        f"GET /api/queries/{_QUERY}/changes HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    source, sink = await asyncio.open_connection("127.0.0.1", port)
    sink.write(head.encode())
    await source.readuntil(b"\r\n\r\n")
    while (left := until - time.monotonic()) > 0:
        try:
            size = int(await asyncio.wait_for(source.readline(), left), 16)
        except (TimeoutError, ValueError):
            break
        data = await source.readexactly(size + 2)
        reader.take(data[:-2])
    sink.close()


async def _ask(requests: Requests, port: int, token: str, until: float, every: float) -> None:
    """Ask at a steady rate on one connection; a request that takes longer delays the next."""
    head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n\r\n"
    source, sink = await asyncio.open_connection("127.0.0.1", port)
    due = time.monotonic()
    while (now := time.monotonic()) < until:
        if now < due:
            await asyncio.sleep(due - now)
        due += every
        begun = time.monotonic()
        sink.write(f"GET /api/queries/{_QUERY}/answer?limit=100 HTTP/1.1\r\n{head}".encode())
        answer = (await source.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        await source.readexactly(length)
        requests.seconds.append(time.monotonic() - begun)
        requests.failed += b" 200 " not in answer.split(b"\r\n")[0]
    sink.close()


async def _run(url: str, readers: int, rate: float, seconds: float) -> dict[str, Any]:
    parts = urlsplit(url)
    port, token = parts.port or 0, parse_qs(parts.query)["token"][0]
    until = time.monotonic() + seconds
    reading, requests = [Reader() for _ in range(readers)], Requests()
    askers = 10
    await asyncio.gather(
        *(_read(one, port, token, until) for one in reading),
        *(_ask(requests, port, token, until, askers / rate) for _ in range(askers)),
    )
    spent = resource.getrusage(resource.RUSAGE_SELF)
    times = sorted(requests.seconds)
    return {
        "seconds": seconds,
        "readers": readers,
        "changes": sum(one.changes for one in reading),
        "fewest_changes": min(one.changes for one in reading),
        "missed_or_repeated": sum(one.wrong for one in reading),
        "restarts": sum(one.restarts for one in reading),
        "requests": len(times),
        "failed": requests.failed,
        "median_seconds": times[len(times) // 2],
        "p99_seconds": times[len(times) * 99 // 100],
        "load_processor_seconds": spent.ru_utime + spent.ru_stime,
    }


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(asyncio.run(_run(**given))))
