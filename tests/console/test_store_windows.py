"""The windows of a job as the page shows them, over a real store: sub-windows, and the reads under way in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sash.console import store_windows
from sash.console.store_windows import StoreWindows
from sash.errors import CatalogError
from sash.window_store.sub_windows import scan_locally
from tests.window_store.feeding import Fed, layout


class Gate:
    """Lets the scans of a snapshot through one by one."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def scan(self, *given: Any) -> Any:
        self.begun.release()
        self.go.acquire()
        return scan_locally(*given)


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    found = Fed(tmp_path, layout(10, 5))
    found.feed(43)
    found.feed(78, 30)
    yield found
    found.close()


def test_a_window_has_its_sub_windows_and_the_update_that_is_due(fed: Fed) -> None:
    windows = StoreWindows()
    (shown,) = windows.listed({"s": {"path": str(fed.root)}})
    windows.close()
    assert [(part["begin"], part["end"]) for part in shown["sub_windows"]] == [
        (begin, begin + 10) for begin in range(20, 70, 10)
    ]
    assert [part["state"] for part in shown["sub_windows"]] == ["full"] * 4 + ["current"]
    assert shown["rows"] == sum(part["rows"] for part in shown["sub_windows"])
    assert shown["rows"] == sum(20 <= row["ts"] < 70 for row in fed.rows)
    assert (shown["due"], shown["length"], shown["every"], shown["updates"]) == (80, 50, 10, 7)
    assert shown["reads"] == []


def test_reads_under_way_have_their_order(fed: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_windows, "_MOST_SECONDS", 1e6)
    windows, gate = StoreWindows(), Gate()
    given = {"s": {"path": str(fed.root)}}
    windows.listed(given)
    windows._queries.scans["local"] = lambda _: gate.scan
    answers: list[Any] = []
    sql = "SELECT COUNT(*) AS n FROM s [RANGE 50 MICROSECONDS]"
    asking = threading.Thread(target=lambda: answers.append(windows.snapshot(given, sql, "ttu", 1e6, 10)))
    asking.start()
    gate.begun.acquire()
    (read,) = windows.listed(given)[0]["reads"]
    assert (read["isolation"], read["state"], read["read"], read["of"]) == ("ttu", "reading", 0, 5)
    first = read["versions"]["reading"]
    order = [*first, *read["versions"]["next"]]
    assert sorted(order) == [part["number"] for part in windows.listed(given)[0]["sub_windows"]]
    assert order == sorted(order, reverse=True)  # the one that is replaced last comes first
    gate.go.release()
    gate.begun.acquire()
    (read,) = windows.listed(given)[0]["reads"]
    assert (read["versions"]["done"], read["versions"]["reading"]) == (first, order[1:2])
    assert read["read"] == 1
    for _ in order[1:]:
        gate.go.release()
    asking.join()
    (shown,) = windows.listed(given)
    windows.close()
    assert answers[0]["rows"] == [[shown["rows"]]]
    assert (shown["reads"], shown["completed"], shown["aborts"]) == ([], 1, 0)


def test_a_snapshot_of_a_job_without_windows_says_what_makes_one() -> None:
    windows = StoreWindows()
    with pytest.raises(CatalogError, match="KEEP makes it"):
        windows.snapshot({}, "SELECT COUNT(*) AS n FROM s [NOW]", "latest", 1, 1)
    windows.close()
