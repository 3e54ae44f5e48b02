"""The page of a query: its answer now and at any earlier instant, a chart, its changes, and EXPLAIN."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from sash.console.pages import formats
from sash.console.pages.answer_rows import is_number, key_width
from sash.console.pages.answer_table import AnswerTable, shown, size_text
from sash.console.pages.frame import Fragment, card, every_second, fact, facts, known, listing, state
from sash.console.pages.markup import Child, Markup, tag
from sash.console.pages.model import Poll, Values
from sash.console.pages.series import Series, series_of
from sash.errors import NotKeptError

_ROWS = 200
_CHANGES = 500
_COLUMNS = 20
_MANY = 20_000
_OFFERED = 60
_STEPS = 1_000
_PALETTE = ["#3b82d6", "#e07b39", "#2f9e6e", "#c2528b", "#b8952a", "#7a6fd0", "#3aa3b8", "#a0674b"]


class QueryPage:
    """The elements of the page, and the instant that it shows: None is the latest."""

    def __init__(self, query: str, poll: Poll) -> None:
        self.query, self.poll = query, poll
        self.at: int | None = None
        self.first = self.last = 0
        self.now: Values = {"columns": [], "rows": []}
        self.recent: Values = {"changes": []}
        self._build()
        every_second(self.read)

    def _build(self) -> None:
        Fragment(tag("h2", self.query, class_="plain"))
        with card():
            self.figures = Fragment.waiting()
            self.sql = Fragment()
        with card("Answer"):
            with ui.element("div").classes("bar"):
                self.live = ui.button("Live", icon="play_arrow", on_click=self._go_live).props(
                    "dense outline padding='2px 10px'"
                )
                ui.button(icon="chevron_left", on_click=lambda: self._step(-1)).props(
                    'flat dense round aria-label="Previous change"'
                )
                self.slider = ui.slider(min=0, max=_STEPS, step=1, value=_STEPS).props('aria-label="Instant"')
                self.slider.on("update:model-value", self._slide, throttle=0.1)
                ui.button(icon="chevron_right", on_click=lambda: self._step(1)).props(
                    'flat dense round aria-label="Next change"'
                )
            self.instant = Fragment()
            self.table = AnswerTable("Reading the answer")
        with card("Over time"):
            self.column = (
                ui.select({}, label="Column", on_change=self.draw)
                .props("dense outlined options-dense")
                .style("width: 200px")
            )
            self.chart = ui.echart(_chart([]), renderer="svg")
            self.no_chart = Fragment()
        with card("Changes"):
            self.changes = Fragment.waiting().classes("log")
        with card():
            self.explain = ui.expansion("EXPLAIN", on_value_change=self._explain).classes("w-full")
            with self.explain:
                self.plan = Fragment()

    async def read(self) -> None:
        """Read what the page shows."""
        view = self.poll.view
        found = next((q for q in await self.poll.read(view.queries) if q["name"] == self.query), None)
        if found is None:
            reason = f"The job has no query {self.query}"
            self.figures.show(tag("div", reason, class_="empty"))
            self._show_nothing(reason)
            return
        problem = found.get("error")
        self.figures.show(
            _figures(found), None if not problem else tag("div", problem, class_="error", style="margin-top: 10px")
        )
        self.sql.show(tag("pre", (found.get("sql") or "").strip(), class_="sql", style="margin-top: 12px"))
        try:
            span = await self.poll.read(view.span, self.query)
            self.recent = await self.poll.read(view.changes, self.query, None, _CHANGES)
            self.now = await self.poll.read(view.answer, self.query, None, _ROWS)
        except NotKeptError as problem:
            self._show_nothing(str(problem))
            return
        self.first, self.last = span.get("first") or 0, span.get("last") or 0
        await self.show_answer()
        self._offer_columns(self.now["columns"])
        self.draw()
        self.changes.show(_change_list(self.recent["changes"], self.now["columns"]))

    def _show_nothing(self, reason: str) -> None:
        """Say why there is no answer to show."""
        self.instant.show(tag("div", reason, class_="note"))
        self.table.say("No answer is kept")
        self.changes.show(tag("div", "No changes are kept", class_="empty"))
        self.slider.set_enabled(False)
        self.live.set_visibility(False)
        self._offer_columns([], "No values are kept")

    async def show_answer(self, *, animate: bool = True) -> None:
        """Show the answer at the chosen instant."""
        self.slider.set_enabled(self.last > self.first)
        if self.at is None:
            answer = self.now
            self.slider.value = _STEPS
        else:
            self.at = max(self.first, min(self.at, self.last))
            answer = await self.poll.read(self.poll.view.answer, self.query, self.at, _ROWS)
        self.live.set_visibility(self.at is not None)
        self.instant.show(_caption(answer, self.at))
        self.table.say("The answer has no rows" if answer.get("known", True) else "Not yet known")
        self.table.show(answer["columns"], answer["rows"], answer.get("counts"), animate=animate)

    async def _slide(self, event: Any) -> None:
        self.at = self.first + (self.last - self.first) * int(event.args) // _STEPS
        await self.show_answer()

    async def _step(self, by: int) -> None:
        """Go to the instant of the change before or after the one that is shown."""
        here = self.last + 1 if self.at is None else self.at
        changes = self.recent["changes"]
        if changes and changes[0]["ts"] >= here:
            changes = (await self.poll.read(self.poll.view.changes, self.query, None, _MANY))["changes"]
        instants = sorted({change["ts"] for change in changes if self.first <= change["ts"] <= self.last})
        found = [ts for ts in instants if (ts - here) * by > 0]
        if not found:
            return
        self.at = found[0] if by > 0 else found[-1]
        self.slider.value = (self.at - self.first) * _STEPS // max(1, self.last - self.first)
        await self.show_answer()

    async def _go_live(self) -> None:
        self.at = None
        await self.show_answer()

    def _offer_columns(self, columns: list[Values], none: str = "The answer has no numeric column") -> None:
        numeric = [i for i, column in enumerate(columns) if is_number(str(column.get("type") or ""))]
        offered = {i: formats.visible(columns[i]["name"]) for i in numeric[:_OFFERED]}
        if offered != self.column.options:
            last = max(offered, default=None)
            self.column.set_options(offered, value=self.column.value if self.column.value in offered else last)
        self.column.set_visibility(bool(offered))
        self.chart.set_visibility(bool(offered))
        self.no_chart.show("" if offered else tag("div", none, class_="empty"))

    def draw(self) -> None:
        """Draw the chosen column."""
        if self.column.value is None or not self.now["columns"]:
            return
        kinds = [str(column.get("type") or "") for column in self.now["columns"]]
        width = key_width(self.now["rows"], kinds)
        now = self.now.get("as_of") or self.last
        options = _chart(series_of(self.now["rows"], self.recent["changes"], width, self.column.value, now))
        if options != self.chart.options:
            self.chart.options.clear()
            self.chart.options.update(options)

    async def _explain(self, event: Any) -> None:
        if event.value:
            self.plan.show(tag("pre", await self.poll.read(self.poll.view.explain, self.query), class_="sql wide"))


def _figures(query: Values) -> Markup:
    return facts(
        fact("State", state(str(query.get("state") or "unknown"))),
        fact(
            "Watermark",
            formats.instant(query.get("watermark"), date=False),
            known(query.get("lag_seconds"), f"{formats.seconds(query.get('lag_seconds'))} behind the clock"),
        ),
        fact(
            "Rows in",
            formats.count(query.get("total_rows_in")),
            known(query.get("rows_in"), f"{formats.count(query.get('rows_in'))} in the last batch"),
        ),
        fact(
            "Changes out",
            formats.count(query.get("total_rows_out")),
            known(query.get("rows_out"), f"{formats.count(query.get('rows_out'))} in the last batch"),
        ),
        fact(
            "State size",
            formats.size(query.get("state_bytes")),
            known(query.get("state_rows"), f"{formats.count(query.get('state_rows'))} rows"),
        ),
        fact("Sink", query.get("sink") or formats.NONE, f"mode {query['mode']}" if query.get("mode") else None),
    )


def _caption(answer: Values, at: int | None) -> Markup:
    if not answer.get("known", True):
        return tag("div", answer.get("reason") or "Not yet known", class_="note")
    if answer.get("as_of") is None and not answer["rows"]:
        return tag("div", "No batch has changed the answer yet", class_="soft")
    when = formats.instant(answer.get("as_of"))
    text = f"The latest answer, as of {when}" if at is None else f"The answer at {when}"
    return tag("div", f"{text} · {size_text(answer)}", class_="soft", data_at=at)


def _change_list(changes: list[Values], columns: list[Values]) -> Markup:
    kinds = [str(column.get("type") or "") for column in columns]
    today = formats.instant(changes[-1]["ts"])[:10] if changes else ""
    rows: list[list[Child]] = [
        [
            tag(
                "span",
                change["op"].replace("-", "\N{MINUS SIGN}"),
                class_="sign plus" if change["op"] == "+" else "sign minus",
                title="the row enters" if change["op"] == "+" else "the row leaves",
            ),
            _moment(formats.instant(change["ts"]), today),
            tag("span", f"{change['batch']}.{change['index']}", class_="soft"),
            *[
                tag("div", shown(value, kind), class_="held")
                for value, kind in zip(change["row"][:_COLUMNS], kinds, strict=False)
            ],
        ]
        for change in reversed(changes[-100:])
    ]
    heads = [
        ("", False),
        ("Time", False),
        ("Position", False),
        *((c["name"], is_number(k)) for c, k in zip(columns[:_COLUMNS], kinds, strict=False)),
    ]
    return listing(heads, rows, "No changes yet", stacked=False)


def _moment(instant: str, today: str) -> Markup:
    """An instant, without its date if that is the one of the latest change."""
    return tag("span", instant.removeprefix(f"{today} "), title=instant)


def _chart(series: list[Series]) -> dict[str, Any]:
    """Steps: a value holds until the next change."""
    grey = "#8a97a5"
    return {
        "animation": False,
        "color": _PALETTE,
        "backgroundColor": "transparent",
        "grid": {"left": 8, "right": 34, "top": 34, "bottom": 6, "containLabel": True},
        "legend": {"type": "scroll", "top": 0, "textStyle": {"color": grey}},
        "tooltip": {"trigger": "axis", "confine": True},
        "useUTC": True,
        "xAxis": {
            "type": "time",
            "axisLabel": {"color": grey, "hideOverlap": True},
            "axisLine": {"lineStyle": {"color": grey}},
        },
        "yAxis": {
            "type": "value",
            "scale": True,
            "axisLabel": {"color": grey},
            "splitLine": {"lineStyle": {"color": "#8a97a533"}},
        },
        "series": [
            {
                "name": line.name,
                "type": "line",
                "step": "end",
                "showSymbol": False,
                "data": [[ts / 1000, value] for ts, value in line.points],
            }
            for line in series
        ],
    }
