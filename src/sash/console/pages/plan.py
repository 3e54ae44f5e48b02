"""The page of the plan: the dataflow as a picture, its operators as a table, and the adaptive choices."""

from __future__ import annotations

from sash.console.pages import formats
from sash.console.pages.frame import Fragment, every_second, listing, while_it_runs
from sash.console.pages.markup import Child, Markup, join, tag
from sash.console.pages.model import Poll, Values
from sash.console.pages.plan_picture import plan_picture
from sash.console.plan_figures import skew

_MOST_SHARDS = 200
_PATTERNS = {
    "MONO": "rows never end",
    "WKS": "rows end in the order in which they came",
    "WK": "rows end at a time that is known",
    "WK(replace)": "a row ends with the next one of its group",
    "STR": "a row may end at any time",
}


def show_plan(poll: Poll) -> None:
    """Build the page."""
    plans = Fragment(tag("section", tag("div", "Reading …", class_="empty"), class_="card")).classes("stack")

    async def read() -> None:
        found = await poll.read(poll.view.plan)
        state = str((await poll.read(poll.view.status)).get("state"))
        none = while_it_runs(state, "plan", "The job has no plan yet")
        plans.show([_plan(plan) for plan in found] or tag("section", tag("div", none, class_="empty"), class_="card"))

    every_second(read)


def _plan(plan: Values) -> list[Markup]:
    patterns = {edge.get("pattern") for edge in plan["edges"]}
    legend = tag(
        "div",
        tag(
            "span",
            tag("i", style="background: var(--fill); border: 1px solid var(--line)"),
            "leg: runs in Spark's own engine",
        ),
        tag("span", tag("i", style="background: var(--busy); opacity: .4"), "busiest operators"),
        tag("span", tag("i", style="background: var(--full)"), "time per shard; below an operator, their shares"),
        tag("span", "\N{MULTIPLICATION SIGN}n: shared by n queries"),
        tag("span", "n/s: rows per second"),
        [tag("span", tag("strong", name), f": {text}") for name, text in _PATTERNS.items() if name in patterns],
        class_="legend",
    )
    operators = [node for node in plan["nodes"] if node.get("kind") == "operator"]
    parts = [("Operators", _operators(plan, operators))] if operators else []
    parts += [("Adaptive choices", _choices(plan["choices"]))] if plan.get("choices") else []
    parts += [("Operators by shard", _shards(operators))] if any(node.get("shards") for node in operators) else []
    return [
        tag("section", tag("h2", f"Dataflow of {plan['name']}"), plan_picture(plan), legend, class_="card"),
        *(tag("section", tag("h2", title), part, class_="card") for title, part in parts),
    ]


def _operators(plan: Values, operators: list[Values]) -> Markup:
    heads = [
        ("Operator", False),
        ("Stage", True),
        ("Queries", True),
        ("Rows in", True),
        ("Rows out", True),
        ("State rows", True),
        ("State", True),
        ("Time", True),
        ("Skew", True),
        ("Current choice", False),
    ]
    nodes = sorted(operators, key=lambda node: -(node.get("seconds") or 0))
    chosen = {choice.get("operator"): choice.get("choice") for choice in plan.get("choices") or []}
    rows: list[list[Child]] = [
        [
            [tag("strong", node.get("label")), tag("div", node.get("detail"), class_="soft")],
            node.get("stage"),
            node.get("shared"),
            formats.count(node.get("rows_in")),
            formats.count(node.get("rows_out")),
            formats.count(node.get("state_rows")),
            formats.size(node.get("state_bytes")),
            formats.seconds(node.get("seconds")),
            _skew(node.get("shards") or []),
            node.get("choice") or chosen.get(node["id"]) or formats.NONE,
        ]
        for node in nodes
    ]
    return listing(heads, rows, "The plan has no operators")


def _shards(operators: list[Values]) -> Markup:
    """The shards of every operator, those with the most skew first. The picture has those of stages."""
    heads = [
        ("Operator", False),
        ("Shard", True),
        ("Rows in", True),
        ("Rows out", True),
        ("State rows", True),
        ("State", True),
        ("Time", True),
        ("Of all shards' time", True),
    ]
    known = [node for node in operators if node.get("shards")]
    known.sort(key=lambda node: -(skew(node["shards"]) or 0))
    named = [(f"{node.get('label')}", f"in stage {node.get('stage')}", node["shards"]) for node in known]
    rows: list[list[Child]] = []
    for label, where, shards in named:
        whole = sum(shard.get("seconds") or 0 for shard in shards)
        rows += [
            [
                [tag("strong", label), tag("span", f" {where}", class_="soft")],
                shard.get("shard"),
                formats.count(shard.get("rows_in")),
                formats.count(shard.get("rows_out")),
                formats.count(shard.get("state_rows")),
                formats.size(shard.get("state_bytes")),
                formats.seconds(shard.get("seconds")),
                f"{(shard.get('seconds') or 0) / whole:.0%}" if whole else formats.NONE,
            ]
            for shard in shards
        ]
    more = len(rows) - _MOST_SHARDS
    listed = listing(heads, rows[:_MOST_SHARDS], "No shard has run yet", stacked=False)
    return listed if more <= 0 else join([listed, tag("div", f"{more:,} more rows", class_="soft")])


def _skew(shards: list[Values]) -> str:
    found = skew(shards)
    return formats.NONE if found is None else f"{found:.1f}"


def _choices(choices: list[Values]) -> Markup:
    rows: list[list[Child]] = [
        [_when(choice.get("time")), choice.get("operator"), choice.get("choice"), choice.get("reason") or formats.NONE]
        for choice in reversed(choices)
    ]
    return listing(
        [("Since", False), ("Operator", False), ("Choice", False), ("Reason", False)],
        rows,
        "No operator has changed its choice",
    )


def _when(time: Child) -> str:
    return formats.instant(time) if isinstance(time, int) else str(time or formats.NONE)
