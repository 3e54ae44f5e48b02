"""What becomes of alike queries when a job changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sash.alike import Candidate, number_of, plan_alike
from sash.change.diff import JobDiff, diff_jobs
from sash.change.stored import AlikePlace, Answer, JobPlan
from sash.physical.plan_channels import channels_of
from sash.planning import plan_query, plan_together
from tests.change.test_classify import CATALOG, stored

ABOVE = "SELECT item, SUM(price) AS total FROM sales [RANGE 10 SECONDS] GROUP BY item HAVING SUM(price) > {}"
OTHER = "SELECT shop, COUNT(*) AS n FROM sales [RANGE 4 SECONDS] GROUP BY shop"


def job(queries: Mapping[str, str], kept: Mapping[str, Sequence[int]], sinks: Mapping[str, str]) -> JobPlan:
    planned = {name: plan_query(sql, CATALOG, shards=2) for name, sql in queries.items()}
    templates = plan_alike([Candidate(name, one, "changes", None) for name, one in planned.items()], 2, kept)
    made = plan_together(planned, 2, (), templates)
    answers = {
        name: Answer(one.sql, tuple(f"{field.name}:{field.dtype}" for field in one.schema), sinks.get(name, name))
        for name, one in planned.items()
    }
    alike = {name: AlikePlace(template.name, number_of(name)) for name, (template, _) in made.members.items()}
    return JobPlan(made.physical, channels_of(made.physical, share=True), 2, answers, alike=alike)


def change(old: Mapping[str, str], new: Mapping[str, str], **sinks: str) -> JobDiff:
    before = job(old, {}, {})
    planned = {name: plan_query(sql, CATALOG, shards=2) for name, sql in old.items()}
    templates = plan_alike([Candidate(name, one, "changes", None) for name, one in planned.items()], 2)
    kept = {template.name: template.template.parameters for template in templates}
    return diff_jobs(before, job(new, kept, sinks), stored(before))


def above(numbers: range) -> dict[str, str]:
    return {f"q{number}": ABOVE.format(number) for number in numbers}


def test_constants_change_without_a_new_generation() -> None:
    diff = change(above(range(9)), {**above(range(1, 8)), "q1": ABOVE.format(90), "added": ABOVE.format(7)})
    assert not diff.changed
    assert diff.pause == 0
    moved = {query.name: (query.verdict, query.moves) for query in diff.queries if query.verdict != "kept"}
    assert moved == {
        "q1": ("derived", False), "added": ("derived", False), "q0": ("dropped", False), "q8": ("dropped", False),
    }  # fmt: skip
    shown = diff.render().splitlines()
    assert shown[-1] == "only constants change, without a pause"
    assert shown[0].startswith("q1 ")
    assert any(line.startswith("6 alike queries (q2, q3, q4, ...)") and line.endswith("kept") for line in shown)


def test_a_kept_template_stays_beside_another_query() -> None:
    diff = change(above(range(8)), {**above(range(8)), "other": OTHER})
    assert {query.name for query in diff.queries if query.verdict == "kept"} == set(above(range(8)))
    assert diff.query("other").moves
    assert diff.changed


def test_queries_that_become_alike_ones_are_derived() -> None:
    diff = change(above(range(7)), above(range(8)))
    assert {(query.verdict, query.fresh) for query in diff.queries if query.name != "q7"} == {("derived", False)}
    assert diff.query("q7").fresh
    assert all(query.moves for query in diff.queries)
    assert diff.render().startswith("7 alike queries (q0, q1, q2, ...)  derived  computed from rows that are kept")


def test_another_sink_of_one_of_alike_queries_gets_its_answer() -> None:
    diff = change(above(range(8)), above(range(8)), q3="elsewhere")
    assert diff.changed
    assert [query.name for query in diff.queries if query.moves] == ["q3"]
    assert diff.query("q3").fresh
