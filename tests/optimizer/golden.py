"""The golden files: for each rule, its examples' plans before and after. `python -m tests.optimizer.golden` writes them."""

from __future__ import annotations

from pathlib import Path

from sash.optimizer.optimizer import RULES, optimize
from sash.plan.tree import tree
from sash.sql import parse
from tests.optimizer.plans import CATALOG, EXAMPLES

FOLDER = Path(__file__).parent / "golden"
ALL = "all_rules"
BESIDE = {"push_distinct_below_join": "drop_distinct", "push_down_negation": "push_down_projection"}
"""Rules that make room for others, which run with them."""


def names() -> list[str]:
    return [*(name for name, _ in RULES), ALL]


def render(rule: str) -> str:
    """Every example of the rule: its text, its plan with projections merged, and what the rule makes of it."""
    by_name = dict(RULES)
    tidy = (("merge_projections", by_name["merge_projections"]),)
    beside = {"merge_projections", rule, BESIDE.get(rule, rule)}
    chosen = RULES if rule == ALL else tuple((name, by_name[name]) for name, _ in RULES if name in beside)
    parts = []
    for example, name, sql in EXAMPLES:
        if rule not in (example, ALL):
            continue
        before = parse(sql, CATALOG)
        if rule not in ("merge_projections", ALL):
            before = optimize(before, tidy).plan
        after = optimize(before, chosen).plan
        texts = ["(unchanged)"] if after == before else [tree(after)]
        shown = [] if rule == ALL else [tree(before), "=>"]
        parts.append("\n".join([f"-- {name}", sql, "", *shown, *texts, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    for rule_name in names():
        (FOLDER / f"{rule_name}.txt").write_text(render(rule_name))
