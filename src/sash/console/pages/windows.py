"""The page of kept windows: their rings, the reads under way, and a box for snapshot queries."""

from __future__ import annotations

from typing import get_args

from nicegui import ui

from sash.console.pages import formats
from sash.console.pages.answer_table import AnswerTable, size_text
from sash.console.pages.frame import Fragment, card, every_second, fact, facts, listing, problem_text, while_it_runs
from sash.console.pages.markup import Child, Markup, tag
from sash.console.pages.model import Poll, Values, in_thread
from sash.console.pages.ring_picture import ring_picture
from sash.window_store.options import IsolationLevel

_ROWS = 500
_ACCESS = {"WS": "scan of the window", "SS": "stored summaries"}
_READS = (("good", "inside: read by a query"), ("busy", "being read"), ("unread", "still to be read"))


def show_windows(poll: Poll) -> None:
    """Build the page."""
    windows = Fragment(tag("section", tag("div", "Reading …", class_="empty"), class_="card")).classes("stack")
    _snapshot_box(poll)

    async def read() -> None:
        found = await poll.read(poll.view.windows)
        state = str((await poll.read(poll.view.status)).get("state"))
        text = while_it_runs(state, "windows", "The job keeps no windows. KEEP makes one.")
        none = tag("section", tag("h2", "Windows"), tag("div", text, class_="empty"), class_="card")
        windows.show([_window(window) for window in found] or none)

    every_second(read)


def _window(window: Values) -> Markup:
    rows = window.get("unit") == "rows"
    length = f"{formats.count(window.get('length'))} rows" if rows else _micros(window.get("length"))
    every = f"{formats.count(window.get('every'))} rows" if rows else _micros(window.get("every"))
    figures = facts(
        fact("Window", length, f"updated every {every}"),
        fact(
            "Next update due",
            formats.count(window.get("due")) if rows else formats.instant(window.get("due"), date=False),
            f"{formats.count(window.get('updates'))} updates so far",
        ),
        fact("Watermark", formats.instant(window.get("watermark"), date=False)),
        fact("Freshness", formats.seconds(window.get("freshness_seconds")), "since the last update"),
        fact("Late rows", formats.count(window.get("late"))),
        fact(
            "Reads", formats.count(window.get("completed")), f"completed; {formats.count(window.get('aborts'))} aborted"
        ),
    )
    legend = tag(
        "div",
        [
            tag("span", tag("i", style=f"background: var(--{name})"), text)
            for name, text in (
                ("full", "sub-window"),
                ("current", "being filled"),
                ("warn", "replaced next"),
                *(_READS if window.get("reads") else ()),
            )
        ],
        class_="legend",
        style="margin-top: 8px",
    )
    heads = [
        ("Read", False),
        ("Isolation", False),
        ("Priority", True),
        ("State", False),
        ("Sub-windows read", True),
        ("Time", True),
    ]
    reads: list[list[Child]] = [
        [
            tag("pre", read.get("sql"), class_="sql"),
            read.get("isolation"),
            read.get("priority"),
            [read.get("state"), f", waits for {read['waits_for']}" if read.get("waits_for") is not None else None],
            [
                f"{formats.count(read.get('read'))} of {formats.count(read.get('of'))}",
                tag("div", _order(read.get("versions")), class_="soft"),
            ],
            formats.seconds(read.get("seconds")),
        ]
        for read in window.get("reads") or []
    ]
    right = tag(
        "div",
        figures,
        tag("h2", "Reads under way, in their order", style="margin-top: 18px"),
        listing(heads, reads, "No reads under way"),
    )
    ring = tag("div", tag("div", ring_picture(window), legend), right, class_="kept")
    return tag("section", tag("h2", window["name"]), ring, class_="card")


def _order(versions: Values | None) -> str | None:
    """Which sub-windows a read reads now, and which come next."""
    if not versions:
        return None
    now, later = versions["reading"], versions["next"]
    parts = [f"now {', '.join(map(str, now))}"] if now else []
    parts += [f"then {', '.join(map(str, later[:4]))}{' …' if len(later) > 4 else ''}"] if later else []
    return "; ".join(parts) or None


def _micros(length: int | None) -> str:
    return formats.seconds(None if length is None else length / 1e6)


def _snapshot_box(poll: Poll) -> None:
    """A SELECT over a kept window, run once."""
    with card("Snapshot query"):
        sql = (
            ui.textarea(placeholder="SELECT ... FROM a kept window")
            .props('outlined autogrow dense aria-label="Snapshot SQL"')
            .classes("w-full mono")
        )
        with ui.element("div").classes("bar").style("margin: 10px 0"):
            level = (
                ui.select(list(get_args(IsolationLevel)), value="latest", label="Isolation level")
                .props("dense outlined options-dense")
                .style("width: 190px")
            )
            button = ui.button("Run")
        result = Fragment()
        table = AnswerTable("")

    async def ask() -> None:
        button.disable()
        try:
            found = await in_thread(poll.view.snapshot, sql.value or "", level.value, 10, _ROWS)
        except Exception as problem:  # noqa: BLE001  (it is shown)
            result.show(tag("div", problem_text(problem), class_="error"))
            table.say("")
            table.show([], [])
        else:
            result.show(_outcome(found))
            table.say("The answer has no rows")
            table.show(found["columns"], found["rows"], found.get("counts"), animate=False)
        finally:
            button.enable()

    button.on_click(ask)


def _outcome(found: Values) -> Markup:
    read = found.get("read") or {}
    return facts(
        fact("As of", formats.instant(found.get("as_of"), date=False)),
        fact("Access path", _ACCESS.get(str(found.get("access")), str(found.get("access") or formats.NONE))),
        fact(
            "Read",
            ", ".join(
                f"{formats.count(value) if isinstance(value, int) else value} {name}" for name, value in read.items()
            )
            or formats.NONE,
        ),
        fact("Time", formats.seconds(found.get("seconds")), f"{found.get('aborts') or 0} aborts"),
        fact("Answer", size_text(found)),
    )
