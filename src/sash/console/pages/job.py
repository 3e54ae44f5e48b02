"""The page of a job: its figures, its queries, and what went wrong."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from sash.console.pages import formats
from sash.console.pages.frame import Fragment, address, card, every_second, fact, facts, known, listing, state
from sash.console.pages.markup import Child, Markup, tag
from sash.console.pages.model import Poll, Values
from sash.console.pages.sparkline import sparkline


def show_job(job: str, poll: Poll) -> None:
    """Build the page."""
    with card():
        figures = Fragment.waiting()
    with card("Queries"):
        queries = Fragment.waiting()
    with card("Errors"):
        errors = Fragment.waiting()

    async def read() -> None:
        status = await poll.read(poll.view.status)
        figures.show(job_figures(status))
        queries.show(query_list(job, await poll.read(poll.view.queries)))
        errors.show(error_list(status.get("errors") or []))

    every_second(read)


def job_figures(status: Values) -> Markup:
    """The figures of all queries together."""
    batches = status.get("batches") or []
    last = batches[-1] if batches else {}
    trigger = status.get("trigger_seconds")
    took = last.get("batch_ms")
    jobs = status.get("jobs") or []
    of_jobs = f", of {len(jobs)} dataflows" if len(jobs) > 1 else ""
    lag = max((job["lag_seconds"] for job in jobs if job.get("lag_seconds") is not None), default=None)
    due = None if trigger is None else f"trigger every {formats.seconds(trigger)}"
    if took is not None and trigger and took > trigger * 1000:
        due = tag("span", f"longer than its trigger, {formats.seconds(trigger)}", class_="note")
    return facts(
        fact("State", state(str(status.get("state") or "unknown")), _since(status)),
        fact("Rows in", formats.rate(per_second(batches, "rows_in")), *_line(batches, "rows_in", "rows in per batch")),
        fact(
            "Changes out",
            formats.rate(per_second(batches, "rows_out")),
            *_line(batches, "rows_out", "changes per batch"),
        ),
        fact("Batch time", formats.milliseconds(took), due, sparkline(_of(batches, "batch_ms"), "batch time")),
        fact(
            "Watermark lag",
            formats.seconds(lag),
            known(lag, "behind the clock"),
            sparkline(_of(batches, "lag_seconds"), "lag of the watermark"),
        ),
        fact(
            "State size",
            formats.size(last.get("state_bytes")),
            known(last.get("state_rows"), f"{formats.count(last.get('state_rows'))} rows"),
            sparkline(_of(batches, "state_bytes"), "bytes of state"),
        ),
        *(
            fact(what, formats.count(_total(jobs, name)), known(_total(jobs, name), more))
            for what, name, more in (
                ("Late rows", "total_late", f"since the start{of_jobs}"),
                ("Bad rows", "total_bad", f"since the start{of_jobs}"),
                ("Rows ahead", "total_ahead", f"dropped by MAX JUMP since the start{of_jobs}"),
            )
        ),
        fact("Backlog", backlog(status), _catch_up(status)),
        class_="facts five",
    )


def query_list(job: str, queries: list[Values]) -> Markup:
    """The queries of the job, one per line."""
    heads = [
        ("Query", False),
        ("State", False),
        ("Watermark", False),
        ("Behind", True),
        ("Rows in", True),
        ("Changes out", True),
        ("Late", True),
        ("Bad", True),
        ("State size", True),
        ("Share of batch", True),
        ("Changes per batch", False),
    ]
    rows: list[list[Child]] = [
        [
            tag("a", query["name"], href=address(job, "query", query["name"])),
            [state(str(query.get("state") or "unknown")), _problem(query)],
            formats.instant(query.get("watermark")),
            formats.seconds(query.get("lag_seconds")),
            _flow(query, "rows_in"),
            _flow(query, "rows_out"),
            formats.count(query.get("total_late")),
            formats.count(query.get("total_bad")),
            formats.size(query.get("state_bytes")),
            formats.NONE if query.get("share") is None else f"{query['share']:.0%}",
            sparkline(_of(query.get("batches") or [], "rows_out"), "changes per batch"),
        ]
        for query in queries
    ]
    return listing(heads, rows, "The job has no queries")


def error_list(errors: list[Values]) -> Markup:
    """Errors, the latest first, with the row or text that caused them."""
    rows: list[list[Child]] = [
        [
            _time(error.get("time")),
            error.get("query") or formats.NONE,
            [
                tag("div", error.get("text"), class_="error"),
                None if error.get("row") is None else tag("pre", formats.cell(error["row"]), class_="sql"),
            ],
        ]
        for error in reversed(errors)
    ]
    return listing([("Time", False), ("Query", False), ("What happened", False)], rows, "No errors")


def per_second(batches: list[Values], name: str, now: float | None = None, most: int = 10) -> float | None:
    """Return rows per second over the last batches, which falls while the next one is overdue.

    >>> batches = [{"time": 0, "rows_in": 7}, {"time": 2_000_000, "rows_in": 5}, {"time": 4_000_000, "rows_in": 1}]
    >>> per_second(batches, "rows_in", 5_000_000), per_second(batches, "rows_in", 14_000_000)
    (1.5, 0.5)
    """
    known = [batch for batch in batches if batch.get("time") is not None and batch.get(name) is not None][-most - 1 :]
    if len(known) < 2 or known[-1]["time"] <= known[0]["time"]:
        return None
    span = known[-1]["time"] - known[0]["time"]
    overdue = (time.time() * 1e6 if now is None else now) - known[-1]["time"] - span / (len(known) - 1)
    return float(1e6 * sum(batch[name] for batch in known[1:]) / (span + max(0, overdue)))


def _flow(query: Values, name: str) -> list[Child]:
    """A total, and rows per second below it."""
    rate = per_second(query.get("batches") or [], name)
    return [
        formats.count(query.get(f"total_{name}")),
        None if rate is None else tag("div", formats.rate(rate), class_="soft"),
    ]


def _problem(query: Values) -> Markup | None:
    if query.get("error"):
        return tag("div", query["error"], class_="error")
    return tag("div", "not yet complete", class_="soft") if query.get("complete") is False else None


def backlog(status: Values) -> str:
    """What waits in the sources, as far as they tell.

    >>> backlog({"backlog_rows": 12_000, "backlog_files": 1}), backlog({"backlog_rows": None})
    ('12,000 rows, 1 file', 'unknown')
    """
    parts = []
    for name in ("row", "file"):
        count = status.get(f"backlog_{name}s")
        parts += [] if count is None else [f"{formats.count(count)} {name}{'' if count == 1 else 's'}"]
    return ", ".join(parts) or "unknown"


def _catch_up(status: Values) -> str:
    left = status.get("catch_up_seconds")
    if left:
        return f"{formats.seconds(left)} to catch up"
    if status.get("backlog_rows") is None and status.get("backlog_files") is None:
        return "the sources do not tell"
    return "nothing to catch up" if left is not None else "time to catch up unknown"


def _line(batches: list[Values], name: str, title: str) -> tuple[None, Markup | None]:
    return None, sparkline(_of(batches, name), title)


def _of(batches: list[Values], name: str) -> list[float | None]:
    return [batch.get(name) for batch in batches]


def _total(jobs: list[Values], name: str) -> float | None:
    found = [job[name] for job in jobs if job.get(name) is not None]
    return sum(found) if found else None


def _since(status: Values) -> str | None:
    """How long it runs, or when it was started if it does not run."""
    begun = _micros(status.get("since"))
    if begun is None:
        return None
    if status.get("state") not in ("running", "paused"):
        return f"started {formats.instant(begun)}"
    return f"for {formats.seconds(max(0, round(time.time() - begun / 1e6)))}"


def _time(given: Any) -> str:
    return formats.instant(_micros(given))


def _micros(given: Any) -> int | None:
    if isinstance(given, str):
        try:
            at = datetime.fromisoformat(given)
        except ValueError:
            return None
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)
    return given if isinstance(given, int) else None
